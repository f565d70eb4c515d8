"""A server extension that measures, from within, how late the event loop runs what is due.

Every few milliseconds a callback is due; how much later it runs is the loop's lag. ``GET
/benchmark/loop-lag`` answers the lags since it was last asked.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from jupyter_server.base.handlers import APIHandler
from tornado import web

PERIOD = 0.005


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": "loop_probe"}]


def _load_jupyter_server_extension(serverapp: Any) -> None:
    handler = (r"/benchmark/loop-lag", LoopLagHandler, {"probe": Probe()})
    serverapp.web_app.add_handlers(".*$", [handler])


class Probe:
    """Takes a sample every `PERIOD` seconds once `take` was called."""

    def __init__(self) -> None:
        self._lags: list[float] = []
        self._timer: asyncio.TimerHandle | None = None

    def take(self) -> list[float]:
        """Return the lags, in seconds, since the last call."""
        if self._timer is None:
            self._wait()
        lags, self._lags = self._lags, []
        return lags

    def _wait(self) -> None:
        due = time.monotonic() + PERIOD
        self._timer = asyncio.get_running_loop().call_later(PERIOD, self._sample, due)

    def _sample(self, due: float) -> None:
        self._lags.append(max(0.0, time.monotonic() - due))
        self._wait()


class LoopLagHandler(APIHandler):
    """The loop's lag."""

    def initialize(self, probe: Probe) -> None:
        """Take what measures it."""
        self._probe = probe

    @web.authenticated
    def get(self) -> None:
        """Answer the lags since the last time."""
        self.finish({"seconds": self._probe.take()})
