"""Commands for the user's decisions: approvals, proposed edits and reviews."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from difflib import ndiff
from typing import Final, get_args

from .. import models
from ..client import AgentExecClient, Session
from ..client.display import credential, person, quoted, said
from ..models import Approvals, Execution, Proposal, Review
from ..text.counts import counted
from ..text.lookalikes import exact
from ..types import ApprovalMode, EditMode, GrantSpan, PolicyKind, TargetKind
from . import exit_codes
from .command import command
from .command_client import connected, decided, typed
from .console import Colour, Console
from .usage import UsageError, read_source

MIN_PASSPHRASE: Final = 12
"""Minimum characters. Code in a kernel can read the hash, and could guess a shorter passphrase."""

NOBODY_LOOKS: Final = "Nobody can confirm it here; say --yes if you have looked at the source."

_OF_SIGN: Final[dict[str, Colour]] = {"+": "green", "-": "red"}

_KINDS: tuple[PolicyKind, ...] = ("scratch", "notebook", "kernel", "edits")


@command("pending", "list code that awaits approval")
def pending(arguments: Namespace, console: Console) -> int:
    """List executions that await approval, with their exact sources."""
    with connected(arguments, console, may_start=False) as client:
        approvals = client.approvals()
    if arguments.json:
        console.json(approvals)
        return exit_codes.OK
    _say_if_paused(approvals, console)
    for execution in approvals.executions:
        _show(execution, execution.source, console)
    if not approvals.executions:
        console.note("Nothing asks for approval.")
    return exit_codes.OK


def _approve_options(parser: ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="of the execution (x_…)")
    parser.add_argument(
        "--edit",
        metavar="SOURCE",
        help="run this source instead: code, a file with code, or - for standard input",
    )
    parser.add_argument(
        "--grant",
        choices=get_args(GrantSpan),
        help="let the agent run more code in this kernel without asking: until the kernel "
        "restarts, or for an hour at most",
    )
    parser.add_argument("-y", "--yes", action="store_true", help="approve without a question")


@command("approve", "approve an execution after you have seen its source", _approve_options)
def approve(arguments: Namespace, console: Console) -> int:
    """Show an execution's source, ask the user to confirm, and approve it."""
    edited = None
    if arguments.edit is not None:
        edited = read_source(arguments.edit, is_code=False)
    with connected(arguments, console, may_start=False) as client:
        asking = _asking(client, arguments.id)
        if asking is not None:
            _show(asking, asking.source if edited is None else edited, console, to_error=True)
            if not arguments.yes and not console.confirmed("Let this run?", NOBODY_LOOKS):
                console.complain("It was not approved.")
                return exit_codes.STOPPED
        # If the execution does not await approval, the server's error says why.
        sha256 = "0" * 64 if asking is None else asking.source_sha256
        answer = decided(
            client,
            console,
            lambda: client.approve(arguments.id, sha256, source=edited, grant=arguments.grant),
        )
    return _answered(answer.execution, arguments, console)


def _withdraw_options(parser: ArgumentParser) -> None:
    parser.add_argument("session", metavar="SESSION", help="id of one of its sessions there (s_…)")


@command("withdraw", "end what an agent may run in a kernel without asking", _withdraw_options)
def withdraw(arguments: Namespace, console: Console) -> int:
    """Withdraw the grant of a session's agent."""
    with connected(arguments, console, may_start=False) as client:
        session = client.session(arguments.session)
        had, info = session.info.grant, session.withdraw_grant()
    if arguments.json:
        console.json(info)
    elif had is None:
        console.note("There is no grant in this session.")
    else:
        console.line(f"{info.id}  {quoted(exact(info.agent.name))} has to ask again")
    return exit_codes.OK


def _reject_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "id", metavar="ID", help="of the execution (x_…), or of the session with the edits (s_…)"
    )
    parser.add_argument(
        "ids", metavar="EDIT", nargs="*", help="ids of edits; all open ones by default"
    )
    parser.add_argument(
        "--reason",
        metavar="TEXT",
        help="the reason for an execution, which the agent can read",
    )


@command("reject", "reject an execution, or an agent's proposed edits", _reject_options)
def reject(arguments: Namespace, console: Console) -> int:
    """Reject an execution, or proposed edits of a session."""
    if arguments.id.startswith("s_"):
        return _decide_edits(arguments, console, Session.reject_edits)
    if arguments.ids:
        raise UsageError("Edits are named after the id of their session (s_…).")
    with connected(arguments, console, may_start=False) as client:
        answer = decided(client, console, lambda: client.reject(arguments.id, arguments.reason))
    return _answered(answer.execution, arguments, console)


def _proposals_options(parser: ArgumentParser) -> None:
    parser.add_argument("path", metavar="PATH", nargs="?", help="only for this notebook")


@command("proposals", "show the edits that agents propose", _proposals_options)
def proposals(arguments: Namespace, console: Console) -> int:
    """List the open edits that agents propose, with their exact sources."""
    with connected(arguments, console, may_start=False) as client:
        found = client.proposals(arguments.path)
    if arguments.json:
        console.json(found)
        return exit_codes.OK
    for proposal in found:
        _show_proposal(proposal, console)
    if not found:
        console.note("No edits are proposed.")
    return exit_codes.OK


def _edits_options(parser: ArgumentParser) -> None:
    parser.add_argument("id", metavar="SESSION", help="id of the agent's session (s_…)")
    parser.add_argument(
        "ids", metavar="EDIT", nargs="*", help="ids of edits; all open ones by default"
    )


@command("keep", "apply an agent's proposed edits to the notebook", _edits_options)
def keep(arguments: Namespace, console: Console) -> int:
    """Keep the proposed edits of a session."""
    return _decide_edits(arguments, console, Session.keep_edits)


def _undo_options(parser: ArgumentParser) -> None:
    parser.add_argument("id", metavar="SESSION", help="id of the agent's session (s_…)")
    parser.add_argument("ids", metavar="EDIT", nargs="+", help="ids of kept or rejected edits")


@command("undo", "take back that you kept or rejected an agent's edits", _undo_options)
def undo(arguments: Namespace, console: Console) -> int:
    """Undo the decisions about proposed edits: they are open again."""
    return _decide_edits(arguments, console, Session.undo_edits)


def _decide_edits(
    arguments: Namespace,
    console: Console,
    decide: Callable[[Session, list[str]], list[Proposal]],
) -> int:
    with connected(arguments, console, may_start=False) as client:
        session = client.session(arguments.id)
        wanted = arguments.ids or [
            edit.id
            for proposal in session.proposals()
            for edit in proposal.edits
            if edit.status == "open"
        ]
        made = decided(client, console, lambda: decide(session, wanted)) if wanted else []
    if arguments.json:
        console.json(made)
        return exit_codes.OK
    for edit in (edit for proposal in made for edit in proposal.edits if edit.id in wanted):
        why = "" if edit.reason is None else f": {edit.reason}"
        console.line(f"{edit.id}  {edit.status}{why}")
    return exit_codes.OK


def _show_proposal(proposal: Proposal, console: Console) -> None:
    """Show a proposal's agent and its edits, with every character visible."""
    called = quoted(exact(proposal.agent.name))
    path = exact(proposal.path)
    console.line(f"{proposal.session_id}  {called}, for {person(proposal.username)}, in {path}")
    for edit in proposal.edits:
        fits = "" if edit.fits else f"; does not fit: {edit.reason}"
        console.line(f"{edit.id}  {edit.kind} {exact(edit.cell_id)}{fits}")
        before = None if edit.before is None else edit.before.source
        after = None if edit.after is None else edit.after.source
        _show_difference(before, after, console.line)


def _show_difference(
    before: str | None, after: str | None, say: Callable[[str, Colour | None], None]
) -> None:
    """Show two sources as one, each line with a sign: added, removed or unchanged."""
    old = [] if before is None else exact(before).split("\n")
    new = [] if after is None else exact(after).split("\n")
    for line in ndiff(old, new):
        if line[0] != "?":
            say(f"   {line[0]} | {line[2:]}", _OF_SIGN.get(line[0]))


@command("pause", "pause all agents; running code continues")
def pause(arguments: Namespace, console: Console) -> int:
    """Pause all agents."""
    return _set_paused(arguments, console, True)


@command("resume", "end a pause of all agents")
def resume(arguments: Namespace, console: Console) -> int:
    """End a pause."""
    return _set_paused(arguments, console, False)


def _set_paused(arguments: Namespace, console: Console, paused: bool) -> int:
    with connected(arguments, console, may_start=False) as client:
        approvals = decided(client, console, client.pause if paused else client.resume)
    if arguments.json:
        console.json(approvals)
    elif approvals.paused is None:
        console.line("Agents go on.")
    else:
        _say_if_paused(approvals, console)
    return exit_codes.OK


def _policy_options(parser: ArgumentParser) -> None:
    for kind in get_args(TargetKind):
        parser.add_argument(
            f"--{kind}",
            choices=get_args(ApprovalMode),
            help=f"which executions with a {kind} target need approval",
        )
    parser.add_argument(
        "--edits",
        choices=get_args(EditMode),
        help="how agents with a token edit notebooks: at once, or as proposals",
    )


@command("policy", "show or set what needs approval", _policy_options)
def policy(arguments: Namespace, console: Console) -> int:
    """Show or set the policy: which agent code needs approval."""
    wanted = {kind: getattr(arguments, kind) for kind in _KINDS}
    with connected(arguments, console, may_start=False) as client:
        if any(wanted.values()):
            approvals = decided(client, console, lambda: client.set_policy(**wanted))
        else:
            approvals = client.approvals()
    if arguments.json:
        console.json(approvals.policy)
        return exit_codes.OK
    for kind in _KINDS:
        forced = "  forced by the server's configuration" if kind in approvals.policy.forced else ""
        console.line(f"{kind:9} {getattr(approvals.policy, kind)}{forced}")
    return exit_codes.OK


@command(
    "passphrase",
    "make the hash of a passphrase, which users must type before they decide",
    server=False,
    json=False,
)
def passphrase(arguments: Namespace, console: Console) -> int:
    """Ask the user for a new passphrase, and print the line for the server's configuration."""
    from jupyter_server.auth.security import passwd  # takes half a second

    words = typed("New passphrase: ")
    if len(words) < MIN_PASSPHRASE:
        raise UsageError(
            f"It needs {MIN_PASSPHRASE} characters or more: code in a kernel can read its hash and "
            "try many passphrases. Five random words are good."
        )
    if typed("Once more: ") != words:
        raise UsageError("These are two different passphrases.")
    hashed = passwd(words)  # type: ignore[no-untyped-call]
    console.note("Put this into jupyter_server_config.py, and start the server again:")
    console.line(f"c.AgentExecApp.decision_passphrase_hash = {hashed!r}")
    return exit_codes.OK


def _asking(client: AgentExecClient, id: str) -> Execution | None:
    return next((each for each in client.approvals().executions if each.id == id), None)


def _show(execution: Execution, source: str, console: Console, *, to_error: bool = False) -> None:
    """Show an execution's agent, place and source, with every character visible.

    If its source is to replace another, show what changes.
    """
    say = console.complain if to_error else console.line
    approval, document = execution.approval, execution.document
    kernel = None if approval is None else approval.kernel_id
    where = "a kernel that is not started yet" if kernel is None else f"kernel {kernel}"
    if document is not None:
        where = f"{exact(document.path)}, {where}"
    who = f"{credential(execution.token)}, for {person(execution.username)}"
    called = quoted(exact(execution.agent.name))
    say(f"{execution.id}  {who}, in {where}; calls itself {called}")
    for line in said(execution):
        say(line)
    before = None if approval is None else approval.before
    if approval is not None and approval.edits_cell:
        say("It replaces the source of this cell, and runs it:")
    if before is not None and before != source:
        _show_difference(before, source, say)
    else:
        for number, line in enumerate(exact(source).split("\n"), 1):
            say(f"{number:4} | {line}")
    for each in approval.also if approval is not None else ():
        say(f"and then {each.execution_id}:")
        for number, line in enumerate(exact(each.source or "").split("\n"), 1):
            say(f"{number:4} | {line}")


def _answered(execution: Execution, arguments: Namespace, console: Console) -> int:
    if arguments.json:
        console.json(execution)
    elif execution.approval is not None:
        by = person(execution.approval.decided_by or "")
        console.line(f"{execution.id}  {execution.approval.status} by {by}")
    return exit_codes.OK


def _say_if_paused(approvals: Approvals, console: Console) -> None:
    paused = approvals.paused
    if paused is not None:
        console.line(f"All agents are paused since {paused.at[11:19]} UTC, by {person(paused.by)}.")


def _review_options(parser: ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="of a session (s_…) or an execution (x_…)")
    verdict = parser.add_mutually_exclusive_group()
    verdict.add_argument(
        "--approve", dest="verdict", action="store_const", const="approved", help="mark as good"
    )
    verdict.add_argument(
        "--flag", dest="verdict", action="store_const", const="flagged", help="mark as a problem"
    )
    verdict.add_argument("--clear", action="store_true", help="remove the verdict")
    parser.add_argument("--comment", metavar="TEXT", help="a comment")


@command("review", "review an execution, or all that a session ran", _review_options)
def review(arguments: Namespace, console: Console) -> int:
    """Review an execution, or each execution of a session that has finished."""
    if not arguments.id.startswith(("s_", "x_")):
        raise UsageError(f"An id begins with s_ (session) or x_ (execution): {arguments.id!r}.")
    if arguments.clear and arguments.comment:
        raise UsageError("--clear takes the comment back too; leave out one of them.")
    if not (arguments.clear or arguments.verdict or arguments.comment):
        raise UsageError("What do you think? --approve, --flag, --comment or --clear.")
    with connected(arguments, console, may_start=False) as client:
        answer: Execution | models.Session
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
    elif isinstance(answer, Execution):
        console.line(f"{arguments.id}  {review_line(answer.review)}")
    else:
        console.line(f"{arguments.id}  {counted(answer.unreviewed, 'execution')} without a review")
    return exit_codes.OK


def review_line(review: Review | None) -> str:
    """Return a review in one line."""
    if review is None:
        return "not reviewed"
    words = f"{review.verdict or 'commented'} by {person(review.by)}"
    return words if review.comment is None else f"{words}: {review.comment}"
