"""Commands that show the server, sessions, executions, notebooks, variables and packages."""

from __future__ import annotations

import sys
import tempfile
from argparse import ArgumentParser, Namespace
from itertools import islice
from pathlib import Path
from typing import Final, get_args

import msgspec

from .. import models
from ..client import AgentExecClient, Result, Session
from ..client.display import credential, one_line, person, placed, quoted, said, size
from ..models import NotebookCell, OpenNotebook, Variable
from ..text.counts import counted
from ..types import FINAL_STATUSES, RecordPeople, TargetKind, Verdict
from . import exit_codes
from .command import command, limit, session_id
from .command_client import connected
from .console import Console
from .run import save_images
from .usage import UsageError, image_folder


@command("status", "show the status of the server")
def status(arguments: Namespace, console: Console) -> int:
    """Show the server's status. Do not start a server if none runs."""
    with connected(arguments, console, may_start=False) as client:
        answer = client.status()
        if arguments.json:
            console.json({"address": client.address, **msgspec.to_builtins(answer)})
            return exit_codes.OK
        console.line(f"{client.address}: jupyter-agent-exec {answer.version}")
        console.line(f"history   {'available' if answer.history_available else 'NOT AVAILABLE'}")
        console.line(f"search    {'ready' if answer.search_ready else 'being rebuilt'}")
        for sink in answer.sinks:
            console.line(f"sink      {sink.name}: {_how_far(sink)}")
        console.line(f"people    {recorded(answer.record_people)}")
        console.line(f"sessions  {answer.open_sessions} open")
        console.line(f"kernels   {answer.kernels}")
        console.line(f"now       {answer.running} running, {answer.queued} waiting")
        console.line(
            f"ledger    {counted(answer.ledger.length, 'entry')}, head {answer.ledger.head}"
        )
    return exit_codes.OK


def recorded(people: RecordPeople) -> str:
    """Return whether users' own code is recorded."""
    if people == "off":
        return "what users run themselves is not recorded"
    what = "the source" if people == "source" else "the source and outputs"
    return f"{what} of what users run is recorded, in kernels that agents are attached to"


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
    parser.add_argument("--agent", metavar="NAME", help="only those of this agent")
    parser.add_argument(
        "--target", choices=get_args(TargetKind), help="only those with this kind of target"
    )
    parser.add_argument(
        "--since", metavar="TIME", help="only since this time, such as 2026-11-21T09:00:00Z"
    )
    parser.add_argument("--until", metavar="TIME", help="only until this time")


def _sessions_options(parser: ArgumentParser) -> None:
    parser.add_argument("--open", action="store_true", help="only open sessions")
    parser.add_argument(
        "--unreviewed",
        action="store_true",
        help="only sessions with executions that nobody has reviewed",
    )
    _whose_and_when(parser)
    limit(parser, 50)


@command("sessions", "list sessions, open ones first", _sessions_options)
def sessions(arguments: Namespace, console: Console) -> int:
    """List sessions, the open ones first."""
    with connected(arguments, console) as client:
        found = client.sessions(
            status="open" if arguments.open else None,
            agent=arguments.agent,
            target=arguments.target,
            since=arguments.since,
            until=arguments.until,
            unreviewed=True if arguments.unreviewed else None,
        )
        listed = [session.info for session in islice(found, arguments.limit)]
    if arguments.json:
        console.json(listed)
        return exit_codes.OK
    rows = [
        (
            info.id,
            info.status,
            str(info.executions),
            _time(info.last_activity_at),
            one_line(credential(info.token), 24),
            quoted(one_line(info.agent.name, 24)) + granted(info.grant),
            one_line(_target(info), 40),
            quoted(one_line(info.title, 58)) if info.title else "",
        )
        for info in listed
    ]
    console.table(
        (
            "SESSION",
            "STATUS",
            "RAN",
            "LAST ACTIVITY",
            "CREDENTIAL",
            "CALLS ITSELF",
            "RUNS IN",
            "TITLE",
        ),
        rows,
        60,
    )
    return exit_codes.OK


def granted(grant: models.Grant | None) -> str:
    """Return how long an agent runs code without asking, after its name; empty if it asks."""
    if grant is None:
        return ""
    end = "restart" if grant.until is None else _time(grant.until)
    return f" (granted until {end})"


def _show_options(parser: ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="of a session (s_…) or an execution (x_…)")
    parser.add_argument(
        "--whole", action="store_true", help="print only the whole text output of an execution"
    )
    parser.add_argument("--images", metavar="DIR", help="save images in this folder")


@command("show", "show a session and its executions, or one execution", _show_options)
def show(arguments: Namespace, console: Console) -> int:
    """Show a session with its executions, or one execution."""
    if not arguments.id.startswith(("s_", "x_")):
        raise UsageError(f"An id begins with s_ (session) or x_ (execution): {arguments.id!r}.")
    folder = image_folder(arguments.images)
    with connected(arguments, console) as client:
        if arguments.id.startswith("x_"):
            _show_execution(client, arguments, console, folder)
        else:
            _show_session(client.session(arguments.id), arguments, console, folder)
    return exit_codes.OK


@command("guide", "print a guide to a session for language models", session_id)
def guide(arguments: Namespace, console: Console) -> int:
    """Print what a language model should know before it works in a session."""
    with connected(arguments, console) as client:
        text = client.session(arguments.session).guide()
    if arguments.json:
        console.json({"session_id": arguments.session, "text": text})
    else:
        console.text(text)
    return exit_codes.OK


def _search_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "query",
        metavar="WORDS",
        nargs="?",
        default="",
        help="words to search for; without them, all executions are listed",
    )
    parser.add_argument(
        "--status",
        choices=sorted(FINAL_STATUSES),
        metavar="STATUS",
        help="only executions with this status",
    )
    parser.add_argument("--session", metavar="ID", help="only executions of this session")
    parser.add_argument("--has-image", action="store_true", help="only executions with an image")
    parser.add_argument(
        "--review",
        choices=(*get_args(Verdict), "none"),
        help="only executions with this verdict; none: not reviewed yet",
    )
    _whose_and_when(parser)
    limit(parser, 20)


@command("search", "search sources, outputs and errors, newest first", _search_options)
def search(arguments: Namespace, console: Console) -> int:
    """Search the history, or what was sent to a sink."""
    with connected(arguments, console) as client:
        hits = list(
            client.search(
                arguments.query,
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
    if arguments.json:
        console.json(hits)
        return exit_codes.OK
    rows = (
        (
            hit.execution_id,
            hit.status,
            _time(hit.accepted_at),
            quoted(one_line(hit.agent, 24)),
            (hit.snippet or hit.source).replace("\u2068", "«").replace("\u2069", "»"),
        )
        for hit in hits
    )
    console.table(("EXECUTION", "STATUS", "TIME", "CALLS ITSELF", "MATCH"), rows, 80)
    return exit_codes.OK


def _export_options(parser: ArgumentParser) -> None:
    parser.add_argument("session", metavar="SESSION", help="the session's id")
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="the file to write (SESSION.ipynb); - for standard output",
    )
    parser.add_argument(
        "--clean",
        action="store_true",
        help="indented and without our metadata, for git, nbdime, jupytext and papermill",
    )
    parser.add_argument("--journal", metavar="FILE", help="also write the raw record to this file")
    parser.add_argument(
        "--requirements",
        metavar="FILE",
        help="also write the packages that its kernel had to this file, such as requirements.txt",
    )
    parser.add_argument("-f", "--force", action="store_true", help="overwrite existing files")


@command("export", "write a session as a notebook", _export_options)
def export(arguments: Namespace, console: Console) -> int:
    """Write a session's notebook to a file, and what the options name beside it."""
    piped = arguments.output == "-"
    notebook = _writable(arguments.output or f"{arguments.session}.ipynb")
    journal = _writable(arguments.journal) if arguments.journal else None
    requirements = _writable(arguments.requirements) if arguments.requirements else None
    for file in (None if piped else notebook, journal, requirements):
        if file is not None and file.exists() and not arguments.force:
            question = f"Overwrite {file}?"
            if not console.confirmed(question, f"{file} exists; --force overwrites it."):
                return exit_codes.STOPPED
    written: dict[str, str] = {}
    with connected(arguments, console) as client:
        session = client.session(arguments.session)
        if piped:
            _pipe(session, clean=arguments.clean)
        else:
            written["notebook"] = str(session.export(notebook, clean=arguments.clean))
        if journal is not None:
            written["journal"] = str(session.journal(journal))
        if requirements is not None:
            requirements.write_text(session.requirements(), "utf-8")
            written["requirements"] = str(requirements)
        chain = client.session(session.id).info.chain
    if piped:
        return exit_codes.OK
    if arguments.json:
        console.json({"session_id": session.id, "chain": chain, **written})
        return exit_codes.OK
    for kind, path in written.items():
        console.line(f"{kind}  {path}")
    console.note(
        f"chain head {chain.head}, {counted(chain.length, 'entry')}: `verify --head` takes it"
    )
    return exit_codes.OK


def _pipe(session: Session, *, clean: bool) -> None:
    """Write a session's notebook to standard output, with the server's exact bytes."""
    with tempfile.TemporaryDirectory() as folder:
        path = session.export(Path(folder) / "export.ipynb", clean=clean)
        sys.stdout.buffer.write(path.read_bytes())


def _show_session(
    session: Session, arguments: Namespace, console: Console, folder: Path | None
) -> None:
    results = list(session.executions())
    if arguments.json:
        executions = [result.execution for result in results]
        console.json({"session": session.info, "executions": executions})
    else:
        info = session.info
        title = quoted(one_line(info.title, 80)) if info.title else ""
        console.line(f"{info.id}  {info.status}  {title}".rstrip())
        who = credential(info.token)
        called = quoted(one_line(info.agent.name, 200)) + granted(info.grant)
        since = _time(info.opened_at)
        console.line(f"{who}, for {person(info.username)}, since {since}; calls itself {called}")
        console.line(f"runs in {_target(info)}{_opened_as(info)}")
        for result in results:
            console.line()
            _describe(result, console)
    if folder is not None:
        for result in results:
            save_images(result, folder, console)


def _show_execution(
    client: AgentExecClient, arguments: Namespace, console: Console, folder: Path | None
) -> None:
    result = client.execution(arguments.id)
    if arguments.json:
        console.json(result.execution)
    elif arguments.whole:
        _write_whole_text(client, result.id, console)
    else:
        _describe(result, console)
    if folder is not None:
        save_images(result, folder, console)


def _write_whole_text(client: AgentExecClient, execution_id: str, console: Console) -> None:
    offset: int | None = 0
    while offset is not None:
        part = client.text(execution_id, offset)
        console.text(part.text)
        offset = part.next_offset
    if part.omitted_bytes:
        console.note(f"{size(part.omitted_bytes)} more were printed and not kept")


def _describe(result: Result, console: Console) -> None:
    execution = result.execution
    console.line(f"[{execution.seq}] {result.id}  {_time(execution.accepted_at)}  {result.summary}")
    for line in said(execution):
        console.line(f"  {one_line(line, 500)}")
    for line in execution.source.rstrip("\n").split("\n"):
        console.line(f"  | {line}")
    if execution.text:
        console.text(execution.text.rstrip("\n") + "\n")
    if execution.document is not None:
        console.line(f"  {placed(execution.document)}")


def _target(info: models.Session) -> str:
    if isinstance(info.target, models.KernelTarget):
        return f"kernel {info.target.kernel_id}"
    if isinstance(info.target, models.NotebookTarget):
        return info.path or info.target.path
    return "scratch"


def _opened_as(info: models.Session) -> str:
    if not isinstance(info.target, models.NotebookTarget) or info.path in (None, info.target.path):
        return ""
    return f", opened as {info.target.path}"


def _time(at: str) -> str:
    """Return an RFC 3339 time without fractions of a second, in a readable form."""
    return at[:19].replace("T", " ") + ("Z" if at.endswith("Z") else at[19:])


def _writable(word: str) -> Path:
    path = Path(word)
    if path.is_dir():
        raise UsageError(f"{word} is a folder; name a file.")
    if not path.parent.is_dir():
        raise UsageError(f"There is no folder {path.parent}.")
    return path


_LINES: Final = 10
"""Maximum lines to show of a cell's source, and of its outputs."""


@command(
    "notebooks", "list notebooks that are open or have a kernel, and the agents that work in them"
)
def notebooks(arguments: Namespace, console: Console) -> int:
    """List the notebooks that are open or have a kernel."""
    with connected(arguments, console, may_start=False) as client:
        found = client.notebooks()
        if arguments.json:
            console.json(found)
            return exit_codes.OK
        rows = [
            (
                notebook.path,
                _where(notebook),
                "-" if notebook.kernel is None else notebook.kernel.execution_state,
                "-" if notebook.kernel is None else notebook.kernel.name,
                "-" if notebook.kernel is None else notebook.kernel.id,
                _agents(client, notebook),
            )
            for notebook in found
        ]
    console.table(("NOTEBOOK", "OPEN IN", "STATE", "KERNEL", "KERNEL ID", "AGENTS"), rows, 60)
    return exit_codes.OK


def _cells_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "path",
        metavar="PATH",
        help="the notebook's path from the server's root, as `notebooks` lists it",
    )


@command("cells", "show a notebook's cells as they are now", _cells_options)
def cells(arguments: Namespace, console: Console) -> int:
    """Show a notebook's cells, with the first lines of their sources and outputs."""
    with connected(arguments, console, may_start=False) as client:
        notebook = client.cells(arguments.path)
    if arguments.json:
        console.json(notebook)
        return exit_codes.OK
    for cell in notebook.cells:
        console.line(_head(cell))
        _show(cell.source, "  | ", console)
        _show(cell.text, "  ", console)
        console.line()
    console.note(f"{notebook.path}: {counted(len(notebook.cells), 'cell')}, hash {notebook.hash}")
    return exit_codes.OK


def _where(notebook: OpenNotebook) -> str:
    if notebook.via == "collaboration":
        return "live document"
    if notebook.tabs == 0:
        return "-"
    tabs = counted(notebook.tabs, "tab")
    return f"{tabs}, unsaved" if notebook.unsaved else tabs


def _agents(client: AgentExecClient, notebook: OpenNotebook) -> str:
    sessions = [client.session(session_id).info for session_id in notebook.session_ids]
    return ", ".join(f"{_who(info)} ({info.id})" for info in sessions)


def _who(info: models.Session) -> str:
    called = quoted(one_line(info.agent.name, 24))
    return called if info.token is None else f"{one_line(info.token.label, 24)} {called}"


def _head(cell: NotebookCell) -> str:
    head = f"{cell.id or f'cell {cell.index}, without an id'}  {cell.cell_type}"
    if cell.execution_count is not None:
        head += f" [{cell.execution_count}]"
    if cell.agent is not None:
        head += f"  by an agent that calls itself {quoted(one_line(cell.agent, 24))}"
    return head if cell.execution_id is None else f"{head}, {cell.execution_id}"


def _show(text: str, margin: str, console: Console) -> None:
    lines = text.rstrip("\n").split("\n") if text.strip() else []
    for line in lines[:_LINES]:
        console.line(f"{margin}{line}".rstrip())
    if len(lines) > _LINES:
        console.line(f"{margin}… {counted(len(lines) - _LINES, 'more line')} (--json has all)")


def _names_options(parser: ArgumentParser) -> None:
    parser.add_argument("session", metavar="SESSION", help="the session's id; it must be open")
    parser.add_argument(
        "match", metavar="TEXT", nargs="?", help="only names that contain this text"
    )
    limit(parser, 100)


@command("variables", "list the variables of a session's kernel", _names_options)
def variables(arguments: Namespace, console: Console) -> int:
    """List the variables of a session's kernel."""
    with connected(arguments, console, may_start=False) as client:
        found = client.session(arguments.session).variables(arguments.match, limit=arguments.limit)
    if arguments.json:
        console.json(found)
        return exit_codes.OK
    rows = [(each.name, each.type, _size(each), each.preview or "") for each in found.variables]
    console.table(("NAME", "TYPE", "SIZE", "VALUE"), rows, 80)
    _note_more(found.more, console)
    return exit_codes.OK


@command("packages", "list the packages that a session's kernel can import", _names_options)
def packages(arguments: Namespace, console: Console) -> int:
    """List the packages that code in a session's kernel can import."""
    with connected(arguments, console, may_start=False) as client:
        found = client.session(arguments.session).packages(arguments.match, limit=arguments.limit)
    if arguments.json:
        console.json(found)
        return exit_codes.OK
    rows = [
        (each.name, one_line(each.version, 30), ", ".join(each.import_names))
        for each in found.packages
    ]
    console.table(("PACKAGE", "VERSION", "IMPORTED AS"), rows, 80)
    _note_more(found.more, console)
    return exit_codes.OK


def _size(variable: Variable) -> str:
    if variable.shape is not None:
        return " × ".join(map(str, variable.shape)) or "scalar"
    return "" if variable.length is None else str(variable.length)


def _note_more(more: int, console: Console) -> None:
    if more:
        console.note(f"{more} more (--limit N, or a part of their names)")
