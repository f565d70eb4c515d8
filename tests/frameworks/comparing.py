"""Run all probes on the frameworks' own executors and on ours; writes comparison.md.

`make comparison`, which makes the environments before. Names of frameworks limit it to these; the
others stay in the page as they were found before.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import psutil

PROJECT = Path(__file__).parent.parent.parent
HERE = PROJECT / "tests" / "frameworks"
JSON = PROJECT / "docs" / "explanation" / "comparison.json"
PAGE = PROJECT / "docs" / "explanation" / "comparison.md"

FRAMEWORKS = {
    "lagent": "lagent",
    "autogen": "AutoGen 0.4+",
    "autogen02": "AutoGen 0.2",
    "pantheon": "Pantheon",
}
"""How each is called, by the name of its environment."""
DISTRIBUTIONS = {
    "lagent": "lagent",
    "autogen": "autogen-ext",
    "autogen02": "autogen-agentchat",
    "pantheon": "pantheon-agents",
}
NOTES = {
    "lagent": "Its `IPythonInterpreter`, whose timeout is in whole seconds.",
    "autogen": "Its `JupyterCodeExecutor`. Its executors in a container or in the cloud were not "
    "tested.",
    "autogen02": "Its `EmbeddedIPythonCodeExecutor`. Its executor with a Jupyter server was not "
    "tested.",
    "pantheon": "It has no timeout. A `TimeoutError` in its column means that the probe stopped "
    "waiting, after the number of seconds that ours had as a timeout. “Two agents” are two tool "
    "sets here, not two clients of one tool set.",
}
"""What was tested of each framework."""
SIDES = ("theirs", "ours")
GRACE = 1.0
"""Seconds after its moment within which what is looked for must have happened."""
LIMIT_SECONDS = 120.0
"""Of one probe; who has not answered by then is taken to hang."""
MARK = "AGENT_EXEC_LOOK"
RIGHT = "as it should be"

_JUPYTERS = ("JUPYTER", "JPY_")
"""How variables of a server's own begin, and those that would lead an executor elsewhere."""

TOP = """\
# The executors of agent frameworks, compared with ours

`make comparison` writes this page. It runs the same code in a framework's own executor and in
[ours for that framework](../how-to/frameworks/index.md), on the same machine, with a new process
for each probe.
Each probe is a function in `tests/frameworks/probes*.py`. The tests of each adapter run the probes
too, and also check that each execution left exactly one valid cell in the history. Times such as
“within a second” were measured on a machine that others used at the same time. Our executors used
the server that an adapter starts by default, which keeps up to 100 MB of an execution's output. A
server that you name keeps as much as it is configured to keep.

Some differences are differences of purpose, not faults: an executor for short scripts of one user
does not need to do everything that is tested here.

| expected | {frameworks} |
| --- | {rules} |
{rows}

Each cell shows theirs / ours. “–” means that there is nothing to judge. An empty cell means that
the probe was not run.
"""

SECTION = """
## {title}

{note}
"""

LOOKED = """
{subject}, on Python {python}, {date}. The probes with a result other than “as it should be”:

| expected | theirs | ours |
| --- | --- | --- |
{rows}
"""


def main() -> int:
    """Look at the frameworks that the command line names, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("frameworks", nargs="*", metavar="framework")
    parser.add_argument("--probe", action="append", help="this one; may be repeated")
    arguments = parser.parse_args()
    told: dict[str, Any] = json.loads(JSON.read_text()) if JSON.exists() else {}
    for framework in arguments.frameworks or FRAMEWORKS:
        for name, found in _compared(framework, arguments.probe):
            told.setdefault(framework, {})[name] = found
            JSON.write_text(json.dumps(told, indent=2, ensure_ascii=False) + "\n")
            PAGE.write_text(page(told))
    return 0


def page(told: Mapping[str, Any]) -> str:
    """Return the page for people."""
    frameworks = [name for name in FRAMEWORKS if name in told]
    titles = {name: found["title"] for each in frameworks for name, found in told[each].items()}
    rows = [
        f"| {title} | " + " | ".join(_in_short(told[each].get(name)) for each in frameworks) + " |"
        for name, title in titles.items()
    ]
    top = TOP.format(
        frameworks=" | ".join(FRAMEWORKS[each] for each in frameworks),
        rules=" | ".join("---" for _ in frameworks),
        rows="\n".join(rows),
    )
    return top + "".join(_section(each, told[each]) for each in frameworks)


def _section(framework: str, told: Mapping[str, Any]) -> str:
    """Tell of one framework, apart for each version and day that it was looked at."""
    texts = [SECTION.format(title=FRAMEWORKS[framework], note=NOTES[framework])]
    occasions = sorted({_occasion(found) for found in told.values()})
    for subject, python, date in occasions:
        rows = [
            f"| {found['title']} | {_cell(found['theirs'])} | {_cell(found['ours'])} |"
            for found in told.values()
            if _occasion(found) == (subject, python, date)
            and any(found[side]["seen"] != RIGHT for side in SIDES)
        ]
        texts.append(LOOKED.format(subject=subject, python=python, date=date, rows="\n".join(rows)))
    return "".join(texts)


def _occasion(found: Mapping[str, Any]) -> tuple[str, str, str]:
    return found["subject"], found["python"], found["date"]


def _in_short(found: Mapping[str, Any] | None) -> str:
    words = {True: "yes", False: "no", None: "–"}
    return "" if found is None else " / ".join(words[found[side]["right"]] for side in SIDES)


def _cell(side: Mapping[str, Any]) -> str:
    return str(side["seen"]).replace("|", "\\|").replace("<", "\\<").replace("`", "'")


def _compared(framework: str, only: list[str] | None) -> Iterator[tuple[str, dict[str, Any]]]:
    """Give the names of probes, and what each found of one framework."""
    python = PROJECT / ".nox" / framework / "bin" / "python"
    environ = {
        **{name: value for name, value in os.environ.items() if not name.startswith(_JUPYTERS)},
        "PYTHONPATH": os.pathsep.join([str(PROJECT), str(HERE / framework)]),
    }
    distribution = DISTRIBUTIONS[framework]
    versions, titles = _listed(python, environ, distribution)
    for name, title in titles.items():
        if only is None or name in only:
            sides = {side: _looked(python, environ, side, name) for side in SIDES}
            sys.stderr.write(f"{framework}, {name}: {sides}\n")
            yield (
                name,
                {
                    "title": title,
                    "subject": f"{distribution} {versions[distribution]}",
                    "python": versions["python"],
                    "date": datetime.now(UTC).date().isoformat(),
                    **sides,
                },
            )


def _listed(
    python: Path, environ: Mapping[str, str], distribution: str
) -> tuple[dict[str, str], dict[str, str]]:
    """Return what versions an environment has, and the titles of all probes."""
    listed = subprocess.run(
        [
            *(python, "-c"),
            "import importlib.metadata, json, platform, sys, frameworks.probes as p\n"
            "versions = {'python': platform.python_version(),"
            " sys.argv[1]: importlib.metadata.version(sys.argv[1])}\n"
            "titles = {name: probe.title for name, probe in p.PROBES.items()}\n"
            "print(json.dumps([versions, titles]))",
            distribution,
        ],
        env=environ,
        capture_output=True,
        check=True,
    )
    versions, titles = json.loads(listed.stdout)
    return versions, titles


def _looked(python: Path, environ: Mapping[str, str], side: str, probe: str) -> dict[str, Any]:
    """Run one probe on one executor, and leave nothing of it behind."""
    mark = uuid4().hex
    with tempfile.TemporaryDirectory(prefix="agent-exec-look-", ignore_cleanup_errors=True) as made:
        folder = Path(made)
        jupyter = {
            f"JUPYTER_{name}_DIR": f"{made}/{name}" for name in ("CONFIG", "DATA", "RUNTIME")
        }
        log, found = folder / "log", folder / "found.json"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [python, "-m", "tests.frameworks.looking", side, probe, made, str(GRACE)],
                env={**environ, **jupyter, "IPYTHONDIR": f"{made}/ipython", MARK: mark},
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        hung = False
        try:
            process.wait(LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            hung = True
        finally:
            _end_all(mark)
            process.wait()
        if found.exists():
            told: dict[str, Any] = json.loads(found.read_text())
            return told
        lines = log.read_text(errors="replace").strip().splitlines()
        seen = "it did not come back" if hung else f"its program ended: {(lines or [''])[-1][:100]}"
        return {"right": False, "seen": seen}


def _end_all(mark: str) -> None:
    """Kill whatever a look has started and left."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get(MARK) == mark:
                process.kill()


if __name__ == "__main__":
    sys.exit(main())
