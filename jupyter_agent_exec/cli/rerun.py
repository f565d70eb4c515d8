"""`jupyter agent-exec rerun`: run recorded code again, and say how its outputs compare."""

from __future__ import annotations

import copy
import json
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Final

from ..client import AgentExecClient
from ..counts import counted
from ..models import Rerun, RerunCell, RerunRules, RunAgain
from ..types import RerunVerdict, SessionId
from . import exit_codes
from .command import command
from .command_client import connected, decided
from .console import Colour, Console
from .usage import UsageError, seconds

_COLOURS: Final[dict[RerunVerdict, Colour]] = {"same": "green", "differs": "red", "failed": "red"}


_EPILOG: Final = """\
The code runs in a fresh kernel, in a session of its own. Memory addresses, the time of the run,
durations, folders, ids and the last digits of floats do not count.

exit codes: 0 all outputs are as before, 1 one differs or fails, 2 usage, 3 no server or no
connection, 4 the server refused, 5 the session was closed before the end.

examples:
  jupyter agent-exec rerun s_01…
  jupyter agent-exec rerun analysis.ipynb --isolated
  jupyter agent-exec rerun analysis.ipynb --ignore 'seed \\d+' --float-tolerance 0.001"""


def _options(parser: ArgumentParser) -> None:
    defaults = RerunRules()
    parser.add_argument(
        "what", metavar="WHAT", help="a session's id (s_…), or a notebook file with its outputs"
    )
    parser.add_argument("--kernel-name", metavar="NAME", help="kernelspec; else as before")
    parser.add_argument(
        "--cwd", metavar="PATH", help="folder of the kernel, from the server's root; else as before"
    )
    parser.add_argument(
        "--isolated",
        action="store_true",
        help="keep the kernel apart from the server, its network and its other files",
    )
    parser.add_argument(
        "--timeout", type=seconds, metavar="SECONDS", help="for each cell; else as before"
    )
    parser.add_argument(
        "--save",
        metavar="DIR",
        help="write before.ipynb and now.ipynb in this folder, for nbdiff and nbdiff-web",
    )
    parser.add_argument(
        "--ignore",
        action="append",
        default=[],
        metavar="REGEX",
        help="text that matches does not count; may be repeated",
    )
    for name, default, help_ in (
        ("--float-tolerance", defaults.float_tolerance, "relative difference of floats"),
        ("--image-tolerance", defaults.image_tolerance, "difference of images, from 0 to 1"),
    ):
        parser.add_argument(
            name, type=float, default=default, metavar="N", help=f"{help_} (%(default)s)"
        )


@command(
    "rerun",
    "run a session's or a notebook's code again, and compare the outputs",
    _options,
    epilog=_EPILOG,
)
def rerun(arguments: Namespace, console: Console) -> int:
    """Run code again, show each cell's verdict as it comes, and return the exit code."""
    request = _request(arguments)
    with connected(arguments, console) as client:
        started = decided(client, console, lambda: client.start_rerun(request))
        told = _followed(client, started, console, is_shown=not arguments.json)
        if arguments.save is not None:
            _save(Path(arguments.save), request, told, client)
    if arguments.json:
        console.json(told)
    else:
        counts: dict[str, int] = {}
        for cell in told.cells:
            counts[cell.verdict] = counts.get(cell.verdict, 0) + 1
        console.line(", ".join(f"{count} {_words(name)}" for name, count in counts.items()))
        console.note(f"the new executions are in session {told.session_id}")
    if told.status != "finished":
        console.complain(
            f"The session was closed after {len(told.cells)} of {counted(told.total, 'cell')}."
        )
        return exit_codes.STOPPED
    bad = any(cell.verdict in ("differs", "failed") for cell in told.cells)
    return exit_codes.FAILED if bad else exit_codes.OK


def _request(arguments: Namespace) -> RunAgain:
    rules = RerunRules(
        ignore=arguments.ignore,
        float_tolerance=arguments.float_tolerance,
        image_tolerance=arguments.image_tolerance,
    )
    path = Path(arguments.what)
    is_session = arguments.what.startswith("s_") and not path.exists()
    try:
        notebook = None if is_session else json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} is no session's id, and no notebook: {error}.") from error
    return RunAgain(
        session_id=SessionId(arguments.what) if is_session else None,
        notebook=notebook,
        kernel_name=arguments.kernel_name,
        cwd=arguments.cwd,
        isolated=arguments.isolated,
        timeout=arguments.timeout,
        rules=rules,
    )


def _followed(client: AgentExecClient, told: Rerun, console: Console, *, is_shown: bool) -> Rerun:
    """Wait for the end, and show each cell when it is compared."""
    shown = 0
    for file in told.inputs:
        if is_shown:
            colour: Colour | None = None if file.verdict == "same" else "red"
            console.line(f"uploaded file {file.path}  {file.verdict}", colour)
    while True:
        for number, cell in enumerate(told.cells[shown:], shown + 1):
            if is_shown:
                _show(number, cell, told.total, console)
        shown = len(told.cells)
        if told.status != "running":
            return told
        told = client.rerun(told.session_id, seen=shown)


def _show(number: int, cell: RerunCell, total: int, console: Console) -> None:
    why = "" if cell.reason is None else f"  {cell.reason}"
    line = f"{number}/{total}  {cell.cell_id}  {_words(cell.verdict)}{why}"
    console.line(line, _COLOURS.get(cell.verdict))
    for difference in cell.differences:
        console.line(f"    {difference.what}")
        for changed in difference.diff.split("\n") if difference.diff else ():
            console.text(f"      {changed}\n")


def _save(folder: Path, request: RunAgain, told: Rerun, client: AgentExecClient) -> None:
    """Write what ran as a notebook with the outputs from before, and as one with those now.

    Raises
    ------
    UsageError
        The folder cannot be written.
    """
    before = request.notebook
    if before is None:
        before = client.session(told.of or "").export(clean=True)
    now = copy.deepcopy(before)
    cells = [cell for cell in now["cells"] if cell["cell_type"] == "code"]
    for cell, rerun in zip(cells, told.cells, strict=False):
        if rerun.execution_id is not None:
            fresh = client.execution(rerun.execution_id).cell
            cell["outputs"], cell["execution_count"] = fresh["outputs"], fresh["execution_count"]
            cell["metadata"].pop("agent_exec", None)  # it is about the outputs before
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, notebook in (("before", before), ("now", now)):
            text = json.dumps(notebook, ensure_ascii=False, indent=1)
            (folder / f"{name}.ipynb").write_text(f"{text}\n", "utf-8")
    except OSError as error:
        raise UsageError(f"--save: {folder} cannot be written: {error.strerror}.") from error


def _words(verdict: str) -> str:
    return verdict.replace("_", " ")
