"""The commands of recipes.md do what the page says, typed as they stand there."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from tests.cli.command import Cli
from tests.test_code_blocks import BLOCKS


def commands(heading: str) -> list[str]:
    (block,) = (
        block for block in BLOCKS if (block.page.name, block.heading) == ("recipes.md", heading)
    )
    return [line.removeprefix("$ jupyter agent-exec ") for line in block.text.splitlines()]


@pytest.mark.parametrize(("source", "code"), [("print(6 * 7)", 0), ("1 / 0", 1)])
def test_a_check_runs_where_no_server_runs(cli_alone: Cli, source: str, code: int) -> None:
    run, verify = commands("Run it in continuous integration")
    words, given = run.partition(" < check.py > result.json")[:2]
    assert given
    done = cli_alone(*shlex.split(words), stdin=source)
    assert done.returncode == code
    assert json.loads(done.stdout)["source"] == source
    assert cli_alone(*shlex.split(verify)).returncode == 0


def test_a_changed_export_is_seen(cli: Cli, cli_alone: Cli, tmp_path: Path) -> None:
    export, check = commands("Check a notebook that a colleague sent")
    ran = json.loads(cli("run", "6 * 7", "--keep", "--json").stdout)
    assert cli(*shlex.split(export.replace("s_01…", ran["session_id"]))).returncode == 0
    assert cli_alone(*shlex.split(check)).returncode == 0
    sent = tmp_path / "work.ipynb"
    sent.write_text(sent.read_text().replace("6 * 7", "6 * 8"))
    assert cli_alone(*shlex.split(check)).returncode == 1
