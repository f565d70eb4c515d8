"""The record, copied to a real rsyslog."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from jupyter_agent_exec.audit.sink_settings import make_sinks
from jupyter_agent_exec.journal import chain
from jupyter_agent_exec.journal.history import History
from tests.audit.far_sides import Rsyslog, rsyslog
from tests.journal.recorded import PNG, closed, display, new_history, opened, run, stream
from tests.real_server import until


@pytest.fixture
def server() -> Iterator[Rsyslog]:
    with rsyslog() as server:
        yield server


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "history"


def history_into(folder: Path, far: Rsyslog, **options: Any) -> History:
    sink = {"kind": "syslog", "host": "localhost", "port": far.port, "delay": 0, **options}
    return new_history(folder, make_sinks([sink]))


def up_to_date(history: History) -> bool:
    return set(history.copies.lags().values()) == {0}


def messages(server: Rsyslog, journal: str) -> list[dict[str, Any]]:
    told = [json.loads(line.partition("{")[1] + line.partition("{")[2]) for line in server.lines()]
    return [each for each in told if each["journal"] == journal]


def hashes_on_disk(folder: Path, session: str) -> list[str]:
    path = folder / "sessions" / session / "journal.jsonl"
    return [chain.parse_line(line).hash for line in path.read_bytes().splitlines(keepends=True)]


@pytest.mark.parametrize("tls", [False, True], ids=["tcp", "tls"])
def test_messages_arrive_in_order_and_a_server_that_dies_gets_the_rest(server, folder, tls):
    server.start(tls=tls)
    how = {"tls": True, "ca_file": str(server.ca_file)} if tls else {"tls": False}
    history = history_into(folder, server, server="lab 7", **how)
    try:
        session = history.open_session(opened(title="Grüße \x7f \x00"))
        until(lambda: up_to_date(history))
        until(lambda: messages(server, session.session_id))
        assert server.lines()[0].startswith("110 lab_7 ")
        server.kill()
        run(session, 1, "1", [stream("out")])
        until(lambda: history.copies.status()[0].error)
        server.start(tls=tls)
        session.close(closed())
        until(lambda: up_to_date(history))
        expected = hashes_on_disk(folder, session.session_id)
        until(lambda: len(messages(server, session.session_id)) >= len(expected))
    finally:
        history.stop()
    told = messages(server, session.session_id)
    assert [each["hash"] for each in told] == expected
    previous = chain.GENESIS
    for each in told:  # to the byte: the chain can be computed from what arrived
        previous = chain.link(previous, chain.canonical(each["entry"]))
        assert previous == each["hash"]
    assert not any("payloads" in each for each in told)


def test_what_the_server_did_not_read_before_it_died_comes_again(server, folder):
    server.start(tls=False)
    history = history_into(folder, server, tls=False)
    try:
        session = history.open_session(opened())
        until(lambda: up_to_date(history))
        server.halt()
        run(session, 1, "1", [])
        until(lambda: has_sent_all(server))
        server.kill()
        server.start(tls=False)
        until(lambda: up_to_date(history))
        expected = hashes_on_disk(folder, session.session_id)
        until(lambda: len(messages(server, session.session_id)) >= len(expected))
    finally:
        history.stop()
    assert [each["hash"] for each in messages(server, session.session_id)] == expected


def has_sent_all(server: Rsyslog) -> bool:
    """Return whether a sink of ours has sent everything, and waits for the end."""
    return any(
        each.raddr and each.raddr.port == server.port and each.status == psutil.CONN_FIN_WAIT2
        for each in psutil.Process().net_connections("tcp")
    )


def test_a_certificate_that_is_not_trusted_gets_nothing(server, folder):
    server.start(tls=True)
    history = history_into(folder, server)
    try:
        history.open_session(opened())
        until(lambda: history.copies.status()[0].error)
        assert "CERTIFICATE_VERIFY_FAILED" in (history.copies.status()[0].error or "")
    finally:
        history.stop()
    assert server.lines() == []


def test_a_payload_is_in_its_message_if_it_fits(server, folder):
    server.start(tls=False)
    history = history_into(folder, server, tls=False, content="outputs", max_message_bytes=4000)
    try:
        session = history.open_session(opened())
        run(session, 1, "short", [stream("x" * 5000), display({"image/png": PNG})])
        until(lambda: up_to_date(history))
        until(lambda: len(messages(server, session.session_id)) == 4)
    finally:
        history.stop()
    payloads = [
        list(each.get("payloads", {}).values()) for each in messages(server, session.session_id)
    ]
    assert payloads[1] == ["short"]
    assert payloads[3] == []
