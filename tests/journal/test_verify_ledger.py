"""A ledger that was cut, and what else of a history does not agree with its ledgers."""

from __future__ import annotations

import json
import os
import shutil
import threading
from pathlib import Path

import pytest

from jupyter_agent_exec.journal import chain
from jupyter_agent_exec.journal.findings import Outcome
from jupyter_agent_exec.journal.ledger import Ledger
from jupyter_agent_exec.journal.verify import verify_history, verify_journal, verify_session
from jupyter_agent_exec.records import TokenExtended, TokenRenewed
from jupyter_agent_exec.types import Digest
from tests.journal.recorded import (
    AT,
    BY,
    TOKENS,
    closed,
    lose_lines,
    new_history,
    opened,
    reviewed,
    run,
)


@pytest.fixture
def folder(written: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(written, tmp_path / "agent_exec"))


@pytest.fixture
def ledger(folder: Path) -> Path:
    [path] = folder.glob("ledger-*.jsonl")
    return path


def told(folder: Path) -> list[tuple[Outcome, str]]:
    return [(finding.outcome, finding.message) for finding in verify_history(folder).findings]


def test_each_kind_of_entry_is_there_and_all_is_whole(folder: Path, ledger: Path) -> None:
    kinds = [chain.parse_line(line).entry["type"] for line in ledger.read_bytes().splitlines(True)]
    assert kinds == [
        "ledger_opened", "policy_set", "token_minted", "token_minted", "token_minted",
        "session_opened", "session_closed", "session_amended",
        "session_opened", "token_revoked", "session_closed", "ledger_opened", "access_denied",
        "ledger_opened",
    ]  # fmt: skip
    assert told(folder) == []


def test_a_ledger_cut_at_any_line_is_found(folder: Path, ledger: Path) -> None:
    lines = ledger.read_bytes().splitlines(keepends=True)
    sessions = [path.name for path in (folder / "sessions").iterdir()]
    for count in range(len(lines)):
        ledger.write_bytes(b"".join(lines[:count]))
        assert verify_history(folder).outcome is Outcome.TRUNCATED, count
        assert verify_journal(ledger).outcome is Outcome.TRUNCATED, count
        assert verify_session(folder, sessions[0]).outcome is Outcome.TRUNCATED, count
    ledger.unlink()
    assert (Outcome.MISSING, "The ledger of this head is gone.") in told(folder)


def test_what_stands_elsewhere_tells_of_a_cut_also_without_the_head(
    folder: Path, ledger: Path
) -> None:
    """Only what follows all sessions, tokens and policies is known from the head alone."""
    lines = ledger.read_bytes().splitlines(keepends=True)
    ledger.with_suffix(".head").unlink()
    for count in range(len(lines)):
        ledger.write_bytes(b"".join(lines[:count]))
        unsaid = verify_history(folder).outcome is Outcome.WHOLE
        assert unsaid == (count in (11, 12, 13)), count


def test_a_server_that_goes_on_with_a_cut_ledger_does_not_hide_it(
    folder: Path, ledger: Path
) -> None:
    ledger.write_bytes(b"".join(ledger.read_bytes().splitlines(keepends=True)[:-1]))
    history = new_history(folder)
    session = history.open_session(opened())
    session.close(closed())
    history.stop()
    assert verify_history(folder).outcome is Outcome.TRUNCATED


def test_a_server_that_died_before_it_wrote_the_head_hid_nothing(
    folder: Path, ledger: Path
) -> None:
    head = ledger.with_suffix(".head")
    before = head.read_bytes()
    history = new_history(folder)
    history.stop()
    assert head.read_bytes() != before
    head.write_bytes(before)
    assert told(folder) == []
    new_history(folder).stop()
    assert head.read_bytes() != before
    assert told(folder) == []


@pytest.mark.parametrize("data", [b"", b"0" * 63, b"\xff" * 65, b"g" * 64, b"0" * 64])
def test_a_head_that_is_none_is_told(folder: Path, ledger: Path, data: bytes) -> None:
    ledger.with_suffix(".head").write_bytes(data)
    assert verify_history(folder).outcome in (Outcome.ALTERED, Outcome.TRUNCATED)


def test_only_what_the_ledger_lost_is_told(folder: Path, ledger: Path) -> None:
    lose_lines(ledger, 4)
    [(outcome, message)] = told(folder)
    assert (outcome, message) == (
        Outcome.MISSING, "Its session was closed; no ledger says so.",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"scopes": ["exec:scratch", "files", "history:read:all"]}, "scopes"),
        ({"caps": {"kernels": 200}}, "caps"),
        ({"caps": {"kernels": 2, "wall_seconds": 1.0}}, "caps"),
        ({"approval": "none", "label": "Ada"}, "approval, label"),
        ({"expires_at": "3999-01-01T00:00:00.000Z"}, "expires_at"),
        ({"username": "eve"}, "username"),
        ({"secret_sha256": "1" * 64}, "secret_sha256"),
        ({"sudo": True}, "sudo (added)"),
    ],
)
def test_a_changed_token_is_reported_by_field(
    folder: Path, changed: dict[str, object], named: str
) -> None:
    tokens = json.loads((folder / "tokens.json").read_bytes())
    tokens["tokens"][0].update(changed)
    (folder / "tokens.json").write_text(json.dumps(tokens))
    assert told(folder) == [
        (Outcome.ALTERED, f"Agent token {TOKENS[0]} is not as it was minted: {named}.")
    ]


def test_a_renewed_token_is_compared_with_its_last_secret(folder: Path) -> None:
    history = new_history(folder)
    for digit in "12":
        entry = TokenRenewed(
            at=f"2999-01-01T00:00:0{digit}.000Z",
            by=BY,
            token_id=TOKENS[0],
            secret_sha256=Digest(digit * 64),
            secret_expires_at=AT,
        )
        history.note(entry)
    history.stop()
    tokens = json.loads((folder / "tokens.json").read_bytes())
    for digit, named in (("2", []), ("1", ["secret_sha256"]), ("0", ["secret_sha256"])):
        tokens["tokens"][0].update(secret_sha256=digit * 64, secret_expires_at=AT)
        (folder / "tokens.json").write_text(json.dumps(tokens))
        messages = [f"Agent token {TOKENS[0]} is not as it was minted: {each}." for each in named]
        assert told(folder) == [(Outcome.ALTERED, message) for message in messages]


def test_an_extended_token_has_what_ledgers_gave_it_and_no_more(folder: Path) -> None:
    history = new_history(folder)
    history.note(TokenExtended(at=AT, by=BY, token_id=TOKENS[0], scopes=("history:read:all",)))
    history.stop()
    told_of = [(Outcome.ALTERED, f"Agent token {TOKENS[0]} is not as it was minted: scopes.")]
    tokens = json.loads((folder / "tokens.json").read_bytes())
    minted = tokens["tokens"][0]["scopes"]
    for scopes, expected in (
        ([*minted, "history:read:all"], []),
        (minted, []),
        (minted[:1], told_of),
        ([*minted, "exec:notebook"], told_of),
    ):
        tokens["tokens"][0]["scopes"] = scopes
        (folder / "tokens.json").write_text(json.dumps(tokens))
        assert told(folder) == expected


def test_a_token_that_nobody_minted_is_told(folder: Path) -> None:
    tokens = json.loads((folder / "tokens.json").read_bytes())
    tokens["tokens"].append({**tokens["tokens"][0], "id": "t_9"})
    (folder / "tokens.json").write_text(json.dumps(tokens))
    assert told(folder) == [(Outcome.MISSING, "No ledger minted the agent token t_9.")]


def test_a_revocation_that_was_taken_back_is_told(folder: Path) -> None:
    tokens = json.loads((folder / "tokens.json").read_bytes())
    del tokens["tokens"][1]["revoked_at"]
    (folder / "tokens.json").write_text(json.dumps(tokens))
    message = f"Agent token {TOKENS[1]} was revoked; the file does not say so."
    assert told(folder) == [(Outcome.ALTERED, message)]


def test_a_policy_that_nobody_set_is_told(folder: Path) -> None:
    (folder / "approval-policy.json").write_text('{"scratch":"first","kernel":"none"}')
    assert told(folder) == [(Outcome.MISSING, "No ledger says that somebody set kernel to none.")]


def test_a_history_that_a_server_writes_meanwhile_is_whole(tmp_path: Path) -> None:
    folder = tmp_path / "agent_exec"
    history = new_history(folder)

    def write() -> None:
        for _ in range(40):
            session = history.open_session(opened())
            execution_id = run(session, 1, "1", [])
            session.close(closed())
            history.decide(session.session_id, [reviewed(execution_id)])

    writer = threading.Thread(target=write)
    writer.start()
    found = []
    while writer.is_alive():
        found += verify_history(folder, patience=30).findings
    writer.join()
    history.stop()
    assert found == []
    assert told(folder) == []


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="nothing tells what is open")
def test_a_ledger_that_cannot_be_taken_up_leaves_no_file_open(ledger: Path) -> None:
    head = ledger.with_suffix(".head")
    head.unlink()
    head.mkdir()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        with pytest.raises(IsADirectoryError):
            Ledger.take(ledger)
    assert len(os.listdir("/proc/self/fd")) == before
