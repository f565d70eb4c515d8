"""Asking for dynamic sessions as their clients do."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

from tests.asking import Answered, Send

VERSION = "2024-02-02-preview"


def form(data: bytes, filename: str, field: str = "file") -> tuple[str, str]:
    """Return the Content-Type and the body of a form with one file."""
    head = f'Content-Disposition: form-data; name="{field}"; filename="{filename}"'
    body = f"--edge\r\n{head}\r\nContent-Type: application/octet-stream\r\n\r\n".encode()
    whole = body + data + b"\r\n--edge--\r\n"
    return "multipart/form-data; boundary=edge", whole.decode("latin-1")


class DynamicSession:
    """One identifier, with one credential."""

    def __init__(self, ask: Send, headers: dict[str, str], identifier: str) -> None:
        self.query = {"api-version": VERSION, "identifier": identifier}
        self._ask = ask
        self._headers = headers

    async def post_code(self, properties: Any, **headers: str) -> Answered:
        return await self._ask(
            "POST",
            "aca/code/execute",
            headers={**self._headers, "Content-Type": "application/json", **headers},
            query=self.query,
            body=json.dumps({"properties": properties}),
        )

    async def execute(self, code: str, **more: Any) -> Answered:
        said = {"codeInputType": "inline", "executionType": "synchronous", "code": code, **more}
        return await self.post_code(said)

    async def run(self, code: str, **more: Any) -> dict[str, str]:
        answered = await self.execute(code, **more)
        assert answered.status == 200, answered.body
        told: dict[str, str] = answered.json["properties"]
        return told

    async def upload(self, data: bytes, filename: str, **named: str) -> Answered:
        content_type, body = form(data, filename, **named)
        return await self._ask(
            "POST",
            "aca/files/upload",
            headers={**self._headers, "Content-Type": content_type},
            query=self.query,
            body=body.encode("latin-1"),
        )

    async def list(self) -> Answered:
        return await self._ask("GET", "aca/files", headers=self._headers, query=self.query)

    async def names(self) -> list[str]:
        answered = await self.list()
        assert answered.status == 200, answered.body
        return [file["properties"]["filename"] for file in answered.json["value"]]

    async def read(self, name: str) -> Answered:
        return await self._ask(
            "GET", f"aca/files/content/{quote(name)}", headers=self._headers, query=self.query
        )
