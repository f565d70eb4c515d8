"""Timestamps of heads by an authority, and what `verify` says of them: docs/how-to/audit.md."""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from rfc3161_client import HashAlgorithm, TimestampRequestBuilder

from jupyter_agent_exec.audit.timestamps import Timestamper
from jupyter_agent_exec.cli import main
from jupyter_agent_exec.journal.heads import leaf, merkle_root
from jupyter_agent_exec.journal.history import History
from tests.audit.authority import Authority, authority
from tests.audit.far_sides import until
from tests.audit.rewriting import cut, journals, write_anew
from tests.journal.recorded import closed, new_history, opened, run

LOG = logging.getLogger("test.timestamps")

Verify = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture(scope="module")
def tsa(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Authority]:
    with authority(tmp_path_factory.mktemp("tsa") / "files") as running:
        yield running


@pytest.fixture(scope="module")
def stamped(tmp_path_factory: pytest.TempPathFactory, tsa: Authority) -> Path:
    """A history of three closed sessions, two of which were timestamped by themselves."""
    folder = tmp_path_factory.mktemp("stamped") / "here"
    history = new_history(folder)
    stamper = stamper_of(history, tsa)
    for _ in range(2):
        write(history)
    stamper.stamp()
    write(history)
    history.stop()
    return folder


def stamper_of(history: History, tsa: Authority, interval: float = 3600) -> Timestamper:
    """Return a timestamper that listens, and is asked for each timestamp."""
    stamper = Timestamper(history, tsa.address, interval, LOG)
    stamper.stop()
    stamper.start()
    return stamper


def write(history: History) -> None:
    session = history.open_session(opened())
    run(session, 1, "1", [])
    session.close(closed())


@pytest.fixture
def here(stamped: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(stamped, tmp_path / "here"))


@pytest.fixture
def verify(tsa: Authority, capsys: pytest.CaptureFixture[str]) -> Verify:
    def verify(*words: object, trusted: Path | None = tsa.certificates) -> tuple[int, Any]:
        option = [] if trusted is None else ["--authority", str(trusted)]
        code = main(["verify", "--json", *option, *map(str, words)])
        return code, json.loads(capsys.readouterr().out)

    return verify


def test_a_history_says_until_which_entry_it_was_timestamped_and_by_whom(here, verify):
    code, report = verify(here)
    assert code == 0
    told = report["held"]["told"]
    assert told.startswith("Timestamped by CN=authority: 3 of 4 chains, 2 of them to their ends")
    assert "only hash chains hold it" in told
    session = journals(here)[0].parent.name
    code, report = verify(session, "--history", here)
    chain = next(each for each in report["held"]["chains"] if each["chain"] == session)
    assert (code, chain["timestamped"]["entries"], chain["unheld_since"]) == (0, 5, None)


def test_timestamps_that_nobody_can_check_prove_nothing_and_are_said(here, verify):
    code, report = verify(here, trusted=None)
    assert code == 0
    assert report["held"]["told"].endswith("It has 1 timestamp. To check, give --authority.")
    assert all(each["timestamped"] is None for each in report["held"]["chains"])


def test_a_history_written_anew_is_found_by_its_timestamps(here, verify):
    write_anew(here)
    code, report = verify(here)
    told = [each["message"] for each in report["findings"]]
    assert code == 1
    assert len(told) == 3
    assert all("is not what CN=authority timestamped at" in each for each in told)


def test_a_journal_cut_off_is_found_by_its_timestamp(here, verify):
    journal = journals(here)[0]
    cut(journal, 1)
    assert verify(journal)[0] == 3


def test_a_timestamp_that_was_changed_or_is_of_another_authority_is_found(here, verify, tmp_path):
    (kept,) = here.glob("timestamps/*.json")
    before = kept.read_text()
    told = json.loads(before)
    told["heads"][0][1] += 1
    kept.write_text(json.dumps(told))
    code, report = verify(here)
    assert (code, "not a genuine timestamp" in report["findings"][0]["message"]) == (1, True)
    kept.write_text(before)
    other = Authority(tmp_path / "other")
    assert verify(here, trusted=other.certificates)[0] == 1
    kept.write_text("[]")
    assert verify(here)[0] == 1
    assert main(["verify", str(here), "--authority", str(kept)]) == 2


@pytest.mark.parametrize("fault", [b"", b"rubbish", b"x" * 1_100_000, "another"])
def test_an_authority_that_fails_is_logged_once_and_caught_up(tsa, tmp_path, caplog, verify, fault):
    history = new_history(tmp_path / "here")
    write(history)
    other = TimestampRequestBuilder().data(b"other").hash_algorithm(HashAlgorithm.SHA256).build()
    tsa.fault = tsa.answer(other.as_bytes()) if fault == "another" else fault
    before = tsa.requests
    stamper = Timestamper(history, tsa.address, 0.05, LOG)
    stamper.start()
    try:
        until(lambda: tsa.requests >= before + 3)
        assert caplog.text.count("gives no timestamp") == 1
        assert not list(history.folder.glob("timestamps/*"))
        tsa.fault = None
        until(lambda: list(history.folder.glob("timestamps/*.json")))
    finally:
        tsa.fault = None
        stamper.stop()
        history.stop()
    code, report = verify(history.folder)
    assert code == 0
    assert all(each["timestamped"] for each in report["held"]["chains"])


def test_nothing_is_asked_for_while_nothing_changes(tsa, tmp_path):
    history = new_history(tmp_path / "here")
    stamper = stamper_of(history, tsa)
    write(history)
    stamper.stamp()
    asked = tsa.requests
    stamper.stamp()
    assert tsa.requests == asked
    write(history)
    stamper.stamp()
    assert tsa.requests == asked + 1
    newest = max(history.folder.glob("timestamps/*.json"), key=lambda path: path.stat().st_mtime_ns)
    assert len(json.loads(newest.read_bytes())["heads"]) == 2  # the ledger, and the new session
    history.stop()


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 13])
def test_the_root_is_that_of_rfc_6962(count):
    leaves = [leaf(f"s_{n}", n + 1, "0" * 64) for n in range(count)]

    def root(hashes: list[bytes]) -> bytes:
        if len(hashes) == 1:
            return hashes[0]
        k = 1
        while 2 * k < len(hashes):
            k *= 2
        return hashlib.sha256(b"\x01" + root(hashes[:k]) + root(hashes[k:])).digest()

    assert merkle_root(leaves) == root(leaves)
    assert len(set(leaves)) == count
