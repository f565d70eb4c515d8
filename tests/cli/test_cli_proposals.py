"""The command line shows the edits that agents propose, and approves and rejects them."""

from __future__ import annotations

import json
from pathlib import Path

from jupyter_agent_exec.client import AgentExecClient, InsertCell, ReplaceCell
from jupyter_agent_exec.types import CellId
from tests.cli.command import Cli, at_terminal
from tests.notebooks.notebooks_made import File, as_written, code, persons_notebook
from tests.real_server import RealServer

SCOPES = ("exec:notebook", "edit:notebook")


def test_edits_are_shown_kept_and_rejected(server: RealServer, tmp_path: Path) -> None:
    cli = Cli(server.environ, tmp_path)
    file = File(server.root_dir / "proposed.ipynb")
    file.text = as_written(persons_notebook(code("mine", "x = 1\ny = 1")))
    before = file.text
    minted = cli(
        "token", "create", "proposes", "--edits", "propose", *(f"--scope={s}" for s in SCOPES)
    )
    with AgentExecClient(server.url, minted.stdout.strip()) as client:
        session = client.open_session("agent\u202e", notebook="proposed.ipynb")
        session.edit(
            [
                ReplaceCell(cell_id=CellId("mine"), source="x = 1\ny = 2"),
                InsertCell(cell_type="code", source="z = 3\u202e"),
            ]
        )
        shown = cli("pending").stdout
        (proposal,) = session.proposals()
        assert f"{proposal.id}  “agent<U+202E>”, for " in shown
        assert "     | x = 1\n   - | y = 1\n   + | y = 2\n" in shown
        assert "   + | z = 3<U+202E>\n" in shown
        assert json.loads(cli("pending", "--json").stdout)["proposals"][0]["id"] == proposal.id
        assert file.text == before
        changed, added = (edit.id for edit in proposal.edits)
        unasked = cli("approve", changed)
        assert (unasked.returncode, "--yes" in unasked.stderr) == (2, True)
        exit_code, asked = at_terminal(cli, "approve", changed, typed="y")
        assert (exit_code, "+ | y = 2" in asked, "z = 3" in asked) == (0, True, False)
        assert f"{changed}  kept\n" in asked
        assert "y = 2" in file.text
        assert cli("reject", proposal.id).stdout == f"{added}  rejected\n"
        assert "z = 3" not in file.text
        for words in (
            ["reject", added],
            ["approve", changed, "-y"],
            ["approve", "p_1", "--edit", "1"],
        ):
            assert cli(*words).returncode == 2
        assert cli("pending").stderr == "Nothing waits for a decision.\n"
        session.close()
