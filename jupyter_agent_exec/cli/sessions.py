"""Commands that show the server, sessions and executions."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final, get_args

import msgspec

from .. import models
from ..client import AgentExecClient, Result
from ..client.display import credential, one_line, person, placed, quoted, said
from ..text.counts import counted, size_in_words
from ..types import FINAL_STATUSES, TargetKind, Verdict
from .command import any_id, command, limit, option, session_id
from .command_client import LOOK_SECONDS, connected, showing
from .console import Console
from .run import save_images
from .usage import UsageError, image_folder

_PEOPLE: Final = {
    "off": "not recorded",
    "source": "their source is recorded, in kernels that agents are attached to",
    "outputs": "their source and outputs are recorded, in kernels that agents are attached to",
}


@command("status", "show the status of the server")
def status(arguments: Namespace, console: Console) -> None:
    """Show the server's status. Do not start a server if none runs."""
    with connected(arguments, console, may_start=False) as client:
        told, address = client.status(), client.address
    console.answer(
        {"address": address, **msgspec.to_builtins(told)},
        f"{address}: jupyter-agent-exec {told.version}",
        f"history   {'available' if told.history_available else 'NOT AVAILABLE'}",
        *(f"NOT SIGNED  {' '.join(each.found)} ({each.name})" for each in [told.broken] if each),
        f"search    {'ready' if told.search_ready else 'being rebuilt'}",
        *(f"sink      {sink.name}: {_how_far(sink)}" for sink in told.sinks),
        f"people    {_PEOPLE[told.record_people]}",
        f"sessions  {told.open_sessions} open",
        f"kernels   {told.kernels}",
        f"now       {told.running} running, {told.queued} waiting",
        f"ledger    {counted(told.ledger.length, 'entry')}, head {told.ledger.head}",
    )


def _how_far(sink: models.SinkStatus) -> str:
    """Return how far behind a sink is."""
    if sink.lag is None:
        words = "not known yet"
    elif sink.lag:
        words = f"{sink.lag:.1f} s and {counted(sink.entries_behind, 'entry')} behind"
    else:
        words = "up to date"
    if sink.is_stopping_code:
        words += "; NOTHING RUNS until it has caught up"
    return words if sink.error is None else f"{words}; {sink.error}"


def _whose_and_when(parser: ArgumentParser) -> None:
    option(parser, "--agent NAME", "only those of this agent")
    what = "only those with this kind of target"
    option(parser, "--target KIND", what, choices=get_args(TargetKind))
    option(parser, "--since TIME", "only since this time, such as 2026-11-21T09:00:00Z")
    option(parser, "--until TIME", "only until this time")


def _sessions_options(parser: ArgumentParser) -> None:
    option(parser, "--open", "only open sessions")
    option(parser, "--unreviewed", "only sessions with executions that nobody has reviewed")
    _whose_and_when(parser)
    limit(parser, 50)


@command("sessions", "list sessions, open ones first", _sessions_options)
def sessions(arguments: Namespace, console: Console) -> None:
    """List sessions, the open ones first."""
    with connected(arguments, console) as client:
        _until_indexed(client, console)
        found = client.sessions(
            status="open" if arguments.open else None,
            agent=arguments.agent,
            target=arguments.target,
            since=arguments.since,
            until=arguments.until,
            unreviewed=True if arguments.unreviewed else None,
        )
        listed = [session.info for session in islice(found, arguments.limit)]
    console.listing(
        listed,
        {
            "SESSION": "id",
            "STATUS": "status",
            "RAN": "executions",
            "LAST ACTIVITY": lambda info: _time(info.last_activity_at),
            "CREDENTIAL": lambda info: one_line(credential(info.token), 24),
            "CALLS ITSELF": _called,
            "RUNS IN": lambda info: one_line(_target(info), 40),
            "TITLE": lambda info: quoted(one_line(info.title, 58)) if info.title else "",
        },
    )


def _called(info: models.Session, width: int = 24) -> str:
    """Return what an agent calls itself, and how long it runs code without asking."""
    grant = ""
    if info.grant is not None:
        until = "restart" if info.grant.until is None else _time(info.grant.until)
        grant = f" (granted until {until})"
    return quoted(one_line(info.agent.name, width)) + grant


def _show_options(parser: ArgumentParser) -> None:
    any_id(parser)
    option(parser, "--whole", "print only the whole text output of an execution")
    option(parser, "--images DIR", "save images in this folder")


@command("show", "show a session and its executions, or one execution", _show_options)
def show(arguments: Namespace, console: Console) -> None:
    """Show a session with its executions, or one execution."""
    is_execution = arguments.id.startswith("x_")
    if arguments.whole and not is_execution:
        raise UsageError("--whole is for an execution (x_…).")
    folder = image_folder(arguments.images)
    with connected(arguments, console) as client:
        if is_execution:
            results = [client.execution(arguments.id)]
            if arguments.whole and not console.is_json:
                _write_whole_text(client, arguments.id, console)
            else:
                console.answer(results[0].execution, *_told(results[0]))
        else:
            session = client.session(arguments.id)
            results = list(session.executions())
            executions = [result.execution for result in results]
            lines = (line for result in results for line in ("", *_told(result)))
            info = session.info
            console.answer({"session": info, "executions": executions}, *_head(info), *lines)
        if folder is not None:
            for result in results:
                save_images(result, folder, console)


def _head(info: models.Session) -> Iterator[str]:
    """Yield lines about a session."""
    title = quoted(one_line(info.title, 80)) if info.title else ""
    yield f"{info.id}  {info.status}  {title}".rstrip()
    who = f"{credential(info.token)}, for {person(info.username)}"
    yield f"{who}, since {_time(info.opened_at)}; calls itself {_called(info, 200)}"
    opened_as = ""
    if isinstance(info.target, models.NotebookTarget) and info.path not in (None, info.target.path):
        opened_as = f", opened as {info.target.path}"
    yield f"runs in {_target(info)}{opened_as}"


def _told(result: Result) -> Iterator[str]:
    """Yield lines about an execution."""
    execution = result.execution
    yield f"[{execution.seq}] {result.id}  {_time(execution.accepted_at)}  {result.summary}"
    for line in said(execution):
        yield f"  {one_line(line, 500)}"
    for line in execution.source.rstrip("\n").split("\n"):
        yield f"  | {line}"
    if execution.text:
        yield execution.text.rstrip("\n")
    if execution.document is not None:
        yield f"  {placed(execution.document)}"


def _write_whole_text(client: AgentExecClient, execution_id: str, console: Console) -> None:
    offset: int | None = 0
    while offset is not None:
        part = client.text(execution_id, offset)
        console.text(part.text)
        offset = part.next_offset
    if part.omitted_bytes:
        console.note(f"{size_in_words(part.omitted_bytes)} more were printed and not kept")


def _search_options(parser: ArgumentParser) -> None:
    option(parser, "[WORDS]", "words to search for; without them, all are listed", default="")
    what = "only executions with this status"
    option(parser, "--status STATUS", what, choices=sorted(FINAL_STATUSES))
    option(parser, "--session ID", "only executions of this session")
    option(parser, "--has-image", "only executions with an image")
    what = "only executions with this verdict; none: not reviewed yet"
    option(parser, "--review VERDICT", what, choices=(*get_args(Verdict), "none"))
    _whose_and_when(parser)
    limit(parser, 20)


@command("search", "search sources, outputs, errors and purposes, newest first", _search_options)
def search(arguments: Namespace, console: Console) -> None:
    """Search the history."""
    with connected(arguments, console) as client:
        _until_indexed(client, console)
        hits = list(
            client.search(
                arguments.words,
                agent=arguments.agent,
                target=arguments.target,
                status=arguments.status,
                session_id=arguments.session,
                since=arguments.since,
                until=arguments.until,
                has_image=True if arguments.has_image else None,
                review=arguments.review,
                limit=arguments.limit,
            )
        )
    console.listing(
        hits,
        {
            "EXECUTION": "execution_id",
            "STATUS": "status",
            "TIME": lambda hit: _time(hit.accepted_at),
            "CALLS ITSELF": lambda hit: quoted(one_line(hit.agent, 24)),
            "MATCH": _match,
        },
        80,
    )


def _match(hit: models.SearchHit) -> str:
    return (hit.snippet or hit.source).replace("\u2068", "«").replace("\u2069", "»")


def _until_indexed(client: AgentExecClient, console: Console) -> None:
    """On a terminal, wait until an index that is built anew is complete, and show how far it is."""
    if console.shows_progress and client.status().indexing is not None:
        with showing(client, console, "indexing"):
            while client.status().indexing is not None:
                time.sleep(LOOK_SECONDS)


def _export_options(parser: ArgumentParser) -> None:
    session_id(parser)
    what = "the file to write (SESSION.ipynb); - for standard output"
    option(parser, "-o, --output FILE", what)
    what = "indented and without our metadata, for git, nbdime, jupytext and papermill"
    form = parser.add_mutually_exclusive_group()
    option(form, "--clean", what)
    what = "for a colleague: with headings and the cells it needs; checked in an empty kernel"
    option(form, "--share", what)
    option(parser, "--journal FILE", "also write the raw record to this file")
    what = "also write the packages that its kernel had to this file, such as requirements.txt"
    option(parser, "--requirements FILE", what)
    option(parser, "-f, --force", "overwrite existing files")


@command("export", "write a session as a notebook", _export_options)
def export(arguments: Namespace, console: Console) -> None:
    """Write a session's notebook to a file, and what the options name beside it."""
    is_piped = arguments.output == "-"
    files = {
        "notebook": None if is_piped else arguments.output or f"{arguments.session}.ipynb",
        "journal": arguments.journal,
        "requirements": arguments.requirements,
    }
    paths = {kind: _writable(word) for kind, word in files.items() if word is not None}
    for file in paths.values():
        if file.exists() and not arguments.force:
            question, otherwise = f"Overwrite {file}?", f"{file} exists; --force overwrites it."
            console.confirm(question, otherwise=otherwise, declined="Nothing was written.")
    with (
        connected(arguments, console) as client,
        tempfile.TemporaryDirectory() as folder,
        console.progress("export", "B") as progress,
    ):
        session = client.session(arguments.session)
        notebook = paths.get("notebook", Path(folder) / "export.ipynb")
        session.export(notebook, clean=arguments.clean, share=arguments.share, progress=progress)
        if is_piped:
            sys.stdout.buffer.write(notebook.read_bytes())
        if "journal" in paths:
            session.journal(paths["journal"], progress=progress)
        if "requirements" in paths:
            paths["requirements"].write_text(session.requirements(), "utf-8")
        chain = client.session(session.id).info.chain
    if is_piped:
        return
    written = {kind: str(path) for kind, path in paths.items()}
    told = {"session_id": session.id, "chain": chain, **written}
    console.answer(told, *(f"{kind}  {path}" for kind, path in written.items()))
    if arguments.share:
        about = json.loads(notebook.read_text("utf-8"))["cells"][1]["source"]
        console.note("".join(about))
        return
    console.note(
        f"chain head {chain.head}, {counted(chain.length, 'entry')}: `verify --head` takes it"
    )


def _writable(word: str) -> Path:
    path = Path(word)
    if path.is_dir():
        raise UsageError(f"{word} is a folder; name a file.")
    if not path.parent.is_dir():
        raise UsageError(f"There is no folder {path.parent}.")
    return path


def _target(info: models.Session) -> str:
    """Return where a session's code runs."""
    if isinstance(info.target, models.KernelTarget):
        return f"kernel {info.target.kernel_id}"
    if isinstance(info.target, models.NotebookTarget):
        return info.path or info.target.path
    return "scratch"


def _time(at: str) -> str:
    """Return an RFC 3339 time without fractions of a second, in a readable form."""
    return at[:19].replace("T", " ") + ("Z" if at.endswith("Z") else at[19:])
