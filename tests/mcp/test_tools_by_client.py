"""Tools as the official client sees them, and its model: approval, pictures, large answers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from mcp_types import CallToolResult, ImageContent, TextContent

from tests.mcp.mcp_clients import LATEST, connected, opened
from tests.real_server import RealServer, real_server

MODES = pytest.mark.parametrize("mode", ["legacy", LATEST])

PRINTS_AND_SHOWS = """
import io, os, time
from IPython.display import Image, display
from PIL import Image as Picture
print('\\x01é"' * 500_000)
for i in range(6):
    file = io.BytesIO()
    Picture.frombytes('RGB', (600, 450), os.urandom(600 * 450 * 3)).save(file, 'PNG')
    display(Image(file.getvalue()))
time.sleep(1)
"""


@pytest.fixture(scope="module")
def asking_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    """A server where a person has to approve everything."""
    folder = tmp_path_factory.mktemp("asking")
    extensions = ("jupyter_agent_exec", "jupyterlab")
    asks = {"scratch": "always"}
    with real_server(folder, approval=asks, extensions=extensions) as server:
        yield server


@MODES
async def test_the_largest_answer_arrives_after_progress(server: RealServer, mode: str) -> None:
    heard: list[str | None] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        heard.append(message)

    async with connected(server, mode) as client:
        session_id = await opened(client)
        asked = {"session_id": session_id, "source": PRINTS_AND_SHOWS, "wait": 60}
        told = await client.call_tool("execute", asked, progress_callback=progress)
        assert heard
        assert sum(isinstance(block, ImageContent) for block in told.content) == 4
        assert told.structured_content["status"] == "ok"
        await client.call_tool("stop", {"session_id": session_id})


PLOTS = """
import io, os
from IPython.display import Image, display
from PIL import Image as Picture
def plot(size):
    file = io.BytesIO()
    Picture.frombytes('RGB', size, os.urandom(3 * size[0] * size[1])).save(file, 'PNG')
    display(Image(file.getvalue()))
"""


def structured_alone(told: CallToolResult) -> tuple[str, int]:
    """Return the text and the number of images that Codex shows its model, and others do."""
    structured = told.structured_content
    return content_alone(told) if structured is None else (json.dumps(structured), 0)


def content_alone(told: CallToolResult) -> tuple[str, int]:
    """Return the text and the number of images that most clients show their model."""
    assert all(isinstance(block, (TextContent, ImageContent)) for block in told.content)
    texts = [block.text for block in told.content if isinstance(block, TextContent)]
    return "\n".join(texts), len(told.content) - len(texts)


@MODES
async def test_a_model_sees_images_whichever_part_its_client_shows(
    server: RealServer, mode: str
) -> None:
    async with connected(server, mode, name="codex-mcp-client") as client:
        asked: dict[str, Any] = {"session_id": await opened(client)}
        await client.call_tool("execute", asked | {"source": PLOTS})
        told = await client.call_tool("execute", asked | {"source": "print(6 * 7); plot((20, 20))"})
        for shows in (structured_alone, content_alone):
            text, shown = shows(told)
            assert (text[:3], shown) == ("42\n", 1)
        many = {"source": "for _ in range(6): plot((20, 20))"}
        text, shown = structured_alone(await client.call_tool("execute", asked | many))
        assert shown == 4
        beyond = r"image [56] is not shown: .* Original: GET /api/agent-exec/blobs/"
        assert len(re.findall(beyond, text)) == 2
        large = [{"source": "plot((900, 700))"}] * 3
        text, shown = structured_alone(await client.call_tool("execute", asked | {"steps": large}))
        assert shown == len(re.findall(r"image 1 is below", text))
        assert 3 - shown == len(re.findall(r"image 1 is not shown: .* GET /api", text))
        told = await client.call_tool("execute", asked | {"source": "6 * 7"})
        assert told.structured_content["text"] == "42"
        await client.call_tool("stop", asked)
    async with connected(server, mode) as program:
        told = await program.call_tool(
            "execute", {"target": {"kind": "scratch"}, "source": f"{PLOTS}\nplot((20, 20))"}
        )
        assert told.structured_content["images"][0]["shown"] is True
        assert content_alone(told)[1] == 1
        await program.call_tool("stop", {"session_id": told.structured_content["session_id"]})


def leaves(value: Any) -> Iterator[str]:
    """Yield the texts, and the numbers that are no times, of JSON."""
    if isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from leaves(item)
    elif type(value) is int or (isinstance(value, str) and not re.match(r"\d{4}-\d\d-", value)):
        yield str(value)


def bare(text: str) -> str:
    return re.sub(r"[\W_]+", " ", text)


async def test_each_part_of_an_answer_says_what_the_other_says(asking_server: RealServer) -> None:
    opening = {"agent": "parts", "title": "Two parts", "client_id": "parts"}
    trial = {"source": "print(6 * 7)", "trial": True, "values": {"n": "1 + 1"}}
    async with connected(asking_server) as client:
        session = {"session_id": await opened(client, **opening)}
        for name, asked in (
            ("open_session", opening),
            ("list_sessions", {}),
            ("execute", session | trial),
            ("execute", session | {"source": "1", "wait": 0}),
            ("stop", session),
        ):
            told = await client.call_tool(name, asked)
            text, _ = content_alone(told)
            missing = [
                each for each in leaves(told.structured_content) if bare(each) not in bare(text)
            ]
            assert missing == [], (name, text)
            said = set(bare(json.dumps(told.structured_content, ensure_ascii=False)).split())
            others = ("s_", "[execution", "It was open", "[kernel_name may be")
            notes = [line for line in text.splitlines() if not line.startswith(others)]
            assert [line for line in notes if not set(bare(line).split()) <= said] == [], name
