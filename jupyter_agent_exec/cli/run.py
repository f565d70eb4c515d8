"""`jupyter agent-exec run`: run code and show its outputs."""

from __future__ import annotations

import signal
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

from ..client import (
    Accepted,
    AgentExecClient,
    Claim,
    Finished,
    OutputChanged,
    Placement,
    Result,
    Session,
    StatusChanged,
)
from ..client.display import one_line, placed, waiting
from ..client.requests import Place
from ..errors import AlreadyFinished, InputNotAsked
from ..models import Input, WaitingFor
from ..text.counts import size_in_words
from . import exit_codes
from .command import any_id, command, option
from .command_client import connected
from .console import Console, LiveView, ask_at_terminal, colour_of
from .usage import UsageError, check_where, image_folder, read_env, read_source, seconds

_EPILOG = """\
examples:
  jupyter agent-exec run '1 + 1'
  jupyter agent-exec run analysis.py --images plots
  generate | jupyter agent-exec run - --json
  jupyter agent-exec run 'x = 2' --keep          prints the session's id
  jupyter agent-exec run 'x * 2' --session s_01…
  jupyter agent-exec run 'df.head()' --notebook work/sales.ipynb
  jupyter agent-exec run --notebook work/sales.ipynb --cell 5f1c2a…

In a user's notebook or kernel, code waits while the user's code runs. A message on standard error
says so.

Ctrl-C cancels the execution (exit code 130). A second Ctrl-C leaves it running."""


def _options(parser: ArgumentParser) -> None:
    what = "code, a file with code, or - for standard input; with --cell, you can leave it out to "
    option(parser, "[SOURCE]", what + "run the cell as it is")
    option(parser, "-c, --code", "SOURCE is code, even if a file has this name")
    option(parser, "--timeout SECONDS", "how long the code may run", type=seconds)
    what = "save images in this folder; it is created if necessary"
    option(parser, "--images DIR", what)
    what = "let the code ask for input, which you type here; passwords are not recorded"
    option(parser, "--stdin", what)
    what = "why the code is run; shown to users who approve or review it"
    option(parser, "--purpose TEXT", what)
    what = "in a sealed copy of the kernel, which sees its variables and changes nothing"
    option(parser, "--trial", what)
    where = parser.add_argument_group("where the code runs", "in a scratch kernel by default")
    target = where.add_mutually_exclusive_group()
    option(target, "--session ID", "in this open session")
    what = "in this notebook and its kernel; a path from the server's root"
    option(target, "--notebook PATH", what)
    option(target, "--kernel ID", "in this running kernel, without a notebook")
    option(where, "--keep", "keep the session open afterwards, with its variables")
    what = "kernelspec for a scratch kernel, or for a notebook that has no kernel yet"
    option(where, "--kernel-name NAME", what)
    option(where, "--cwd PATH", "the kernel's folder; a path from the server's root")
    what = "isolate the scratch kernel from the server, the network and other files"
    option(where, "--isolated", what)
    what = "an environment variable for the kernel, if the server allows it; can be repeated"
    option(where, "--env NAME=VALUE", what, repeated=True)
    option(where, "--agent NAME", "name of the agent (command-line)")
    option(where, "--title TEXT", "what the session is for")
    group = parser.add_argument_group(
        "where the cell goes", "to the end of the notebook by default"
    )
    option(group, "--create", "create an empty notebook if there is none")
    placement = group.add_mutually_exclusive_group()
    option(placement, "--after CELL", "after the cell with this id")
    option(placement, "--before CELL", "before the cell with this id")
    option(placement, "--cell CELL", "run the cell with this id where it is")
    option(placement, "--no-cell", "record the code, but add no cell to the notebook")


@command("run", "run code and show its outputs as they come", _options, epilog=_EPILOG)
def run(arguments: Namespace, console: Console) -> int:
    """Run code, show its outputs and return the exit code."""
    check_where(arguments)
    source = _source(arguments)
    env = read_env(arguments.env)
    folder = image_folder(arguments.images)
    # A server started for this command stops with it, so it cannot keep a session. It also has
    # none of the user's sessions, notebooks or kernels.
    named = (arguments.session, arguments.notebook, arguments.kernel)
    may_start = not arguments.keep and named == (None, None, None)
    with connected(arguments, console, may_start=may_start) as client:
        running = _Running(client, console, LiveView(console))
        with _session(client, arguments, env) as session:
            result = running.finish(session, source, arguments, live=not console.is_json)
        if result.document is not None and result.document.status == "writing":
            result = client.execution(result.id)  # closing a session waits for its cells
        if console.is_json:
            console.json(result.execution)
        if folder is not None:
            try:
                save_images(result, folder, console)
            except OSError as error:  # the code has run, and the exit code says how
                console.complain(f"Not all images were saved: {error}")
        console.note(_summary(result, session, arguments, folder), colour_of(result.status))
        return exit_codes.INTERRUPTED if running.cancelled else exit_codes.of_status(result.status)


def _stop_options(parser: ArgumentParser) -> None:
    any_id(parser)
    then = parser.add_mutually_exclusive_group()
    what = "then restart the session's own scratch kernel; its variables are lost"
    option(then, "--restart", what)
    option(then, "--close", "then close the session; its own scratch kernel is shut down")


@command("stop", "stop what an agent runs in a session and has queued there", _stop_options)
def stop(arguments: Namespace, console: Console) -> None:
    """Stop all of a session, or one execution."""
    is_execution = arguments.id.startswith("x_")
    if is_execution and (arguments.restart or arguments.close):
        raise UsageError("--restart and --close are for a session (s_…).")
    with connected(arguments, console, may_start=False) as client:
        if is_execution:
            client.cancel(arguments.id)
            result = client.wait(arguments.id)
            console.answer(result.execution, f"{result.id}  {result.summary}")
            return
        session = client.session(arguments.id)
        done = "stopped"
        if arguments.close:
            session.close()
            done = "closed"
        else:
            session.interrupt(queued=True)
        if arguments.restart:
            session.restart()
            done = "stopped, and its kernel restarted"
        console.answer(client.session(session.id).info, f"{session.id}  {done}")


class _Running:
    """One execution, from its request to its end. Ctrl-C cancels it."""

    def __init__(self, client: AgentExecClient, console: Console, view: LiveView) -> None:
        self._client = client
        self._console = console
        self._view = view
        self._execution_id: str | None = None
        self._asked_to_stop = False
        self._behind: WaitingFor | None = None
        self._asked: Input | None = None
        self.cancelled = False

    def finish(
        self, session: Session, source: str | None, arguments: Namespace, *, live: bool
    ) -> Result:
        """Run `source`, show its outputs if `live`, and return the result."""
        result: Result | None = None
        events = session.stream(
            source,
            placement=_place(arguments),
            timeout=arguments.timeout,
            claim=None if arguments.purpose is None else Claim(purpose=arguments.purpose),
            trial=arguments.trial,
        )
        with self._ctrl_c():
            try:
                for event in events:
                    if isinstance(event, Accepted):
                        self._accepted(event.result)
                    elif isinstance(event, StatusChanged):
                        self._waits(event.change.waiting_for)
                        self._answer(event.change.input, arguments)
                    elif isinstance(event, Finished):
                        result = event.result
                    elif isinstance(event, OutputChanged) and live:
                        self._view.show(event)
            except KeyboardInterrupt:
                if self._execution_id is None:
                    raise
                self._view.end_line()
                result = self._cancel(self._execution_id)
        assert result is not None
        if live:
            self._view.finish(result.outputs)
        return result

    def _accepted(self, result: Result) -> None:
        self._execution_id = result.id
        if self._asked_to_stop:
            raise KeyboardInterrupt
        self._waits(result.waiting_for)

    def _waits(self, behind: WaitingFor | None) -> None:
        # A wait for the kernel itself is short, so it gets no note.
        if behind is not None and behind.who != "kernel" and behind != self._behind:
            self._console.note(waiting(behind, self._execution_id or ""))
            self._behind = behind

    def _answer(self, asked: Input | None, arguments: Namespace) -> None:
        """Answer the code's input request, or note that it needs an answer."""
        if asked is None or asked == self._asked or self._execution_id is None:
            return
        self._asked = asked
        self._view.end_line()
        if not arguments.stdin:
            self._console.note(
                f"it asks {one_line(asked.prompt, 200)!r}; answer it in JupyterLab, or with --stdin"
            )
            return
        value = ask_at_terminal(asked, self._console)
        with suppress(InputNotAsked):  # it was answered elsewhere
            self._client.give_input(self._execution_id, value, asked_at=asked.asked_at)

    def _cancel(self, execution_id: str) -> Result:
        self.cancelled = True
        self._console.note("Ctrl-C: cancelling the execution (again: leave it alone and go).")
        with suppress(AlreadyFinished):
            self._client.cancel(execution_id)
        return self._client.wait(execution_id)

    @contextmanager
    def _ctrl_c(self) -> Iterator[None]:
        """Delay a Ctrl-C until the execution's id is known; a second Ctrl-C exits at once."""

        def interrupt(_number: int, _frame: FrameType | None) -> None:
            if self._execution_id is not None or self._asked_to_stop:
                raise KeyboardInterrupt
            self._asked_to_stop = True

        before = signal.signal(signal.SIGINT, interrupt)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)


@contextmanager
def _session(
    client: AgentExecClient, arguments: Namespace, env: dict[str, str]
) -> Iterator[Session]:
    if arguments.session is not None:
        yield client.session(arguments.session)
        return
    session = client.open_session(
        arguments.agent or "command-line",
        notebook=arguments.notebook,
        create=arguments.create,
        kernel_id=arguments.kernel,
        kernel_name=arguments.kernel_name,
        cwd=arguments.cwd,
        env=env,
        isolated=arguments.isolated,
        title=arguments.title,
        allow_stdin=arguments.stdin,
    )
    if arguments.keep:
        yield session
        return
    with session:
        yield session


def _source(arguments: Namespace) -> str | None:
    if arguments.source is None:
        return None
    return read_source(arguments.source, is_code=arguments.code)


def _place(arguments: Namespace) -> Place:
    if arguments.no_cell:
        return "none"
    after, before, cell = arguments.after, arguments.before, arguments.cell
    if (after, before, cell) == (None, None, None):
        return "end"
    return Placement(after=after, before=before, cell=cell)


def save_images(result: Result, folder: Path, console: Console) -> None:
    """Write an execution's images into `folder`, and note their paths."""
    for number, image in enumerate(result.images, 1):
        name = f"{result.execution.session_id}-{result.execution.seq}-{number}{image.suffix}"
        saved = image.save(folder / name)
        console.note(f"saved {saved} ({size_in_words(image.bytes)})")


def _summary(result: Result, session: Session, arguments: Namespace, folder: Path | None) -> str:
    parts = [result.summary, result.id]
    if arguments.keep:
        parts.append(f"session {session.id} stays open")
    if result.document is not None and not arguments.no_cell:
        parts.append(placed(result.document))
    omitted = result.execution.omitted
    if omitted.bytes or omitted.outputs:
        parts.append(f"{size_in_words(omitted.bytes)} of output left out")
    if omitted.unknown:
        parts.append("some output may be missing")
    if result.images and folder is None:
        parts.append(f"images: {len(result.images)} (--images DIR saves them)")
    return " · ".join(parts)
