"""`jupyter agent-exec review`: say what you think of what an agent ran."""

from __future__ import annotations

from argparse import Namespace

from ..models import Execution, Review, Session
from . import exit_codes
from .connection import connected, decided
from .console import Console
from .usage import UsageError


def review(arguments: Namespace, console: Console) -> int:
    """Review an execution, or all that a session has run."""
    if not arguments.id.startswith(("s_", "x_")):
        raise UsageError(f"An id begins with s_ (session) or x_ (execution): {arguments.id!r}.")
    if arguments.clear and arguments.comment:
        raise UsageError("--clear takes the comment back too; leave out one of them.")
    if not (arguments.clear or arguments.verdict or arguments.comment):
        raise UsageError("What do you think? --approve, --flag, --comment or --clear.")
    with connected(arguments, console, may_start=False) as client:
        answer: Execution | Session
        if arguments.id.startswith("x_"):
            result = decided(
                client,
                console,
                lambda: client.review(arguments.id, arguments.verdict, comment=arguments.comment),
            )
            answer = result.execution
        else:
            session = client.session(arguments.id)
            answer = decided(
                client,
                console,
                lambda: session.review(arguments.verdict, comment=arguments.comment),
            )
    if arguments.json:
        console.json(answer)
    else:
        console.line(f"{arguments.id}  {review_line(answer.review)}")
    return exit_codes.OK


def review_line(review: Review | None) -> str:
    """Return a review in one line."""
    if review is None:
        return "not reviewed"
    words = f"{review.verdict or 'commented'} by {review.by}"
    return words if review.comment is None else f"{words}: {review.comment}"
