"""A history that version 0.1 wrote, with all that later versions do not write any more."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import jsonschema
import nbformat
import pytest

from jupyter_agent_exec.journal.findings import Outcome
from jupyter_agent_exec.journal.verify import verify_history
from jupyter_agent_exec.journal.verify_notebook import verify_notebook
from jupyter_agent_exec.models import Erase
from jupyter_agent_exec.records import KINDS
from tests.asking import Agent
from tests.journal.recorded import PERSON, new_history
from tests.journal.test_notebook import SCHEMA

WRITTEN = Path(__file__).parent / "history_0_1"
JOURNALS = sorted(WRITTEN.glob("sessions/*/journal.jsonl"))
SESSIONS = [path.parent.name for path in JOURNALS]


def entries(session_id: str) -> list[dict[str, Any]]:
    journal = (WRITTEN / "sessions" / session_id / "journal.jsonl").read_text().splitlines()
    return [json.loads(line)["entry"] for line in journal]


def unknown(session_id: str) -> list[dict[str, Any]]:
    """Return the entries of kinds that this version does not know."""
    return [entry for entry in entries(session_id) if entry["type"] not in KINDS]


@pytest.fixture
def history_dir(tmp_path: Path) -> Path:
    return Path(shutil.copytree(WRITTEN, tmp_path / "history"))


def test_it_has_each_kind_of_entry_that_went() -> None:
    kinds = {entry["type"] for session_id in SESSIONS for entry in unknown(session_id)}
    assert kinds >= {
        *("kernel_inspected", "files_changed", "rerun_begun", "cell_rerun"),
        *("outputs_shown", "outputs_discarded", "outputs_restored"),
        *("cell_discarded", "cell_restored"),
    }
    ledger = next(WRITTEN.glob("ledger-*.jsonl")).read_text()
    assert '"type":"hold_set"' in ledger


async def test_a_server_opens_it_and_shows_all_of_it(agent: Agent) -> None:
    sessions = (await agent.get("sessions")).json["sessions"]
    assert sorted(session["id"] for session in sessions) == SESSIONS
    for session in sessions:
        listed = (await agent.get(f"sessions/{session['id']}/executions")).json["executions"]
        ended = {
            entry["execution_id"]: entry["status"]
            for entry in entries(session["id"])
            if entry["type"] == "finished"
        }
        assert {each["id"]: each["status"] for each in listed} == ended
        events = (await agent.get(f"sessions/{session['id']}/events")).json["events"]
        told = {(event["n"], event["type"], event["at"]) for event in events}
        plain = unknown(session["id"])
        assert {(entry["n"], entry["type"], entry["at"]) for entry in plain} <= told


async def test_a_plain_entry_tells_its_fields(agent: Agent) -> None:
    [rerun] = [id for id in SESSIONS if any(e["type"] == "rerun_begun" for e in unknown(id))]
    events = (await agent.get(f"sessions/{rerun}/events")).json["events"]
    [begun] = [event for event in events if event["type"] == "rerun_begun"]
    assert begun["text"].startswith("cells: 5, of: s_")
    compared = [event for event in events if event["type"] == "cell_rerun"]
    assert "verdict: differs" in compared[2]["text"]
    assert compared[2]["execution_id"] is not None


async def test_it_verifies_before_and_after_a_server_opened_it(
    agent: Agent, history_dir: Path
) -> None:
    for folder in (WRITTEN, history_dir):
        report = verify_history(folder, patience=5)
        assert (report.outcome, report.findings) == (Outcome.WHOLE, [])


@pytest.mark.parametrize("kind", ["cell_discarded", "cell_rerun", "files_changed"])
def test_a_missing_payload_of_a_kind_that_went_is_found(history_dir: Path, kind: str) -> None:
    journal = next(path for path in history_dir.rglob("journal.jsonl") if kind in path.read_text())
    lines = journal.read_text().splitlines(keepends=True)
    at = next(n for n, line in enumerate(lines) if kind in line and '"payloads"' in line)
    lines[at] = lines[at].partition(',"payloads"')[0] + "}\n"
    journal.write_text("".join(lines))
    report = verify_history(history_dir)
    assert [(finding.outcome, finding.n) for finding in report.findings] == [(Outcome.MISSING, at)]


async def test_each_session_exports_with_what_went_as_plain_entries(agent: Agent) -> None:
    for session_id in SESSIONS:
        exported = (await agent.get(f"sessions/{session_id}/notebook")).json
        nbformat.validate(exported)
        jsonschema.Draft202012Validator(SCHEMA).validate(exported)
        events = {event["n"]: event for event in exported["metadata"]["agent_exec"]["events"]}
        for entry in unknown(session_id):
            assert events[entry["n"]].items() >= entry.items()


@pytest.mark.parametrize("session_id", SESSIONS)
def test_what_0_1_exported_agrees_with_it(session_id: str) -> None:
    exported = WRITTEN / "exports" / f"{session_id}.ipynb"
    report = verify_notebook(exported, WRITTEN / "sessions" / session_id / "journal.jsonl")
    assert (report.outcome, report.findings) == (Outcome.WHOLE, [])


def test_what_it_holds_can_be_erased(history_dir: Path) -> None:
    history = new_history(history_dir)
    history.erase(Erase(agent="analyst"), PERSON)
    history.stop()
    for journal in history_dir.glob("sessions/*/journal.jsonl"):
        opened, *others = journal.read_text().splitlines()
        if json.loads(opened)["entry"]["agent"]["name"] == "analyst":
            assert not any(',"payloads":{' in line for line in others)
    assert verify_history(history_dir).outcome is Outcome.WHOLE
