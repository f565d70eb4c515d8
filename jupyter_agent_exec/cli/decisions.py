"""Commands for the user's decisions: code, edits, reviews, pauses, grants and what is erased."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from difflib import ndiff
from functools import partial
from typing import Final, TypeAlias, get_args

import msgspec
from msgspec.structs import replace

from ..client import AgentExecClient, Result, Session
from ..client.display import credential, person, quoted, said
from ..models import Approvals, Erasure, Execution, Proposal, Review
from ..text.counts import counted
from ..text.lookalikes import exact
from ..types import FINAL_STATUSES, GrantSpan, Verdict
from .command import any_id, command, option, session_id
from .command_client import connected, decided, showing
from .console import Colour, Console
from .usage import UsageError, read_source

_NOBODY_LOOKS: Final = "Nobody can confirm it here; say --yes if you have looked at it."

_OF_SIGN: Final[dict[str, Colour]] = {"+": "green", "-": "red"}

_Say: TypeAlias = Callable[[str, Colour | None], None]


@command("pending", "list what waits for your decision: code, and edits of notebooks")
def pending(arguments: Namespace, console: Console) -> None:
    """List the executions and the proposed edits that await a decision, with their sources."""
    with connected(arguments, console, may_start=False) as client:
        approvals, proposals = client.approvals(), client.proposals()
    if console.is_json:
        console.json({**msgspec.to_builtins(approvals), "proposals": proposals})
        return
    if (paused := _paused(approvals)) is not None:
        console.line(paused)
    for execution in approvals.executions:
        _show(execution, execution.source, console.line)
    for proposal in proposals:
        _show_proposal(proposal, console.line)
    if not approvals.executions and not proposals:
        console.note("Nothing waits for a decision.")


def _id(parser: ArgumentParser) -> None:
    what = "of an execution (x_…), of proposed edits (p_…), or of one of them (p_….0)"
    option(parser, "ID", what)


def _approve_options(parser: ArgumentParser) -> None:
    _id(parser)
    instead = "run this source instead: code, a file with code, or - for standard input"
    option(parser, "--edit SOURCE", instead)
    grant = "let the agent run more code in this kernel without asking: until the kernel restarts, "
    grant += "or for an hour at most"
    option(parser, "--grant SPAN", grant, choices=get_args(GrantSpan))
    option(parser, "-y, --yes", "approve without a question")


@command("approve", "approve code or proposed edits after you have seen them", _approve_options)
def approve(arguments: Namespace, console: Console) -> None:
    """Show code or edits, ask the user to confirm, and approve them."""
    is_code = arguments.id.startswith("x_")
    if not is_code and (arguments.edit or arguments.grant):
        raise UsageError("--edit and --grant are for an execution (x_…).")
    edited = None if arguments.edit is None else read_source(arguments.edit, is_code=False)
    with connected(arguments, console, may_start=False) as client:
        asking = _asking(client, arguments.id) if is_code else _proposal(client, arguments.id)
        if isinstance(asking, Proposal):
            _show_proposal(asking, console.complain)
        elif asking is not None:
            _show(asking, asking.source if edited is None else edited, console.complain)
        if asking is not None and not arguments.yes:
            question = "Let this run?" if is_code else "Change the notebook?"
            declined = "It was not approved."
            console.confirm(question, otherwise=_NOBODY_LOOKS, declined=declined)
        if isinstance(asking, Proposal):
            _decide_edits(client, asking, Session.keep_edits, console)
            return
        # If the execution does not await approval, the server's error says why.
        sha256 = "0" * 64 if asking is None else asking.source_sha256
        options = {"source": edited, "grant": arguments.grant}
        result = decided(client, console, client.approve, arguments.id, sha256, **options)
        _answer(result, console)


def _reject_options(parser: ArgumentParser) -> None:
    _id(parser)
    option(parser, "--reason TEXT", "the reason, which the agent can read")


@command("reject", "reject code or proposed edits", _reject_options)
def reject(arguments: Namespace, console: Console) -> None:
    """Reject an execution, or proposed edits."""
    with connected(arguments, console, may_start=False) as client:
        if arguments.id.startswith("x_"):
            result = decided(client, console, client.reject, arguments.id, arguments.reason)
            _answer(result, console)
        else:
            asking = _proposal(client, arguments.id)
            reject_edits = partial(Session.reject_edits, reason=arguments.reason)
            _decide_edits(client, asking, reject_edits, console)


def _asking(client: AgentExecClient, id: str) -> Execution | None:
    return next((each for each in client.approvals().executions if each.id == id), None)


def _answer(result: Result, console: Console) -> None:
    approval = result.execution.approval
    assert approval is not None
    by = person(approval.decided_by or "")
    console.answer(result.execution, f"{result.id}  {approval.status} by {by}")


def _proposal(client: AgentExecClient, id: str) -> Proposal:
    """Return the open edits with this id, or the only one of them that has it.

    Raises
    ------
    UsageError
        There are none.
    """
    for proposal in client.proposals():
        edits = [edit for edit in proposal.edits if id in (proposal.id, edit.id)]
        if edits:
            return replace(proposal, edits=edits)
    raise UsageError(f"No execution and no proposed edits with the id {id!r} wait.")


def _decide_edits(
    client: AgentExecClient,
    proposal: Proposal,
    decide: Callable[[Session, list[str]], list[Proposal]],
    console: Console,
) -> None:
    session = client.session(proposal.session_id)
    ids = [edit.id for edit in proposal.edits]
    made = decided(client, console, decide, session, list(ids))
    edits = [edit for each in made for edit in each.edits if edit.id in ids]
    console.answer(
        edits, *(f"{each.id}  {each.status}: {each.reason or ''}".rstrip(": ") for each in edits)
    )


def _show_proposal(proposal: Proposal, say: _Say) -> None:
    """Show proposed edits and their agent, with every character visible."""
    called, path = quoted(exact(proposal.agent.name)), exact(proposal.path)
    say(f"{proposal.id}  {called}, for {person(proposal.username)}, in {path}", None)
    for edit in proposal.edits:
        fits = "" if edit.fits else f"; does not fit: {edit.reason}"
        say(f"{edit.id}  {edit.kind} {exact(edit.cell_id)}{fits}", None)
        before = None if edit.before is None else edit.before.source
        _show_difference(before, None if edit.after is None else edit.after.source, say)


def _show_difference(before: str | None, after: str | None, say: _Say) -> None:
    """Show two sources as one, each line with a sign: added, removed or unchanged."""
    old = [] if before is None else exact(before).split("\n")
    new = [] if after is None else exact(after).split("\n")
    for line in ndiff(old, new):
        if line[0] != "?":
            say(f"   {line[0]} | {line[2:]}", _OF_SIGN.get(line[0]))


def _show(execution: Execution, source: str, say: _Say) -> None:
    """Show an execution's agent, place and source, with every character visible.

    If its source is to replace another, show what changes.
    """
    approval, document = execution.approval, execution.document
    kernel = None if approval is None else approval.kernel_id
    where = "a kernel that is not started yet" if kernel is None else f"kernel {kernel}"
    if document is not None:
        where = f"{exact(document.path)}, {where}"
    who = f"{credential(execution.token)}, for {person(execution.username)}"
    called = quoted(exact(execution.agent.name))
    say(f"{execution.id}  {who}, in {where}; calls itself {called}", None)
    for line in said(execution):
        say(line, None)
    before = None if approval is None else approval.before
    if approval is not None and approval.edits_cell:
        what = "adds this cell" if before is None else "replaces the source of this cell"
        say(f"It {what}, and runs it:", None)
    if before is not None and before != source:
        _show_difference(before, source, say)
    else:
        _show_numbered(source, say)
    for each in approval.also if approval is not None else ():
        say(f"and then {each.execution_id}:", None)
        _show_numbered(each.source or "", say)


def _show_numbered(source: str, say: _Say) -> None:
    for number, line in enumerate(exact(source).split("\n"), 1):
        say(f"{number:4} | {line}", None)


def _review_options(parser: ArgumentParser) -> None:
    any_id(parser)
    verdict = parser.add_mutually_exclusive_group()
    option(verdict, "--approve", "mark as good")
    option(verdict, "--flag", "mark as a problem")
    option(verdict, "--clear", "remove the review")
    option(parser, "--comment TEXT", "a comment")


@command(
    "review",
    "review an execution, or all of a session that have finished and have no review",
    _review_options,
)
def review(arguments: Namespace, console: Console) -> None:
    """Review an execution, or all of a session so far."""
    comment = arguments.comment
    if arguments.clear and comment:
        raise UsageError("--clear takes the comment back too; leave out one of them.")
    verdict: Verdict | None = None
    if arguments.approve or arguments.flag:
        verdict = "approved" if arguments.approve else "flagged"
    if not (arguments.clear or verdict or comment):
        raise UsageError("What do you think? --approve, --flag, --comment or --clear.")
    with connected(arguments, console, may_start=False) as client:
        ids = [arguments.id]
        if arguments.id.startswith("s_"):
            ids = [
                each.id
                for each in client.session(arguments.id).executions()
                if each.status in FINAL_STATUSES
                and (each.execution.review is not None) == arguments.clear
            ]
        made = [
            decided(client, console, client.review, id, verdict, comment=comment).execution
            for id in ids
        ]
    lines = (f"{each.id}  {_review_line(each.review)}" for each in made)
    console.answer(made[0] if ids == [arguments.id] else made, *lines)


def _review_line(review: Review | None) -> str:
    """Return a review in one line."""
    if review is None:
        return "not reviewed"
    words = f"{review.verdict or 'commented'} by {person(review.by)}"
    return words if review.comment is None else f"{words}: {review.comment}"


@command("pause", "pause all agents; running code continues")
def pause(arguments: Namespace, console: Console) -> None:
    """Pause all agents."""
    _set_pause(arguments, console, AgentExecClient.pause)


@command("resume", "end a pause of all agents")
def resume(arguments: Namespace, console: Console) -> None:
    """End a pause."""
    _set_pause(arguments, console, AgentExecClient.resume)


def _set_pause(
    arguments: Namespace, console: Console, set: Callable[[AgentExecClient], Approvals]
) -> None:
    with connected(arguments, console, may_start=False) as client:
        approvals = decided(client, console, set, client)
    console.answer(approvals, _paused(approvals) or "Agents go on.")


def _accept_break_options(parser: ArgumentParser) -> None:
    option(parser, "NAME", "the break (b_…), as `status` and the server's log name it")
    option(parser, "-y, --yes", "accept without a question")


@command(
    "accept-break",
    "have the record signed on, although it is not as it was signed",
    _accept_break_options,
)
def accept_break(arguments: Namespace, console: Console) -> None:
    """Show why the record is not signed any more, ask the user to confirm, and accept it."""
    with connected(arguments, console, may_start=False) as client:
        broken = client.status().broken
        if broken is not None and broken.name == arguments.name and not arguments.yes:
            for found in broken.found:
                console.complain(found)
            question, declined = "Sign the record as it is now?", "Nothing was accepted."
            console.confirm(question, otherwise=_NOBODY_LOOKS, declined=declined)
        told = decided(client, console, client.accept_break, arguments.name)
    console.answer(told, "The record is signed again; it says that you accepted this.")


def _paused(approvals: Approvals) -> str | None:
    paused = approvals.paused
    if paused is None:
        return None
    return f"All agents are paused since {paused.at[11:19]} UTC, by {person(paused.by)}."


@command("end", "end what a session's agent may run in its kernel without asking", session_id)
def end_grant(arguments: Namespace, console: Console) -> None:
    """End the grant of a session's agent."""
    with connected(arguments, console, may_start=False) as client:
        session = client.session(arguments.session)
        had, info = session.info.grant, session.withdraw_grant()
    told = f"{info.id}  {quoted(exact(info.agent.name))} has to ask again"
    console.answer(info, told if had else f"{info.id}  There is no grant in this session.")


GRANT_COMMANDS: Final = (end_grant,)


_LOOK_FIRST = "Nobody can confirm this here: look with --dry-run, then erase with --yes."


def _erase_options(parser: ArgumentParser) -> None:
    any_id(parser, "[ID]")
    option(parser, "--agent NAME", "all sessions of agents with this name")
    option(parser, "--user NAME", "all sessions of a user, and what the user did in others")
    option(parser, "--text TEXT", "all that contains this text; - reads it from standard input")
    option(parser, "--reason TEXT", "why; it is recorded")
    option(parser, "--dry-run", "only show what would go")
    option(parser, "-y, --yes", "erase without asking")


@command(
    "erase",
    "erase from the record of closed sessions, after you have seen what goes",
    _erase_options,
)
def erase(arguments: Namespace, console: Console) -> None:
    """Show what goes, ask the user to confirm, and erase it."""
    is_session = arguments.id is not None and arguments.id.startswith("s_")
    wanted = {
        "session_id": arguments.id if is_session else None,
        "execution_id": None if is_session else arguments.id,
        "agent": arguments.agent,
        "username": arguments.user,
        "text": _text(arguments.text),
    }
    if sum(value is not None for value in wanted.values()) != 1:
        raise UsageError("Name one thing to erase: an ID, --agent, --user or --text.")
    with connected(arguments, console, may_start=False) as client:
        with showing(client, console, "erasing"):
            told = client.erase(**wanted, dry_run=True)
        going = any(each.payloads and not each.is_open for each in told.sessions)
        if going and not arguments.dry_run:
            if not arguments.yes:
                if console.is_json:
                    raise UsageError(_LOOK_FIRST)
                _tell_erased(told, console)
                question, declined = "Erase this? It cannot be undone.", "Nothing was erased."
                console.confirm(question, otherwise=_LOOK_FIRST, declined=declined)

            def erase() -> Erasure:
                with showing(client, console, "erasing"):
                    return client.erase(**wanted, reason=arguments.reason)

            told = decided(client, console, erase)
    _tell_erased(told, console)


def _text(text: str | None) -> str | None:
    """Return the text to erase; from standard input if it is not to be in the shell's history."""
    return sys.stdin.readline().rstrip("\n") if text == "-" else text


def _tell_erased(told: Erasure, console: Console) -> None:
    if console.is_json:
        console.json(told)
        return
    if told.sessions:
        what_happens = "goes" if told.dry_run else "erased"
        console.listing(
            told.sessions,
            {
                "SESSION": "session_id",
                "EXECUTIONS": "executions",
                "PAYLOADS": "payloads",
                "BYTES": "bytes",
                "": lambda each: "open: close it first" if each.is_open else what_happens,
                "CALLS ITSELF": lambda each: f"{quoted(each.agent)} {each.title or ''}",
            },
        )
    else:
        console.note("There is nothing to erase.")
    facts = sum(each.facts for each in told.sessions)
    if facts:
        console.line(
            f"The text remains in {counted(facts, 'entry')}: in a title, purpose, comment, reason "
            "or path."
        )
    for sentence in told.remains:
        console.note(sentence)
