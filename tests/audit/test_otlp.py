"""The record, exported as OpenTelemetry logs by the official SDK."""

from __future__ import annotations

import pytest

from jupyter_agent_exec.audit.sink_settings import make_sinks
from jupyter_agent_exec.journal import chain
from tests.audit.far_sides import Collector, collector
from tests.journal.recorded import closed, new_history, opened, run, stream
from tests.real_server import until


@pytest.fixture
def server():
    with collector() as server:
        yield server


def values(record) -> dict[str, object]:
    return {each.key: each.value.string_value or each.value.int_value for each in record.attributes}


@pytest.mark.parametrize("content", ["facts", "outputs"])
def test_logs_arrive_in_order_and_what_was_refused_comes_again(
    server: Collector, tmp_path, content
):
    sink = {"kind": "otlp", "address": server.address, "delay": 0, "content": content}
    history = new_history(tmp_path / "history", make_sinks([sink]))
    try:
        session = history.open_session(opened())
        until(lambda: set(history.copies.lags().values()) == {0})
        server.refuses = True
        execution = run(session, 1, "1 + 1", [stream("out")])
        until(lambda: history.copies.status()[0].error)
        session.close(closed())
        server.refuses = False
        until(lambda: set(history.copies.lags().values()) == {0})
    finally:
        history.stop()
    journal = session.session_id
    records = [each for each in server.records if values(each)["journal"] == journal]
    path = tmp_path / "history" / "sessions" / journal / "journal.jsonl"
    lines = [chain.parse_line(line) for line in path.read_bytes().splitlines(keepends=True)]
    assert [values(each)["hash"] for each in records] == [line.hash for line in lines]
    assert [each.body.string_value.encode() for each in records] == [
        line.canonical for line in lines
    ]
    assert records[1].event_name == "jupyter_agent_exec.accepted"
    assert values(records[1])["execution_id"] == execution
    assert ("1 + 1" in values(records[1]).values()) is (content == "outputs")
