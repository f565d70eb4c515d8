"""The command line shows the edits that agents propose, keeps and rejects them, and undoes that."""

from __future__ import annotations

from pathlib import Path

from jupyter_agent_exec.client import AgentExecClient, InsertCell, ReplaceCell
from jupyter_agent_exec.types import CellId
from tests.cli.command import Cli
from tests.notebooks.notebooks_made import File, as_written, code, persons_notebook
from tests.real_server import RealServer

SCOPES = ("exec:notebook", "edit:notebook")


def test_edits_are_shown_kept_and_rejected(server: RealServer, tmp_path: Path) -> None:
    cli = Cli(server.environ, tmp_path)
    file = File(server.root_dir / "proposed.ipynb")
    file.text = as_written(persons_notebook(code("mine", "x = 1\ny = 1")))
    before = file.text
    minted = cli(
        "token", "new", "proposes", "--edits", "propose", *(f"--scope={s}" for s in SCOPES)
    )
    with AgentExecClient(server.url, minted.stdout.strip()) as client:
        session = client.open_session("agent\u202e", notebook="proposed.ipynb")
        session.edit(
            [
                ReplaceCell(cell_id=CellId("mine"), source="x = 1\ny = 2"),
                InsertCell(cell_type="code", source="z = 3\u202e"),
            ]
        )
        shown = cli("proposals", "proposed.ipynb").stdout
        assert f"{session.id}  “agent<U+202E>”, for " in shown
        assert "     | x = 1\n   - | y = 1\n   + | y = 2\n" in shown
        assert "   + | z = 3<U+202E>\n" in shown
        assert file.text == before
        changed, added = (edit.id for each in session.proposals() for edit in each.edits)
        assert cli("keep", session.id, changed).stdout == f"{changed}  kept\n"
        assert "y = 2" in file.text
        assert cli("reject", session.id).stdout == f"{added}  rejected\n"
        assert "z = 3" not in file.text
        undone = cli("undo", session.id, changed, added).stdout
        assert sorted(undone.splitlines()) == sorted(f"{id}  open" for id in (changed, added))
        assert "y = 1" in file.text
        assert cli("reject", "x_1", changed).returncode == 2
        cli("reject", session.id)
        assert cli("proposals").stderr == "No edits are proposed.\n"
        session.close()
