"""Undo in a notebook that people have open together."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.asking import Agent
from tests.checkpoints.asking import turned_on, undone
from tests.notebooks.collaborating import opened, with_rooms
from tests.sessions.living_notebook import NOTEBOOK, Desk

pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux"),
    # Rooms leave streams behind that nobody closes.
    pytest.mark.filterwarnings("ignore:Unclosed <MemoryObject:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture
def jp_server_config(
    jp_server_config: dict[str, Any], jp_root_dir: Path, tmp_path: Path
) -> dict[str, Any]:
    return with_rooms(jp_server_config, jp_root_dir, tmp_path)


async def test_the_document_and_its_outputs_stay(
    agent: Agent,
    desk: Desk,
    jp_fetch: Any,
    jp_http_port: int,
    jp_base_url: str,
    jp_auth_header: dict[str, str],
) -> None:
    desk.writes(NOTEBOOK, "x = 1")
    url = f"ws://127.0.0.1:{jp_http_port}{jp_base_url}"
    async with opened(jp_fetch, url, jp_auth_header, NOTEBOOK) as page:
        _, session, person = await turned_on(agent, desk)
        await person.has_run("x = 1")
        ran = await agent.run(session, "x = 2; print(x)")
        assert ran["document"]["via"] == "collaboration"
        await page.sees(lambda: len(page.cells) == 2 and bool(page.cells[1]["outputs"]))
        before = [(cell["source"], cell["outputs"]) for cell in page.cells]
        await undone(agent, ran)
        assert (await person.has_run("assert x == 1"))["status"] == "ok"
        after = await agent.run(session, "print(x)")
        await page.sees(lambda: len(page.cells) == 3 and bool(page.cells[2]["outputs"]))
        assert [(cell["source"], cell["outputs"]) for cell in page.cells[:2]] == before
        assert after["text"].startswith("1")
