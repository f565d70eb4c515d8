"""Run all probes on the frameworks' own executors and on ours; writes comparison.md.

`make comparison`, which makes the environments before. Names of frameworks limit it to these; the
others stay in the page as this working copy found them before.
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
JSON = PROJECT / ".make" / "comparison.json"
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
    "pantheon": "It has no timeout. “Two agents” are two tool sets here, not two clients of one.",
}
"""What was tested of each framework."""
SIDES = ("theirs", "ours")
GRACE = 1.0
"""Seconds after its moment within which what is looked for must have happened."""
LIMIT_SECONDS = 120.0
"""Of one probe; who has not answered by then is taken to hang."""
MARK = "AGENT_EXEC_LOOK"

_JUPYTERS = ("JUPYTER", "JPY_")
"""How variables of a server's own begin, and those that would lead an executor elsewhere."""

TOP = """\
# The executors of agent frameworks, compared with ours

`make comparison` writes this page. It runs the same code in a framework's own executor and in
[ours for that framework](../how-to/frameworks/index.md), on the same machine, with a new process
for each probe, a function in `tests/frameworks/probes*.py`. Some differences are differences of
purpose, not faults: an executor for short scripts of one user does not need all of this.

The cells say whether the framework's own executor does this; “–” means that there is nothing to
judge. Ours always does, except where a cell says “ours: no”. `make comparison` prints what each
probe saw.

| expected | {frameworks} |
| --- | {rules} |
{rows}

{notes}
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
    return TOP.format(
        frameworks=" | ".join(FRAMEWORKS[each] for each in frameworks),
        rules=" | ".join("---" for _ in frameworks),
        rows="\n".join(rows),
        notes="\n".join(_note(each, told[each]) for each in frameworks),
    )


def _note(framework: str, told: Mapping[str, Any]) -> str:
    """Tell of one framework, with each version and day that it was looked at."""
    occasions = sorted(
        {
            f"{found['subject']}, Python {found['python']}, {found['date']}"
            for found in told.values()
        }
    )
    return f"- **{FRAMEWORKS[framework]}** ({'; '.join(occasions)}). {NOTES[framework]}"


def _in_short(found: Mapping[str, Any] | None) -> str:
    if found is None:
        return ""
    theirs = {True: "yes", False: "no", None: "–"}[found["theirs"]["right"]]
    return theirs if found["ours"]["right"] else f"{theirs}; ours: no"


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
