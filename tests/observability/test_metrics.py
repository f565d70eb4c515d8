"""Metrics on Jupyter's own route, and the dashboard that shows them."""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from jupyter_server.serverapp import ServerApp
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families
from tornado.httpclient import HTTPResponse

from jupyter_agent_exec._version import __version__
from jupyter_agent_exec.auth.handler import STATUSES
from jupyter_agent_exec.observability import metrics
from jupyter_agent_exec.types import FINAL_STATUSES
from tests.asking import Agent, Send

PREFIX = "jupyter_agent_exec_"
DASHBOARD = Path(__file__).parents[2] / "docs" / "how-to" / "grafana-dashboard.json"

Read = Callable[[], Awaitable[dict[str, float]]]


def bytes_of_entries(folder: Path) -> int:
    """Return the bytes of the files that only grow; the index's own files come and go."""
    return sum(path.stat().st_size for path in folder.rglob("*.jsonl"))


def samples(text: str) -> dict[str, float]:
    """Return our samples, by name and labels as in `executions_total{status=ok,target=scratch}`."""
    return {
        each.name.removeprefix(PREFIX)
        + "{"
        + ",".join(f"{name}={value}" for name, value in sorted(each.labels.items()))
        + "}": each.value
        for family in text_string_to_metric_families(text)
        for each in family.samples
        if each.name.startswith(PREFIX)
    }


@pytest.fixture
def read(jp_fetch: Callable[..., Awaitable[HTTPResponse]]) -> Read:
    async def read() -> dict[str, float]:
        return samples((await jp_fetch("metrics")).body.decode())

    return read


def change(before: dict[str, float], after: dict[str, float], name: str) -> float:
    """Return by how much a sample has grown; others have used this process before."""
    return after.get(name, 0) - before.get(name, 0)


@pytest.mark.parametrize(
    "agent_exec_config", [{"sinks": [{"kind": "folder", "path": "/nowhere/to/go"}]}]
)
async def test_what_agents_do_is_measured(agent: Agent, ask: Send, read: Read) -> None:
    before = await read()
    session = await agent.open()
    await agent.run(session, "print('x' * 999)")
    await agent.run(session, "1/0")
    running = await agent.run(session, "input_never = __import__('time').sleep(60)", wait=0)
    waiting = await agent.run(session, "2", wait=0)
    while (await agent.get(f"executions/{running['id']}")).json["status"] != "running":
        pass
    during = await read()
    assert during["open_sessions{target=scratch}"] == 1
    assert during["kernels{target=scratch}"] == 1
    assert during["running_executions{}"] == during["queued_executions{}"] == 1
    assert during["approvals_waiting{}"] == 0
    assert during["sink_lag_seconds{sink=folder}"] > 0
    await agent.ask("POST", f"executions/{waiting['id']}/cancel")
    await agent.ask("POST", f"sessions/{session['id']}/close")
    assert (await ask("GET", "sessions")).status == 401
    after = await read()
    for status in ("ok", "error", "interrupted", "cancelled"):
        assert change(before, after, f"executions_total{{status={status},target=scratch}}") == 1
    assert change(before, after, "execution_duration_seconds_count{target=scratch}") == 3
    assert change(before, after, "queue_wait_seconds_count{target=scratch}") == 3
    assert change(before, after, "output_bytes_total{target=scratch}") > 1000
    assert change(before, after, "refusals_total{code=unauthenticated}") == 1
    assert after["open_sessions{target=scratch}"] == after["running_executions{}"] == 0


@pytest.mark.parametrize("agent_exec_config", [{"approval": {"scratch": "always"}}])
async def test_what_waits_for_approval_is_measured_apart(agent: Agent, read: Read) -> None:
    before = await read()
    session = await agent.open()
    asked = await agent.run(session, "1", wait=0)
    assert (await read())["approvals_waiting{}"] == 1
    approval = {"source_sha256": sha256(b"1").hexdigest()}
    approved = await agent.ask("POST", f"executions/{asked['id']}/approve", approval)
    assert approved.status == 200, approved.body
    await agent.get(f"executions/{asked['id']}", wait=30)
    after = await read()
    assert change(before, after, "executions_total{status=ok,target=scratch}") == 1
    assert change(before, after, "queue_wait_seconds_count{target=scratch}") == 0


async def test_what_was_not_counted_yet_is_zero(agent: Agent, read: Read) -> None:
    """So that Prometheus sees the first of each as an increase."""
    counted = await read()
    for target in metrics.TARGETS:
        for name in ("execution_duration_seconds", "queue_wait_seconds"):
            assert f"{name}_count{{target={target}}}" in counted
        assert f"output_bytes_total{{target={target}}}" in counted
        for status in FINAL_STATUSES:
            assert f"executions_total{{status={status},target={target}}}" in counted
    for error in STATUSES:
        assert f"refusals_total{{code={error.code}}}" in counted


@contextmanager
def put_away(folder: Path) -> Iterator[None]:
    """Put a file in the place of a folder."""
    away = folder.rename(folder.with_name("away"))
    folder.write_text("in the way")
    yield
    folder.unlink()
    away.rename(folder)


async def test_the_state_of_the_history_and_a_pause_are_measured(
    agent: Agent, read: Read, history_dir: Path
) -> None:
    await agent.run(await agent.open(), "1")
    at_first = await read()
    assert at_first[f"info{{version={__version__}}}"] == 1
    assert (at_first["history_writable{}"], at_first["paused{}"]) == (1, 0)
    written = bytes_of_entries(history_dir)
    while math.isnan((size := await read())["history_bytes{}"]):
        pass
    assert 1000 < written <= size["history_bytes{}"]
    assert (await agent.ask("PUT", "approvals/pause", {"paused": True})).status == 200
    assert (await read())["paused{}"] == 1
    assert (await agent.ask("PUT", "approvals/pause", {"paused": False})).status == 200
    assert (await read())["paused{}"] == 0
    with put_away(history_dir):
        assert (await agent.ask("POST", "sessions", {"agent": {"name": "a"}})).status == 503
        assert (await read())["history_writable{}"] == 0
    await agent.open()
    assert (await read())["history_writable{}"] == 1


async def test_the_lag_of_the_loop_is_measured_once_the_server_has_started(
    jp_serverapp: ServerApp, read: Read
) -> None:
    before = await read()
    await jp_serverapp.extension_manager.start_all_extensions()
    while change(before, await read(), "loop_lag_seconds_count{}") == 0:
        await asyncio.sleep(0.05)


@pytest.mark.parametrize(
    ("value", "bytes_"), [("é", 2), ([{"a": "xx", "b": 1.5}, "\ud800"], 5), (None, 0)]
)
def test_the_size_of_outputs_is_in_bytes(value: Any, bytes_: int) -> None:
    assert metrics.size(value) == bytes_


def test_the_dashboard_asks_for_metrics_that_exist_with_labels_that_they_have() -> None:
    registry = CollectorRegistry()
    labels: dict[str, set[str]] = {}
    for metric in vars(metrics).values():
        if hasattr(metric, "_labelnames"):
            registry.register(metric)
            for family in metric.describe():
                for suffix in ("", "_total", "_bucket"):
                    labels[family.name + suffix] = {*metric._labelnames, "le", "instance"}
    text = DASHBOARD.read_text()
    dashboard = json.loads(text)
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    used = set()
    for expression in asked:
        (name,) = re.findall(rf"{PREFIX}\w+", expression)
        used.add(re.sub(r"_(total|bucket)$", "", name))
        assert name in labels, name
        for grouped in re.findall(r"by \(([\w, ]+)\)", expression):
            assert set(grouped.split(", ")) <= labels[name], expression
    assert used == {family.name for family in registry.collect()}
    assert set(re.findall(rf"{PREFIX}\w+", text)) <= set(labels)
