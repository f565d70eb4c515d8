"""What an entry tells of its payloads, when these are gone."""

from __future__ import annotations

import hashlib
import hmac
import itertools

import pytest

from jupyter_agent_exec.journal import chain
from jupyter_agent_exec.journal.blobs import pack_outputs
from jupyter_agent_exec.journal.findings import Outcome
from jupyter_agent_exec.journal.verify import verify_journal
from jupyter_agent_exec.models import Placement
from jupyter_agent_exec.records import Payload
from tests.journal.recorded import (
    PNG,
    accepted,
    closed,
    display,
    new_execution_id,
    new_history,
    opened,
    run,
)

SECRET = "pin = 4711"
GUESSES = [f"pin = {number:04}" for number in range(10_000)]


@pytest.fixture
def made(tmp_path):
    """The journal of a session, one of whose sources is easy to guess."""
    history = new_history(tmp_path / "agent_exec")
    entry = opened()
    session = history.open_session(entry)
    kept = Payload.unkept(hashlib.sha256(SECRET.encode()).hexdigest().encode())
    fields = {"idempotency_key": "k", "body_sha256": kept.digest, "placement": Placement(cell="a")}
    asked, source = accepted(new_execution_id(), 1, SECRET, **fields)
    session.append([asked], [source, kept])
    run(session, 2, SECRET, [display({"image/png": PNG})])
    session.close(closed())
    history.stop()
    return tmp_path / "agent_exec/sessions" / entry.session_id / "journal.jsonl"


def lines_of(path):
    return [chain.parse_line(line) for line in path.read_bytes().splitlines(keepends=True)]


def write(path, lines):
    made = (chain.format_line(each.hash, *each[1:2], each.payloads, each.salts) for each in lines)
    path.write_bytes(b"".join(made))


def guessed(data: bytes, salts=("",)):
    """Return the guesses whose name is in `data`, by any way to make a name without the salt."""
    found = []
    for guess, salt in itertools.product(GUESSES, salts):
        digest = hashlib.sha256(guess.encode()).hexdigest()
        names = [digest, hashlib.sha256(digest.encode()).hexdigest()]
        names += [
            hmac.digest(salt.encode(), each.encode(), "sha256").hex() for each in (guess, digest)
        ]
        if any(name.encode() in data for name in names):
            found.append(guess)
    return found


def test_a_name_is_the_hmac_of_salt_and_payload(made):
    entry = lines_of(made)[1]
    name = entry.entry["source"]
    salt = entry.salts[name]
    assert (entry.entry["format"], len(salt)) == (2, 32)
    assert hmac.new(salt.encode(), SECRET.encode(), "sha256").hexdigest() == name


def test_without_payloads_and_salts_nothing_can_be_guessed(made):
    salts = [salt for line in lines_of(made) for salt in line.salts.values()]
    assert set(guessed(made.read_bytes(), salts)) == {SECRET}  # as long as the salts are there
    write(made, [line._replace(payloads={}, salts={}) for line in lines_of(made)])
    assert guessed(made.read_bytes()) == []


def test_each_salt_is_another_so_equal_payloads_have_different_names(made):
    first, second = (line for line in lines_of(made) if line.entry["type"] == "accepted")
    assert first.entry["source"] != second.entry["source"]
    salts = [salt for line in lines_of(made) for salt in line.salts.values()]
    assert len(set(salts)) == len(salts) == 5


def test_equal_images_of_one_execution_are_one_blob():
    packed = pack_outputs([display({"image/png": PNG}), display({"image/png": PNG})])
    assert len({ref.sha256 for ref in packed.blobs}) == 1
    assert len(packed.payloads) == 2


def changed_salt(line):
    return line._replace(salts=dict.fromkeys(line.salts, "0" * 32))


def without_salt(line):
    return line._replace(salts={})


def short_salt(line):
    return line._replace(salts={name: salt[:-1] for name, salt in line.salts.items()})


def more_salts(line):
    return line._replace(salts={**line.salts, "0" * 64: "0" * 32})


@pytest.mark.parametrize("change", [changed_salt, without_salt, short_salt, more_salts])
def test_verify_finds_a_salt_that_is_not_the_one(made, change):
    assert verify_journal(made).outcome is Outcome.WHOLE
    lines = lines_of(made)
    lines[1] = change(lines[1])
    write(made, lines)
    assert {(each.outcome, each.n) for each in verify_journal(made).findings} == {
        (Outcome.ALTERED, 1)
    }


def test_a_digest_without_a_salt_does_not_pass_for_a_commitment(made):
    """SHA-256 of these 96 bytes is the commitment, and nobody needs the source to make them."""
    lines = lines_of(made)
    (name,) = (lines[1].entry["source"],)
    key = lines[1].salts[name].encode().ljust(64, b"\0")
    inner = hashlib.sha256(bytes(b ^ 0x36 for b in key) + SECRET.encode()).digest()
    forged = bytes(b ^ 0x5C for b in key) + inner
    assert hashlib.sha256(forged).hexdigest() == name
    lines[1] = without_salt(lines[1])._replace(payloads={})
    write(made, lines)
    (made.parent / "blobs").mkdir(exist_ok=True)
    (made.parent / "blobs" / name).write_bytes(forged)
    assert verify_journal(made).outcome is Outcome.ALTERED
