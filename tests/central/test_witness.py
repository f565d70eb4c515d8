"""`verify --witness`: the chains here, compared with what a sink has got of them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jupyter_agent_exec.audit.sink_settings import make_sinks
from jupyter_agent_exec.cli import main
from jupyter_agent_exec.journal.verify import verify_journal
from tests.audit.far_sides import until
from tests.audit.rewriting import cut, journals, ledger_of, write_anew
from tests.journal.recorded import closed, new_history, opened, run

Verify = Callable[..., tuple[int, dict[str, Any]]]


def write(folder: Path, far: Path, sessions: int = 1) -> None:
    """Write closed sessions, and send them."""
    sink = {"kind": "folder", "path": str(far), "delay": 0, "server": "one"}
    history = new_history(folder, make_sinks([sink]))
    try:
        for _ in range(sessions):
            session = history.open_session(opened())
            run(session, 1, "1", [])
            session.close(closed())
        until(lambda: set(history.followers.lags().values()) == {0})
    finally:
        history.stop()


@pytest.fixture(scope="module")
def witnessed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("witnessed")
    write(folder / "here", folder / "far", 2)
    return folder


@pytest.fixture
def here(witnessed: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(witnessed / "here", tmp_path / "here"))


@pytest.fixture
def verify(witnessed: Path, capsys: pytest.CaptureFixture[str]) -> Verify:
    def verify(*words: object) -> tuple[int, dict[str, Any]]:
        code = main(["verify", "--json", "--witness", str(witnessed / "far"), *map(str, words)])
        return code, json.loads(capsys.readouterr().out)

    return verify


def test_what_the_witness_has_is_said(here, verify, witnessed):
    code, report = verify(here)
    assert code == 0
    told = report["held"]["told"]
    assert told.startswith(f"Witnessed by {witnessed / 'far'}: 3 of 3 chains, 3 of them to their")
    assert "only hash chains" not in told
    history = new_history(here)
    history.open_session(opened()).close(closed())
    history.stop()
    code, report = verify(here)
    assert code == 0
    assert "only hash chains hold it" in report["held"]["told"]
    new = next(each for each in report["held"]["chains"] if each["witnessed"] is None)
    assert (new["unheld_from"], new["entries"]) == (0, 2)
    code, report = verify(ledger_of(here))
    (chain,) = report["held"]["chains"]
    assert chain["witnessed"]["entries"] == chain["unheld_from"] == 5


def test_a_history_written_anew_is_found_by_the_witness(here, verify):
    write_anew(here)
    code, report = verify(here)
    assert code == 1
    told = [each["message"] for each in report["findings"]]
    assert len(told) == 3
    assert all("Entry 0, or one before it, is not what the witness" in each for each in told)


def test_a_history_rolled_back_is_found_by_the_witness(tmp_path, capsys):
    here, far = tmp_path / "here", tmp_path / "far"
    write(here, far)
    shutil.copytree(here, tmp_path / "older")
    write(here, far)
    assert main(["verify", str(here), "--witness", str(far)]) == 0
    assert main(["verify", str(tmp_path / "older")]) == 0
    capsys.readouterr()
    assert main(["verify", str(tmp_path / "older"), "--witness", str(far)]) == 3
    assert f"which the witness {far} has" in capsys.readouterr().out


def test_a_journal_cut_off_is_found_by_the_witness(here, verify):
    journal = journals(here)[0]
    cut(journal, 1)
    assert verify_journal(journal).findings == []
    assert verify(journal)[0] == 3


def test_another_history_in_the_place_of_this_one_is_found(here, verify, tmp_path):
    new = tmp_path / "new"
    history = new_history(new)
    history.open_session(opened()).close(closed())
    history.stop()
    code, report = verify(new)
    assert (code, report["findings"][0]["message"]) == (5, "The witness has nothing of this.")
    for path in new.glob("ledger-*"):
        shutil.copy(path, here)
    ledgers = [path for path in here.glob("ledger-*.jsonl") if not (new / path.name).exists()]
    ledgers[0].unlink()
    ledgers[0].with_suffix(".head").unlink()
    told = [each["message"] for each in verify(here)[1]["findings"]]
    assert "The witness has this ledger of the same server; it is not here." in told
