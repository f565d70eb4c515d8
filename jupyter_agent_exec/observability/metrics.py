"""Prometheus metrics, on Jupyter's own `/metrics`.

They count in the process, like those of Jupyter Server. What changes all the time, such as the
length of a queue, is read when somebody asks for the metrics.
"""

from __future__ import annotations

import asyncio
import math
import os
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Executor
from contextlib import suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

from prometheus_client import Counter, Gauge, Histogram

from .._version import __version__
from ..auth.denials import Refusal
from ..errors import AgentExecError
from ..executions.observer import ExecutionObserver
from ..journal.history import History
from ..models import Session
from ..records import ExecutionRecord
from ..sessions.session import LiveSession
from ..tasks import call_later_apart
from ..types import FINAL_STATUSES
from .logs import target_kind

TARGETS: Final = ("scratch", "notebook", "kernel")

_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800)

EXECUTIONS = Counter(
    "jupyter_agent_exec_executions",
    "Executions that have ended, by status and kind of target",
    ["status", "target"],
)
DURATION = Histogram(
    "jupyter_agent_exec_execution_duration_seconds",
    "How long executions ran in their kernel",
    ["target"],
    buckets=_SECONDS,
)
QUEUE_WAIT = Histogram(
    "jupyter_agent_exec_queue_wait_seconds",
    "How long executions waited for their turn; those that needed approval do not count",
    ["target"],
    buckets=_SECONDS,
)
OUTPUT_BYTES = Counter(
    "jupyter_agent_exec_output_bytes",
    "Bytes of outputs, with those that exceeded the limits",
    ["target"],
)
REFUSALS = Counter("jupyter_agent_exec_refusals", "Requests that were refused, by code", ["code"])
SESSIONS = Gauge("jupyter_agent_exec_open_sessions", "Sessions that are open", ["target"])
KERNELS = Gauge("jupyter_agent_exec_kernels", "Kernels of open sessions", ["target"])
RUNNING = Gauge("jupyter_agent_exec_running_executions", "Executions that run now")
QUEUED = Gauge("jupyter_agent_exec_queued_executions", "Executions that wait now")
APPROVALS = Gauge("jupyter_agent_exec_approvals_waiting", "Executions that wait for approval now")
WRITABLE = Gauge(
    "jupyter_agent_exec_history_writable",
    "Whether the history could be written last (1) or not (0)",
)
HISTORY_BYTES = Gauge("jupyter_agent_exec_history_bytes", "Bytes of the history's files")
PAUSED = Gauge("jupyter_agent_exec_paused", "Whether a user has paused all agents (1) or not (0)")
INFO = Gauge("jupyter_agent_exec_info", "Always 1; its label tells the version", ["version"])
SINK_LAG = Gauge("jupyter_agent_exec_sink_lag_seconds", "How far behind a sink is", ["sink"])
LOOP_LAG = Histogram(
    "jupyter_agent_exec_loop_lag_seconds",
    "How late the event loop of the server called a timer",
    buckets=(0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5),
)

LOOP_INTERVAL: Final = 1.0
"""Seconds between two looks at the event loop."""
MEASURE_INTERVAL: Final = 60.0
"""Seconds from a measurement of the history to the next one, if somebody asks for the metrics."""


class Metrics:
    """Feeds the metrics of one server.

    Parameters
    ----------
    sessions
        Returns the open sessions.
    is_paused
        Returns whether all agents are paused.
    disk
        Runs what blocks on the disk.
    """

    def __init__(
        self,
        sessions: Callable[[], Collection[LiveSession]],
        history: History,
        is_paused: Callable[[], bool],
        disk: Executor,
    ) -> None:
        self._sessions = sessions
        self._history = history
        self._is_paused = is_paused
        self._disk = disk
        self._bytes = math.nan
        self._measure_at = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def show(self) -> None:
        """Show the state of this server, from now on; what was not counted yet is 0."""
        INFO.labels(__version__).set(1)
        WRITABLE.set_function(lambda: self._history.available)
        HISTORY_BYTES.set_function(self._measured_bytes)
        PAUSED.set_function(self._is_paused)
        for code in _codes(AgentExecError):
            REFUSALS.labels(code)
        for target in TARGETS:
            for status in FINAL_STATUSES:
                EXECUTIONS.labels(status, target)
            for each in (DURATION, QUEUE_WAIT, OUTPUT_BYTES):
                each.labels(target)
            SESSIONS.labels(target).set_function(partial(self._count, target))
            KERNELS.labels(target).set_function(partial(self._kernels, target))
        RUNNING.set_function(
            lambda: sum(each.unfinished.running is not None for each in self._sessions())
        )
        QUEUED.set_function(lambda: sum(each.unfinished.queued for each in self._sessions()))
        APPROVALS.set_function(
            lambda: sum(1 for each in self._sessions() for _ in each.gate.awaiting_approval())
        )
        for name in self._history.copies.lags():
            SINK_LAG.labels(name).set_function(partial(self._lag, name))

    def start(self) -> None:
        """Begin to look at the event loop."""
        self._look_later()

    def stop(self) -> None:
        """Forget the server. Idempotent."""
        if self._timer is not None:
            self._timer.cancel()
        for gauge in (RUNNING, QUEUED, APPROVALS, PAUSED):
            gauge.set_function(lambda: 0)
        for gauge in (WRITABLE, HISTORY_BYTES):
            gauge.set_function(lambda: math.nan)
        for gauge in (SESSIONS, KERNELS, SINK_LAG):
            gauge.clear()

    def observer(self, session: Session) -> ExecutionObserver:
        """Return the observer of a new session."""
        return _SessionMetrics(target_kind(session))

    def refused(self, refusal: Refusal) -> None:
        """Count a refused request."""
        REFUSALS.labels(refusal.code).inc()

    def _count(self, target: str) -> int:
        return sum(target_kind(each.unfinished.session) == target for each in self._sessions())

    def _kernels(self, target: str) -> int:
        ids = {
            each.kernel.id
            for each in self._sessions()
            if each.kernel is not None and target_kind(each.unfinished.session) == target
        }
        return len(ids)

    def _lag(self, sink: str) -> float:
        return self._history.copies.lags()[sink]

    def _measured_bytes(self) -> float:
        """Return the bytes as measured last, NaN before that; measure again if it is due."""
        now = time.monotonic()
        if now >= self._measure_at:
            self._measure_at = now + MEASURE_INTERVAL
            self._disk.submit(self._measure)
        return self._bytes

    def _measure(self) -> None:
        self._history.look()
        self._bytes = _size_of(self._history.folder)

    def _look_later(self) -> None:
        due = asyncio.get_running_loop().time() + LOOP_INTERVAL
        self._timer = call_later_apart(LOOP_INTERVAL, self._look, due)

    def _look(self, due: float) -> None:
        LOOP_LAG.observe(max(0.0, asyncio.get_running_loop().time() - due))
        self._look_later()


class _SessionMetrics(ExecutionObserver):
    def __init__(self, target: str) -> None:
        self._target = target
        self._duration = DURATION.labels(target)
        self._queue_wait = QUEUE_WAIT.labels(target)
        self._output_bytes = OUTPUT_BYTES.labels(target)

    def finished(self, record: ExecutionRecord) -> None:
        EXECUTIONS.labels(record.status, self._target).inc()
        if record.duration is not None:
            self._duration.observe(record.duration)
        if record.started_at is not None and record.approval is None:
            started = datetime.fromisoformat(record.started_at)
            waited = started - datetime.fromisoformat(record.accepted_at)
            self._queue_wait.observe(max(0.0, waited.total_seconds()))
        self._output_bytes.inc(size(record.outputs) + record.omitted.bytes)


def _codes(error: type[AgentExecError]) -> Iterator[str]:
    """Yield the codes of all errors below one."""
    for each in error.__subclasses__():
        yield each.code
        yield from _codes(each)


def size(value: Any) -> int:
    """Return the bytes of all text in a JSON value."""
    if isinstance(value, str):
        return len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass"))
    if isinstance(value, dict):
        return sum(map(size, value.values()))
    return sum(map(size, value)) if isinstance(value, list) else 0


def _size_of(folder: Path) -> int:
    """Return the bytes of the files below a folder that are still there when they are looked at."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                total += os.lstat(os.path.join(parent, name)).st_size
    return total
