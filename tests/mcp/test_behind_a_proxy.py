"""The links in answers behind a proxy that strips a prefix from paths."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from tests.mcp.mcp_clients import text_of
from tests.mcp.person_in_browser import signed_in
from tests.mcp.signing_in import SigningIn
from tests.mcp.stripping_proxy import stripping_proxy
from tests.real_server import TOKEN, real_server

PREFIX = "/team/jupyter"
API = f"{PREFIX}/api/agent-exec"

PLOT = """
import base64, pathlib
from IPython.display import Image, display
png = base64.b64decode(
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
)
pathlib.Path('plot.png').write_bytes(png)
display(Image(data=png))
print('long ' * 10_000)
"""


def links(text: str) -> set[str]:
    """Return what names a path of the API, with what stands before it."""
    return set(re.findall(r"[^\s\"'<>()\\]*/api/agent-exec[^\s\"'<>()\\,;]*", text))


async def test_links_keep_what_the_proxy_strips(tmp_path: Path) -> None:
    async with stripping_proxy(PREFIX) as proxy:
        told = f"--ServerApp.custom_display_url={proxy.url}"
        with real_server(tmp_path, told) as server:
            proxy.upstream = server.url
            direct = server.url.partition("?")[0].rstrip("/")
            headers = {"Authorization": f"Bearer {TOKEN}"}
            async with httpx2.AsyncClient(headers=headers, trust_env=False, timeout=60) as http:
                seen = await answers_with_links(http, proxy.url, "one.ipynb")
                assert len(seen) > 10
                for link in seen:
                    assert urlsplit(link).path.startswith(f"{API}"), link
                for link in seen:
                    if "/text?" in link or "/blobs/" in link or "/files/" in link:
                        found = await http.get(httpx2.URL(proxy.url).join(link))
                        assert found.status_code == 200, link
                at_server = await answers_with_links(http, direct, "two.ipynb")
                assert all(urlsplit(link).path.startswith("/api/") for link in at_server)
            [ledger] = server.history_dir.glob("ledger-*.jsonl")
            assert f'"address":"{proxy.url}"' in ledger.read_text()


async def answers_with_links(http: httpx2.AsyncClient, url: str, path: str) -> set[str]:
    """Return the links in all answers that have some, of a session in a new notebook."""
    api = f"{url}/api/agent-exec"
    answered: list[httpx2.Response] = []

    async def ask(method: str, path: str, **sent: object) -> httpx2.Response:
        answered.append(await http.request(method, f"{api}/{path}", **sent))  # type: ignore[arg-type]
        assert answered[-1].is_success, answered[-1].text
        return answered[-1]

    opened = await ask(
        "POST",
        "sessions",
        json={
            "agent": {"name": "tester"},
            "target": {"kind": "notebook", "path": path, "create": True},
        },
    )
    session = opened.json()["id"]
    ran = await ask("POST", f"sessions/{session}/executions", json={"source": PLOT})
    assert ran.json()["status"] == "ok", ran.text
    for each in (
        f"executions/{ran.json()['id']}",
        f"executions/{ran.json()['id']}/stream",
        f"sessions/{session}/executions",
        "images",
        f"notebooks/{path}/cells",
        "openapi.json",
    ):
        await ask("GET", each)
    await ask("PUT", f"sessions/{session}/files/{path}.txt", content=b"new")
    await ask("POST", "tokens", json={"label": "new", "scopes": ["exec:scratch"]})
    missing = await http.get(f"{api}/nothing")
    async with Client(streamable_http_client(f"{api}/mcp", http_client=http)) as client:
        exported = text_of(await client.call_tool("export_notebook", {"session_id": session}))
    texts = [missing.text, exported, *(each.text for each in answered)]
    locations = [each.headers["Location"] for each in answered if "Location" in each.headers]
    assert len(locations) == 4
    assert all(links(text) for text in (missing.text, exported))
    return {link for text in [*texts, *locations] for link in links(text)}


async def test_a_client_signs_in_through_the_proxy(tmp_path: Path) -> None:
    async with stripping_proxy(PREFIX) as proxy:
        told = f"--ServerApp.custom_display_url={proxy.url}/"
        with real_server(tmp_path, told) as server:
            proxy.upstream = server.url
            # Jupyter's own login page sends its form to where the proxy does not listen.
            program = SigningIn(f"{proxy.url}/api/agent-exec/mcp", partial(signed_in, by_link=True))
            assert "execute" in await program.tools()
            await program.renew()
            assert "execute" in await program.tools()
            [sent] = program.sent
            assert sent.params["iss"] == f"{proxy.url}/api/agent-exec"
            direct = SigningIn(f"{server.url.partition('?')[0]}api/agent-exec/mcp")
            assert "execute" in await direct.tools()
