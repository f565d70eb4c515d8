"""Asking a server as an agent does."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import nbformat
from tornado.httpclient import HTTPClientError, HTTPResponse

NAMESPACE = "api/agent-exec"


class Answered:
    """An answer, whatever its status."""

    def __init__(self, response: HTTPResponse) -> None:
        self.status = response.code
        self.headers = response.headers
        self.body = response.body or b""

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def check_cells(answered: Answered) -> None:
    """Raise if a cell of an answer is not one that nbformat accepts."""
    content_type = answered.headers.get("Content-Type", "")
    if answered.status not in (200, 201, 202) or content_type != "application/json":
        return
    body = answered.json
    listed = body.get("executions")  # in a session, it is a number
    for execution in listed if isinstance(listed, list) else [body]:
        if isinstance(execution.get("cell"), dict):
            nbformat.validate(execution["cell"], ref="code_cell", version=4, version_minor=5)


Send = Callable[..., Awaitable[Answered]]
"""Sends a request with just the headers that are given, and takes any answer."""


class Agent:
    """Asks the server's routes as an agent does, with the server's token."""

    def __init__(self, fetch: Callable[..., Awaitable[HTTPResponse]]) -> None:
        self._fetch = fetch

    async def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: dict[str, str] | None = None,
        headers: dict[str, str] | None = None,
    ) -> Answered:
        data: Any = body
        if body is not None and not isinstance(body, (str, bytes)):
            data = json.dumps(body)
        if body is None and method == "POST":
            data = "{}"
        try:
            response = await self._fetch(
                *NAMESPACE.split("/"),
                *path.strip("/").split("/"),
                method=method,
                body=data,
                params=query or {},
                headers=headers or {},
                request_timeout=60,
            )
        except HTTPClientError as error:
            if error.response is None:
                raise
            response = error.response
        answered = Answered(response)
        check_cells(answered)
        return answered

    async def get(self, path: str, **query: Any) -> Answered:
        return await self.ask("GET", path, query={k: str(v) for k, v in query.items()})

    async def open(self, **asked: Any) -> dict[str, Any]:
        answered = await self.ask("POST", "sessions", {"agent": {"name": "tester"}, **asked})
        assert answered.status == 201, answered.body
        return answered.json

    async def settle(self, session: dict[str, Any]) -> None:
        """Wait until all that follows from a session's executions is in its record."""
        await self.get(f"sessions/{session['id']}/requirements")

    async def run(self, session: dict[str, Any], source: str, **asked: Any) -> dict[str, Any]:
        answered = await self.ask(
            "POST", f"sessions/{session['id']}/executions", {"source": source, **asked}
        )
        assert answered.status in (201, 202), answered.body
        return answered.json
