"""The heads that were signed last are kept beside the key: what they find, and what they let be.

In each attack, the server is down. Somebody who can write the history, but not beside the key,
changes it, with new hashes and without the signatures that would tell of it. The server starts.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jupyter_agent_exec.audit.signer import SigningKey
from jupyter_agent_exec.errors import HistoryUnavailable, InvalidRequest
from jupyter_agent_exec.journal import erasure as erasure_module
from jupyter_agent_exec.journal.heads import signatures_path
from jupyter_agent_exec.journal.retention import make_rules
from jupyter_agent_exec.models import AcceptBreak, Erase, Retain
from jupyter_agent_exec.records import SERVER
from tests.audit.rewriting import cut, end, forge, journals, ledger_of, without_payloads, write_anew
from tests.audit.test_signing import Signing, Verify, remove_signatures, verify, write
from tests.journal.recorded import PERSON, closed, new_history, opened, reviewed, run, stream

__all__ = ["verify"]

ALL = make_rules([{"days": 0}])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "agent_exec"


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    return tmp_path / "key.pem"


@pytest.fixture
def start(folder: Path, key_file: Path) -> Iterator[Callable[..., Signing]]:
    """Return what starts a server that signs; it and its first round have begun."""
    made: list[Signing] = []

    def start() -> Signing:
        made.append(Signing(folder, key_file, retention=ALL))
        return made[-1]

    yield start
    for each in made:
        each.stop()


def two_sessions(signing: Signing, *, close: bool = True) -> None:
    for source in ("secret = 1", "secret = 2"):
        session = signing.history.open_session(opened())
        run(session, 1, source, [stream(f"{source}\n")])
        if close:
            session.close(closed())


def rewrite(folder: Path) -> None:
    write_anew(folder)


def empty(folder: Path) -> None:
    shutil.rmtree(folder)


def empty_and_begin_anew(folder: Path) -> None:
    shutil.rmtree(folder)
    new_history(folder).stop()


def truncate(folder: Path) -> None:
    ledger = ledger_of(folder)
    cut(ledger, 1)
    ledger.with_suffix(".head").write_text(f"{end(ledger)['head']}\n")


def forge_a_removal(folder: Path) -> None:
    journal = journals(folder)[0]
    removed = {"type": "session_removed", "reason": "retention: days 0"}
    forge(ledger_of(folder), {**removed, "session_id": journal.parent.name, "chain": end(journal)})
    shutil.rmtree(journal.parent)


def forge_a_removal_to_come(folder: Path) -> None:
    kept = shutil.copytree(journals(folder)[0].parent, folder.parent / "kept")
    forge_a_removal(folder)
    shutil.move(kept, journals(folder)[0].parent.with_name(_gone(folder)))


def _gone(folder: Path) -> str:
    return str(json.loads(ledger_of(folder).read_bytes().splitlines()[-1])["entry"]["session_id"])


def forge_a_removal_in_another_ledger(folder: Path) -> None:
    real, journal = ledger_of(folder), journals(folder)[0]
    other = real.with_name("ledger-0000000000000000.jsonl")
    other.write_bytes(b"".join(real.read_bytes().splitlines(keepends=True)[:1]))
    removed = {"type": "session_removed", "reason": "retention: days 0"}
    forge(other, {**removed, "session_id": journal.parent.name, "chain": end(journal)})
    shutil.rmtree(journal.parent)


def _erase(folder: Path) -> tuple[str, dict[str, object]]:
    journal = journals(folder)[0]
    last = end(journal)["length"] - 1
    what = {"entries": [[0, last]], "executions": 1, "payloads": 2, "bytes": 20}
    forged = forge(journal, {"type": "erased", **what})
    without_payloads(journal)
    return journal.parent.name, forged


def forge_an_erasure(folder: Path) -> None:
    session_id, chain = _erase(folder)
    forge(ledger_of(folder), {"type": "session_amended", "session_id": session_id, "chain": chain})


def forge_an_erasure_for_the_server_to_list(folder: Path) -> None:
    (folder / "amending").mkdir()
    (folder / "amending" / f"{_erase(folder)[0]}.0").touch()


def forge_an_erasure_for_the_server_to_complete(folder: Path) -> None:
    (folder / "erasing").mkdir()
    (folder / "erasing" / _erase(folder)[0]).touch()


ON_CLOSED_SESSIONS = [
    rewrite,
    empty,
    empty_and_begin_anew,
    truncate,
    forge_a_removal,
    forge_a_removal_to_come,
    forge_a_removal_in_another_ledger,
    forge_an_erasure,
    forge_an_erasure_for_the_server_to_list,
    forge_an_erasure_for_the_server_to_complete,
]


def rewrite_a_session(folder: Path) -> None:
    journal = journals(folder)[0]
    cut(journal, end(journal)["length"] - 1)
    forge(journal, {"type": "dispatched", "execution_id": "x_01"})


def truncate_a_session(folder: Path) -> None:
    cut(journals(folder)[0], 1)


def remove_a_session(folder: Path) -> None:
    shutil.rmtree(journals(folder)[0].parent)


def swap_two_sessions(folder: Path) -> None:
    one, two = (path.parent for path in journals(folder))
    one.rename(folder / "one")
    two.rename(one)
    (folder / "one").rename(two)


ON_OPEN_SESSIONS = [rewrite_a_session, truncate_a_session, remove_a_session, swap_two_sessions]


@pytest.mark.parametrize(
    ("attack", "close"),
    [
        *((each, True) for each in ON_CLOSED_SESSIONS),
        *((each, False) for each in ON_OPEN_SESSIONS),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_was_changed_before_a_start_is_not_signed_on(
    folder, key_file, start, verify, caplog, attack, close
):
    before = start()
    two_sessions(before, close=close)
    before.stop()
    key = SigningKey(key_file).id
    assert verify(folder, "--key", key)[0] == 0
    attack(folder)
    remove_signatures(folder) if folder.exists() else None
    after = start()
    assert after.signer.broken is not None
    assert after.told == ["changed"]
    two_sessions(after)
    after.sign()
    assert after.told == ["changed"]
    assert not list(folder.rglob("*.signatures"))
    assert caplog.text.count("Nothing is signed any more") == 1
    assert after.signer.broken.name in caplog.text
    after.stop()
    assert verify(folder, "--key", key)[0] != 0
    again = start()
    assert again.signer.broken is not None


@pytest.mark.parametrize(
    ("attack", "code", "told"),
    [
        (forge_a_removal, 5, "No signed entry of a ledger says that it was removed."),
        (
            forge_a_removal_in_another_ledger,
            5,
            "No signed entry of a ledger says that it was removed.",
        ),
        (forge_an_erasure, 5, "No signed entry of a ledger says that entry 8 may erase from it."),
    ],
)
def test_what_no_signature_lets_go_is_missed_without_a_start(
    folder, key_file, verify, attack, code, told
):
    write(folder, key_file, 2)
    attack(folder)
    found, report = verify(folder)
    assert (found, told in [each["message"] for each in report["findings"]]) == (code, True)


def test_an_erasure_that_a_review_follows_is_missed(folder, key_file, start, verify):
    write(folder, key_file, 1)
    session_id, _ = _erase(folder)
    signing = start()
    signing.history.decide(session_id, [reviewed(None)])
    signing.sign()
    signing.stop()
    code, report = verify(folder, "--key", SigningKey(key_file).id)
    assert code == 5
    assert "may erase from it" in report["findings"][0]["message"]


def test_a_closed_session_that_is_rewritten_before_a_review_is_found(
    folder, key_file, start, verify
):
    write(folder, key_file, 1)
    journal = journals(folder)[0]
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(lines[0])
    remove_signatures(folder)
    forge(journal, {"type": "closed", "reason": "closed"})
    for _ in lines[2:]:
        forge(journal, {"type": "reviewed", "execution_id": None, "verdict": "approved"})
    signing = start()
    signing.history.decide(journal.parent.name, [reviewed(None)])
    signing.stop()
    code, report = verify(folder, "--key", SigningKey(key_file).id)
    assert code == 1
    assert "It does not end as the ledger says it does." in str(report["findings"])


def test_a_folder_that_is_rolled_back_is_found_at_the_start_and_by_a_kept_head(
    folder, key_file, start, verify
):
    write(folder, key_file, 1)
    older = shutil.copytree(folder, folder.with_name("older"))
    write(folder, key_file, 1)
    head = end(ledger_of(folder))["head"]
    shutil.rmtree(folder)
    shutil.copytree(older, folder)
    assert verify(folder, "--head", head)[0] == 3
    signing = start()
    assert "which was signed, was cut off or written anew" in signing.signer.broken.found[0]


def test_a_wrong_backup_that_is_put_right_is_no_break(folder, key_file, start, verify):
    write(folder, key_file, 1)
    older = shutil.copytree(folder, folder.with_name("older"))
    write(folder, key_file, 1)
    newer = shutil.copytree(folder, folder.with_name("newer"))
    shutil.rmtree(folder)
    shutil.copytree(older, folder)
    signing = start()
    assert signing.signer.broken is not None
    signing.stop()
    shutil.rmtree(folder)
    shutil.copytree(newer, folder)
    _goes_on(start, verify, folder, key_file)


def test_a_person_accepts_the_break_that_they_saw(folder, key_file, start, verify):
    write(folder, key_file, 2)
    rewrite(folder)
    remove_signatures(folder)
    signing = start()
    broken = signing.signer.broken
    with pytest.raises(InvalidRequest, match=broken.name):
        signing.signer.accept(AcceptBreak(name="b_another"), PERSON)
    signing.signer.accept(AcceptBreak(name=broken.name), PERSON)
    assert signing.signer.broken is None
    assert signing.told == ["changed", "changed"]
    two_sessions(signing)
    with pytest.raises(InvalidRequest, match="not broken"):
        signing.signer.accept(AcceptBreak(name=broken.name), PERSON)
    signing.stop()
    again = start()
    assert again.signer.broken is None
    again.stop()
    code, report = verify(folder, "--key", SigningKey(key_file).id)
    assert code == 0
    assert "Grace accepted at" in report["held"]["told"]
    assert broken.found[0] in report["held"]["told"]


# -- what is not a break ---------------------------------------------------------------------------


def _goes_on(start: Callable[..., Signing], verify: Verify, folder: Path, key_file: Path) -> None:
    """Check that a server starts on a history, signs it, and that it verifies."""
    signing = start()
    assert signing.signer.broken is None
    two_sessions(signing)
    signing.stop()
    code, report = verify(folder, "--key", SigningKey(key_file).id)
    assert (code, report["findings"]) == (0, [])


def test_heads_are_kept_for_the_owner_and_do_not_grow_with_the_history(folder, key_file, start):
    signing = start()
    heads = key_file.with_suffix(".heads")
    assert heads.stat().st_mode & 0o777 == 0o600
    size = heads.stat().st_size
    for _ in range(3):
        two_sessions(signing)
        signing.sign()
    assert heads.stat().st_size - size < 10  # the digits of a length
    kept = next(iter(json.loads(heads.read_bytes()).values()))
    assert kept["ledgers"][ledger_of(folder).stem]["sessions"] == {}
    two_sessions(signing, close=False)
    signing.sign()
    kept = next(iter(json.loads(heads.read_bytes()).values()))
    assert len(kept["ledgers"][ledger_of(folder).stem]["sessions"]) == 2


def test_a_head_that_cannot_be_kept_is_not_signed_and_nothing_is_erased(
    folder, key_file, start, caplog
):
    signing = start()
    before = signatures_path(ledger_of(folder)).read_bytes()
    in_the_way = key_file.with_name("key.heads.new")
    in_the_way.mkdir()  # before a session ends, which is signed in the background
    two_sessions(signing)
    signing.sign()
    assert "The heads that were signed last cannot be saved" in caplog.text
    assert signatures_path(ledger_of(folder)).read_bytes() == before
    with pytest.raises(HistoryUnavailable, match="cannot be saved"):
        signing.history.erase(Erase(agent="analyst"), PERSON)
    in_the_way.rmdir()
    assert signing.history.erase(Erase(agent="analyst"), PERSON).sessions[0].payloads == 2


def test_a_history_from_before_there_was_a_key_is_signed(folder, key_file, start, verify):
    history = new_history(folder, retention=ALL)
    for _ in range(2):
        session = history.open_session(opened())
        run(session, 1, "1", [])
        session.close(closed())
    history.retain(Retain(), SERVER, iter([True, False]).__next__)
    history.erase(Erase(agent="analyst"), PERSON)
    history.stop()
    _goes_on(start, verify, folder, key_file)


def test_a_history_that_0_1_has_signed_is_signed_on(folder, key_file, start, verify):
    shutil.copytree(Path(__file__).parents[1] / "journal" / "history_0_1", folder)
    _goes_on(start, verify, folder, key_file)


def test_a_history_that_was_signed_before_heads_were_kept_is_signed_on(
    folder, key_file, start, verify
):
    signing = start()
    two_sessions(signing)
    signing.history.retain(Retain(), SERVER, iter([True, False]).__next__)
    signing.history.erase(Erase(agent="analyst"), PERSON)
    two_sessions(signing, close=False)
    signing.crash()
    key_file.with_suffix(".heads").unlink()
    _goes_on(start, verify, folder, key_file)


@pytest.mark.parametrize("close", [True, False])
def test_what_a_server_wrote_before_it_was_killed_is_signed_by_the_next(
    folder, key_file, start, verify, close
):
    signing = start()
    two_sessions(signing, close=close)
    signing.sign()
    for path in journals(folder):
        live = signing.history._live.get(path.parent.name)
        if live is not None:
            run(live, 2, "more", [])
    two_sessions(signing, close=close)
    signing.crash()
    _goes_on(start, verify, folder, key_file)


def test_servers_on_one_folder_sign_what_is_theirs_and_what_dead_ones_left(
    folder, key_file, start, verify
):
    first, second = start(), start()
    two_sessions(first, close=False)
    two_sessions(second)
    first.sign()
    second.history.erase(Erase(agent="analyst"), PERSON)
    two_sessions(first)
    first.crash()
    second.history.settle()
    second.sign()
    assert second.signer.broken is None
    two_sessions(second)
    third = start()
    third.history.retain(Retain(), SERVER, lambda: True)
    assert third.signer.broken is None
    second.crash()
    third.history.settle()
    third.sign()
    assert third.signer.broken is None
    third.stop()
    _goes_on(start, verify, folder, key_file)


@pytest.mark.parametrize("what", ["erase", "retain"])
@pytest.mark.parametrize("at", ["before it is noted", "before it is signed", "before it is gone"])
def test_a_server_that_is_killed_while_something_goes_is_followed_by_one_that_signs(
    folder, key_file, start, verify, monkeypatch, what, at
):
    signing = start()
    two_sessions(signing)
    signing.sign()

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    if at == "before it is noted":
        monkeypatch.setattr(signing.history, "note_owed", killed)
        monkeypatch.setattr(signing.history, "note", killed)
    elif at == "before it is signed":
        monkeypatch.setattr(signing.signer, "sign", killed)
    else:
        monkeypatch.setattr(erasure_module, "_remove_erased", killed)
        monkeypatch.setattr("jupyter_agent_exec.journal.history._remove_journal", killed)
    let_go = {
        "erase": lambda: signing.history.erase(Erase(agent="analyst"), PERSON),
        "retain": lambda: signing.history.retain(Retain(), SERVER, lambda: True),
    }
    with pytest.raises(KeyboardInterrupt):
        let_go[what]()
    monkeypatch.undo()
    signing.crash()
    _goes_on(start, verify, folder, key_file)


def test_the_next_key_begins_where_the_last_one_ended(folder, tmp_path, key_file, verify):
    write(folder, key_file, 1)
    write(folder, tmp_path / "new.pem", 1)
    assert verify(folder, "--key", SigningKey(tmp_path / "new.pem").id)[0] == 0
