"""A page of Chromium, spoken to by its debugging protocol."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import httpx2
from pages import browser
from websocket import WebSocket, create_connection

START_SECONDS = 30.0
ANSWER_SECONDS = 300.0
POLL_SECONDS = 0.1


class ProtocolError(Exception):
    """The browser refused."""


class Page:
    """A page that runs scripts and tells how much memory it uses."""

    def __init__(self, connection: WebSocket) -> None:
        self._connection = connection
        self._numbers = count(1)

    def run(self, script: str) -> Any:
        """Return what an asynchronous function's body returns."""
        answer = self._ask(
            "Runtime.evaluate",
            expression=f"(async () => {{{script}}})()",
            awaitPromise=True,
            returnByValue=True,
        )
        if "exceptionDetails" in answer:
            raise SystemExit(f"The page could not: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def go(self, url: str, ready: str) -> None:
        """Load a page, and wait until an expression is true of it."""
        self.run("window.left = true;")
        self._ask("Page.navigate", url=url)
        self._until(f"!window.left && ({ready})")

    def before_each_load(self, script: str) -> None:
        """Run a script in each page that is loaded from now on, before its own."""
        self._ask("Page.enable")
        self._ask("Page.addScriptToEvaluateOnNewDocument", source=script)

    def work_seconds(self) -> float:
        """Return how long the page's main thread has worked, waits for a processor not counted."""
        self._ask("Performance.enable", timeDomain="threadTicks")
        metrics = self._ask("Performance.getMetrics")["metrics"]
        return float({each["name"]: each["value"] for each in metrics}["TaskDuration"])

    def _until(self, expression: str) -> None:
        deadline = time.monotonic() + ANSWER_SECONDS
        while time.monotonic() < deadline:
            try:
                answer = self._ask("Runtime.evaluate", expression=f"Boolean({expression})")
            except ProtocolError:
                answer = {}  # the page went away meanwhile
            if answer.get("result", {}).get("value") is True:
                return
            time.sleep(POLL_SECONDS)
        raise SystemExit(f"This did not become true of the page: {expression}")

    def heap_bytes(self) -> int:
        """Return what JavaScript's objects take, without those that nobody needs."""
        self._ask("HeapProfiler.collectGarbage")
        return int(self._ask("Runtime.getHeapUsage")["usedSize"])

    def nodes(self) -> int:
        """Return the number of nodes in documents, and of those that scripts still hold."""
        return int(self._ask("Memory.getDOMCounters")["nodes"])

    def _ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        number = next(self._numbers)
        self._connection.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            answer = json.loads(self._connection.recv())
            if answer.get("id") != number:
                continue  # an event
            if "error" in answer:
                raise ProtocolError(f"{method}: {answer['error']}")
            return dict(answer["result"])


@contextmanager
def open_page(profile: Path, url: str) -> Iterator[Page]:
    """Open a page in a browser of its own, without a window."""
    options = ("--remote-debugging-port=0", "--window-size=1280,900")
    with browser(profile, url, *options):
        address = _address(profile)
        connection = create_connection(address, timeout=ANSWER_SECONDS, suppress_origin=True)
        try:
            yield Page(connection)
        finally:
            connection.close()


def _address(profile: Path) -> str:
    """Return the WebSocket address of the browser's only page."""
    written = profile / "DevToolsActivePort"
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if written.exists():
            port = written.read_text().split("\n")[0]
            targets = httpx2.get(f"http://127.0.0.1:{port}/json/list").json()
            pages = [target for target in targets if target["type"] == "page"]
            if pages:
                return str(pages[0]["webSocketDebuggerUrl"])
        time.sleep(POLL_SECONDS)
    raise SystemExit(f"The browser was not ready within {START_SECONDS:g} seconds.")
