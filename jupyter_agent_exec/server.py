"""Access to Jupyter Server: its hub, events and signals."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from types import FrameType
from typing import Any, Final

from tornado import web

CONTENTS_EVENTS: Final = "https://events.jupyter.org/jupyter_server/contents_service/v1"

HUB_INTERVAL: Final = 30.0
"""Seconds for which an answer of the hub about its user holds."""
HUB_TIMEOUT: Final = 5.0
"""Seconds to wait for the hub; what it said last holds meanwhile."""

STOP_SIGNALS: Final = ("SIGINT", "SIGHUP")
"""Signals that Jupyter Server does not handle when it has no terminal."""


class HubAccess:
    """Whether the hub, if there is one, still lets its user use this server.

    Agents send tokens of this server's own, about which the hub is not asked otherwise.
    """

    def __init__(self, serverapp: Any) -> None:
        self._hub = getattr(serverapp.identity_provider, "hub_auth", None)
        self._lock = asyncio.Lock()
        self._asked_at = -HUB_INTERVAL
        self._refusal: str | None = None

    async def refusal(self) -> str | None:
        """Return why the user may not use this server; None if they may, or without a hub."""
        if self._hub is None:
            return None
        async with self._lock:
            now = asyncio.get_running_loop().time()
            if now - self._asked_at >= HUB_INTERVAL:
                self._asked_at = now
                with suppress(web.HTTPError, TimeoutError):  # a hub that is away changes nothing
                    self._refusal = await asyncio.wait_for(self._asked(self._hub), HUB_TIMEOUT)
            return self._refusal

    async def _asked(self, hub: Any) -> str | None:
        """Ask as this server, whose token at the hub allows no more than its user may do now."""
        user = await hub.user_for_token(hub.api_token, use_cache=False, sync=False)
        if user is not None and hub.check_scopes(hub.access_scopes, user):
            return None
        return "The hub does not let the user of this server use it any more."


class ContentsEvents:
    """Listen to the server's contents events.

    Parameters
    ----------
    moved
        Called with the old and the new contents path of a renamed file or folder.
    """

    def __init__(self, event_logger: Any, moved: Callable[[str, str], Awaitable[None]]) -> None:
        self._event_logger = event_logger
        self._moved = moved

    def start(self) -> None:
        """Start to listen."""
        self._event_logger.add_listener(schema_id=CONTENTS_EVENTS, listener=self._handle_event)

    def stop(self) -> None:
        """Stop listening."""
        self._event_logger.remove_listener(listener=self._handle_event)

    async def _handle_event(self, logger: Any, schema_id: str, data: dict[str, Any]) -> None:
        if data.get("action") == "rename" and "source_path" in data:
            await self._moved(data["source_path"].strip("/"), data["path"].strip("/"))


class StopSignals:
    """Stop the server cleanly at signals that would end it at once.

    JupyterHub stops a server with SIGINT. Without a terminal, Jupyter Server has no handler for it:
    the event loop breaks off, and no extension is stopped. SIGHUP ends the process. A handler that
    is already set stays, and an ignored signal (`nohup`) stays ignored.

    Parameters
    ----------
    stop
        Called with the signal's name at each such signal. Like every signal handler, it runs
        between two bytecodes of the main thread.
    """

    def __init__(self, stop: Callable[[str], None]) -> None:
        self._stop = stop
        self._replaced: dict[signal.Signals, Any] = {}

    def start(self) -> None:
        """Handle the signals; only the main thread can."""
        if threading.current_thread() is not threading.main_thread():
            return
        for name in STOP_SIGNALS:
            number = getattr(signal, name, None)  # Windows has no SIGHUP
            if number is None:
                continue
            current = signal.getsignal(number)
            if current in (signal.SIG_DFL, signal.default_int_handler):
                self._replaced[number] = current
                signal.signal(number, self._handle)

    def end(self) -> None:
        """Restore the previous handlers. Idempotent."""
        while self._replaced:
            number, before = self._replaced.popitem()
            if signal.getsignal(number) == self._handle:
                signal.signal(number, before)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self._stop(signal.Signals(number).name)
