"""Taking back what an agent changed in a notebook that people have open together."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.asking import Agent, Send
from tests.notebooks.collaborating import opened, with_rooms
from tests.notebooks.test_proposals import PATH, PROPOSES
from tests.notebooks.test_rounds import EDITS, begun

# Rooms leave streams behind that nobody closes.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Unclosed <MemoryObject:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture
def agent_exec_config() -> dict[str, Any]:
    return {"approval": PROPOSES}


@pytest.fixture
def jp_server_config(
    jp_server_config: dict[str, Any], jp_root_dir: Path, tmp_path: Path
) -> dict[str, Any]:
    return with_rooms(jp_server_config, jp_root_dir, tmp_path)


async def test_what_an_agent_changed_is_taken_back_and_made_again_in_the_pages(
    agent: Agent,
    ask: Send,
    jp_root_dir: Path,
    jp_serverapp: Any,
    jp_fetch: Any,
    jp_http_port: int,
    jp_base_url: str,
    jp_auth_header: dict[str, str],
) -> None:
    round = await begun(agent, ask, jp_root_dir, jp_serverapp, edits="apply")
    url = f"ws://127.0.0.1:{jp_http_port}{jp_base_url}"
    open_page = partial(opened, jp_fetch, url, jp_auth_header, PATH)
    async with open_page() as page, open_page() as other:
        before = page.sources
        await round.work.edit(*EDITS)
        ran = await round.run("print(1)")
        assert ran["document"]["via"] == "collaboration"
        await page.sees(lambda: len(page.cells) == 6 and bool(page.cells[5]["outputs"]))
        after, ran_cell = page.sources, page.cells[5]
        assert after == ["df", "# Sales", "New", "df = 2", "df", "print(1)"]

        source = other.document.ycells[4]["source"]
        source += " + 1"  # as a person types
        await page.sees(lambda: page.sources[4] == "df + 1")
        undone = await round.undo()
        assert undone["changes"] == 5
        assert [each["cell_id"] for each in undone["left"]] == ["shown"]
        typed = [before[0], before[1], "df + 1", *before[3:]]
        for each in (page, other):
            await each.sees(lambda each=each: each.sources == typed)  # type: ignore[misc]
        assert page.cells[3]["outputs"][0]["text"] == "a\n"

        assert (await round.redo())["left"] == []
        await page.sees(lambda: len(page.cells) == 6 and bool(page.cells[5]["outputs"]))
        assert page.sources == [*after[:4], "df + 1", after[5]]
        assert page.cells[5] == ran_cell
