"""A history in another format than the one that is read: left as it is, and named as such."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jupyter_agent_exec.errors import HistoryUnavailable
from jupyter_agent_exec.journal import chain
from jupyter_agent_exec.journal.findings import Outcome, Report
from jupyter_agent_exec.journal.verify import verify_history
from jupyter_agent_exec.models import Erase, SessionsQuery
from tests.audit.rewriting import journals, write_anew
from tests.journal.recorded import PERSON, PNG, closed, display, new_history, opened, run, stream


@pytest.fixture(params=[None, 3])
def folder(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A history whose chains are as they should be, in a format whose payloads have no salts."""
    folder = tmp_path / "agent_exec"
    history = new_history(folder)
    session = history.open_session(opened())
    run(session, 1, "plot()", [stream("x" * 9000), display({"image/png": PNG})])
    session.close(closed())
    history.stop()

    def change(entry: dict[str, Any]) -> None:
        del entry["format"]
        if request.param is not None:
            entry["format"] = request.param

    write_anew(folder, change)
    for path in journals(folder):
        lines = map(chain.parse_line, path.read_bytes().splitlines())
        without_salts = (
            chain.format_line(each.hash, each.canonical, each.payloads) for each in lines
        )
        path.write_bytes(b"".join(without_salts))
    (folder / "index.sqlite").unlink()
    return folder


def record(folder: Path) -> dict[Path, bytes]:
    """Return the files of the record, and the marks of what is being erased from it."""
    kinds = ("ledger-*.jsonl", "ledger-*.head", "sessions/*/journal.jsonl", "sessions/*/blobs/*")
    paths = [path for kind in (*kinds, "erasing/*") for path in folder.glob(kind)]
    assert len(paths) >= len(kinds)
    return {path: path.read_bytes() for path in paths}


def test_a_server_leaves_it_as_it_is_and_says_why_nothing_runs(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (session,) = folder.glob("sessions/*")
    (folder / "erasing").mkdir(exist_ok=True)
    (folder / "erasing" / session.name).touch()
    before = record(folder)
    history = new_history(folder)
    assert "cannot read the format of this history" in caplog.text
    with pytest.raises(HistoryUnavailable, match="cannot read the format of this history"):
        history.open_session(opened())
    assert not history.sessions(SessionsQuery()).sessions
    for wanted in (Erase(session_id=session.name), Erase(text="plot", dry_run=True)):
        with pytest.raises(HistoryUnavailable, match="cannot read the format of this history"):
            history.erase(wanted, PERSON)
    history.settle()
    history.stop()
    assert record(folder) == before


def named(report: Report) -> list[str]:
    """Return the messages about formats; there are no others."""
    assert report.outcome is Outcome.ALTERED
    messages = [finding.message for finding in report.findings]
    assert all("have a format that this version does not read" in each for each in messages)
    return messages


def test_verify_names_the_format_once_for_each_file_and_nothing_else(folder: Path) -> None:
    assert len(named(verify_history(folder))) == 2


def test_verify_of_a_copy_at_a_sink_names_it_too(folder: Path, tmp_path: Path) -> None:
    far = tmp_path / "far"
    for path in (*folder.glob("ledger-*.jsonl"), *folder.glob("sessions/*/journal.jsonl")):
        name = path.parent.name if path.name == "journal.jsonl" else path.stem
        (far / name).mkdir(parents=True)
        (far / name / "0.jsonl").write_bytes(path.read_bytes())
    assert len(named(verify_history(far))) == 2
