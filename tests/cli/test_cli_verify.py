"""`verify` on histories that were tampered with; no server runs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from jupyter_agent_exec.cli import main
from jupyter_agent_exec.journal.blobs import BlobStore
from jupyter_agent_exec.journal.notebook import journal_notebook
from tests.cli.command import Cli, at_terminal
from tests.cli.conftest import Recorded


@pytest.fixture
def history(recorded: Recorded, tmp_path: Path) -> Path:
    return Path(shutil.copytree(recorded.history, tmp_path / "history"))


def journal_of(history: Path) -> Path:
    (journal,) = history.glob("sessions/*/journal.jsonl")
    return journal


def cut(journal: Path, lines: int) -> None:
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:-lines]))


def test_a_whole_history_is_exit_code_0(cli_alone: Cli, history: Path) -> None:
    done = cli_alone("verify", str(history), "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["outcome"] == "whole"
    done = cli_alone("verify", "--history", str(history))
    assert done.returncode == 0
    assert "and every payload is there.\n" in done.stdout, "nothing was erased"


def test_the_sessions_that_were_checked_are_shown_on_a_terminal(
    cli_alone: Cli, history: Path
) -> None:
    session = journal_of(history).parent
    for number in range(3):
        shutil.copytree(session, session.with_name(f"t_{number}"))
    words = ("verify", str(history))
    code, shown = at_terminal(cli_alone, *words)
    assert (code, "verify: 100%" in shown, "4/4" in shown) == (1, True, True), shown
    for more in (["--json"], ["-q"]):
        assert "verify:" not in at_terminal(cli_alone, *words, *more)[1]
    assert "verify:" not in cli_alone(*words).stderr


def test_an_altered_journal_is_exit_code_1(cli_alone: Cli, history: Path) -> None:
    journal = journal_of(history)
    journal.write_bytes(journal.read_bytes().replace(b"command-line", b"command-lime"))
    done = cli_alone("verify", str(journal))
    assert done.returncode == 1
    assert "Entry 0" in done.stdout


def test_a_journal_cut_before_a_known_head_is_exit_code_3(cli_alone: Cli, history: Path) -> None:
    journal = journal_of(history)
    head = json.loads(journal.read_bytes().splitlines()[-1])["hash"]
    assert cli_alone("verify", str(journal), "--head", head).returncode == 0
    cut(journal, 1)
    assert cli_alone("verify", str(journal)).returncode == 0
    done = cli_alone("verify", str(journal), "--head", head)
    assert (done.returncode, "TRUNCATED" in done.stdout) == (3, True)


def test_a_torn_line_is_exit_code_4(cli_alone: Cli, history: Path) -> None:
    journal = journal_of(history)
    journal.write_bytes(journal.read_bytes()[:-20])
    assert cli_alone("verify", str(journal)).returncode == 4


def test_a_missing_journal_is_exit_code_5(cli_alone: Cli, history: Path) -> None:
    journal = journal_of(history)
    session_id = journal.parent.name
    journal.unlink()
    assert cli_alone("verify", str(history)).returncode == 5
    assert cli_alone("verify", session_id, "--history", str(history)).returncode == 5


def test_an_export_unknown_to_the_ledger_is_found(
    history: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    journal = journal_of(history)
    cut(journal, 1)
    export = tmp_path / "export.ipynb"
    pieces = journal_notebook(journal, BlobStore(journal.parent / "blobs"))
    export.write_text("".join(pieces), "utf-8")
    assert main(["verify", str(export), "--history", str(history)]) == 3
    assert "The ledger says that it has" in capsys.readouterr().out
    alone = shutil.copy(journal, tmp_path / "journal.jsonl")
    assert main(["verify", str(export), "--journal", str(alone)]) == 0


@pytest.mark.parametrize(
    ("words", "word"),
    [
        (["nowhere"], "no file or folder"),
        (["--history", "nowhere"], "no history"),
        ([], "no history"),
        (["--head", "short"], "SHA-256"),
        (["foreign.ipynb"], "not a notebook that was exported"),
        (["strange.ipynb"], "cannot be"),
        (["lonely.ipynb"], "--journal"),
    ],
)
def test_what_cannot_be_checked_is_exit_code_2(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    word: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "data"))
    for name, session_id in (("strange", "../../etc"), ("lonely", "s_1")):
        metadata = {"agent_exec": {"events": [{"session_id": session_id}]}}
        Path(f"{name}.ipynb").write_text(json.dumps({"metadata": metadata}))
    Path("foreign.ipynb").write_text('{"metadata": {}}')
    assert main(["verify", *words]) == 2
    assert word in capsys.readouterr().err
