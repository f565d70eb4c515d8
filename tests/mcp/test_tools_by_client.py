"""Tools as the official client sees them: approval, pictures, large answers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from mcp_types import ImageContent

from tests.mcp.mcp_clients import LATEST, connected, opened, text_of
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
async def test_a_client_is_told_where_the_user_decides(
    asking_server: RealServer, mode: str
) -> None:
    async with connected(asking_server, mode) as client:
        session_id = await opened(client)
        asked = {"session_id": session_id, "source": "1", "wait": 0}
        told = await client.call_tool("execute", asked)
        assert told.structured_content["status"] == "awaiting_approval"
        assert f"The user has to approve it in JupyterLab, at {asking_server.url}" in text_of(told)
        await client.call_tool("stop", {"session_id": session_id})


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
