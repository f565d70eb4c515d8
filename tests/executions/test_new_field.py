"""A new field of an execution is declared in few files, and is shown everywhere."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import jupyter_agent_exec

PACKAGE: Final = Path(jupyter_agent_exec.__file__).parent
REPOSITORY: Final = PACKAGE.parent

MOST_FILES: Final = 5
"""How many files a new field may touch."""
OWN_FILES: Final = 2
"""The code that sets or uses the field, and its test."""

_MODEL: Final = "    review: Annotated[Review | None, Shown.IN_CELL] = None\n"
_SHOWN: Final = "    mood: Annotated[str | None, Shown.IN_CELL_IF_SET] = None\n"

OF_A_REQUEST: Final = {
    "models.py": {
        "    claim: Claim | None = None\n\n\nclass Execute(": (
            "    claim: Claim | None = None\n    mood: str | None = None\n\n\nclass Execute("
        ),
        _MODEL: _MODEL + _SHOWN,
    },
    "records.py": {
        "    claim: Annotated[Claim | None, Mark.FREE_TEXT] = None\n": (
            "    claim: Annotated[Claim | None, Mark.FREE_TEXT] = None\n"
            "    mood: Annotated[str | None, Mark.FREE_TEXT] = None\n"
        ),
    },
    "client/requests.py": {
        "    claim: models.Claim | None\n": (
            "    claim: models.Claim | None\n    mood: str | None\n"
        ),
    },
}
"""What is replaced in which file for a field that an agent's program sends with the code."""

OF_THE_END: Final = {
    "models.py": {_MODEL: _MODEL + _SHOWN},
    "records.py": {
        "    execution_count: int | None = None\n    error: bool = False\n": (
            "    execution_count: int | None = None\n"
            "    mood: str | None = None\n"
            "    error: bool = False\n"
        ),
    },
}
"""The same for a field that is known when the execution ends."""


def shown(
    folder: Path, changes: dict[str, dict[str, str]], asked: dict[str, Any], found: dict[str, Any]
) -> dict[str, Any]:
    """Return what a copy of the package with these changes shows of an execution."""
    copy = folder / "jupyter_agent_exec"
    shutil.copytree(
        PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__", "labextension", "static")
    )
    for name, replaced in changes.items():
        text = (copy / name).read_text()
        for before, after in replaced.items():
            assert text.count(before) == 1, f"{name} does not have {before!r} once"
            text = text.replace(before, after)
        (copy / name).write_text(text)
    ran = subprocess.run(
        [
            *(sys.executable, "-m", "tests.executions.field_reader"),
            *(json.dumps(asked), json.dumps(found)),
        ],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(REPOSITORY)])},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    told: dict[str, Any] = json.loads(ran.stdout)
    return told


def test_a_field_of_a_request_touches_few_files_and_is_shown_everywhere(tmp_path: Path) -> None:
    told = shown(tmp_path, OF_A_REQUEST, {"mood": "calm"}, {})
    accepted = next(each for each in told["entries"] if '"accepted"' in json.dumps(each))
    assert '"mood": "calm"' in json.dumps(accepted)
    for place in ("running", "listed", "answer", "cell"):
        assert told[place]["mood"] == "calm", place
    assert "mood" in told["described"]
    assert "mood" in told["described_request"]
    assert len(OF_A_REQUEST) + OWN_FILES <= MOST_FILES


def test_a_field_of_the_end_touches_few_files_and_is_shown_everywhere(tmp_path: Path) -> None:
    told = shown(tmp_path, OF_THE_END, {}, {"mood": "calm"})
    assert '"mood": "calm"' in json.dumps(told["entries"][-1])
    for place in ("listed", "answer", "cell"):
        assert told[place]["mood"] == "calm", place
    assert "mood" in told["described"]
    assert len(OF_THE_END) + OWN_FILES < MOST_FILES
