"""Notebooks through the tabs that have them open, over a real WebSocket."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from jupyter_agent_exec.errors import DocumentUnwritable
from jupyter_agent_exec.models import OutputChange
from jupyter_agent_exec.notebooks.backends.contents import ContentsBackend
from jupyter_agent_exec.notebooks.backends.tab import TabBackend
from jupyter_agent_exec.notebooks.changes import (
    DeleteCell,
    Expected,
    Moved,
    Notebook,
    NotebookHandle,
    Position,
    PutCell,
    SetOutputs,
    Unreachable,
    order_of,
)
from tests.notebooks.notebooks_made import NEW_IDS, File, without_ids
from tests.notebooks.page import Answering, Page, shown

OpenPage = Callable[..., Awaitable[Page]]

CHANNEL = ("api", "agent-exec", "notebooks", "channel")
LOG = logging.getLogger("test")
OK = {"status": "ok"}
CELL = {"cell_type": "markdown", "id": "a", "metadata": {}, "source": "hello"}
NOTEBOOK = {"cells": [CELL], "nbformat_minor": 5}


def agreeing(asked: dict[str, Any]) -> dict[str, Any]:
    return {**OK, "notebook": NOTEBOOK} if asked["op"] == "read" else OK


def saying(status: str) -> Answering:
    return lambda asked: {"status": status}


def silent(asked: dict[str, Any]) -> None:
    return None


@pytest.fixture
def ways(jp_serverapp: Any) -> TabBackend:
    app = jp_serverapp.extension_manager.extension_apps["jupyter_agent_exec"]
    found: TabBackend = next(iter(app)).services.tabs
    return found


@pytest.fixture
def open_page(
    ways: TabBackend,
    jp_ws_fetch: Callable[..., Any],
    jp_asyncio_loop: asyncio.AbstractEventLoop,
) -> Iterator[OpenPage]:
    pages: list[Page] = []

    async def open_page(*notebooks: dict[str, Any], answering: Answering = agreeing) -> Page:
        channel = await jp_ws_fetch(*CHANNEL, max_message_size=100_000_000)
        page = Page(channel, answering)
        pages.append(page)
        if notebooks:
            before = tabs(ways)
            await page.announce(*notebooks)
            await until(lambda: tabs(ways) == before + len(notebooks))
        return page

    yield open_page
    for page in pages:
        jp_asyncio_loop.run_until_complete(page.leave())


def tabs(ways: TabBackend) -> int:
    return sum(open.tabs for open in ways.open_notebooks().values())


async def until(holds: Callable[[], bool]) -> None:
    async def wait() -> None:
        while not holds():
            await asyncio.sleep(0)

    await asyncio.wait_for(wait(), 10)


async def reached(ways: TabBackend, path: str) -> NotebookHandle:
    way = await ways.find(path)
    assert way is not None
    return way


async def test_a_notebook_is_reached_for_as_long_as_a_page_shows_it(
    ways: TabBackend, open_page: OpenPage
) -> None:
    assert await ways.find("a.ipynb") is None
    page = await open_page(shown("a.ipynb"), shown("b/c.ipynb"))
    assert (await reached(ways, "/b/c.ipynb")).via == "tab"
    assert await ways.find("c.ipynb") is None
    await page.announce(shown("a.ipynb"))
    await until(lambda: tabs(ways) == 1)
    assert await ways.find("b/c.ipynb") is None
    await page.leave()
    await until(lambda: tabs(ways) == 0)
    assert await ways.find("a.ipynb") is None


async def test_open_notebooks_are_told_with_the_one_used_last_first(
    ways: TabBackend, open_page: OpenPage
) -> None:
    assert ways.recent() == []
    await open_page(shown("old.ipynb", unused_seconds=60.0), shown("/front.ipynb"))
    await open_page(shown("old.ipynb", unused_seconds=70.0), shown("b.ipynb", unused_seconds=9.0))
    assert ways.recent() == ["front.ipynb", "b.ipynb", "old.ipynb"]


async def test_what_the_tab_has_is_read(ways: TabBackend, open_page: OpenPage) -> None:
    page = await open_page(shown("a.ipynb"))
    await page.say({"op": "answer", "id": 77, **OK})  # nobody waits for that
    notebook = await (await reached(ways, "a.ipynb")).read()
    assert notebook == Notebook(cells=[CELL], nbformat_minor=5)


@NEW_IDS
@pytest.mark.parametrize("minor", [4, 5])
async def test_a_tab_knows_cells_by_the_names_that_they_have_in_the_file(
    ways: TabBackend, open_page: OpenPage, jp_root_dir: Path, jp_serverapp: Any, minor: int
) -> None:
    File(jp_root_dir / "a.ipynb").text = json.dumps(without_ids(minor, ids=["0123abcd"]))
    contents = ContentsBackend(jp_serverapp.contents_manager, LOG)
    file = await (await contents.find("a.ipynb")).read()
    names = order_of(file.cells)
    ids = [f"{n}123abcd" if minor == 5 else f"lab-{n}" for n in range(len(names))]
    opened = [{**cell, "id": id} for cell, id in zip(file.cells, ids, strict=True)]

    def answering(asked: dict[str, Any]) -> dict[str, Any]:
        for cell in opened:
            cell["id"] = asked.get("names", {}).get(cell["id"], cell["id"])
        return {**OK, "notebook": {**NOTEBOOK, "cells": opened, "nbformat_minor": minor}}

    page = await open_page(shown("a.ipynb"), answering=answering)
    way = await reached(ways, "a.ipynb")
    assert order_of((await way.read()).cells) == names
    assert [cell["id"] for cell in opened] == names
    opened[1]["source"] = "the person types"
    assert order_of((await way.read()).cells) == names
    await page.heard("read", "name", "read")


async def test_changes_go_to_the_tab_as_json(ways: TabBackend, open_page: OpenPage) -> None:
    page = await open_page(shown("a.ipynb"))
    way = await reached(ways, "a.ipynb")
    output = {"output_type": "stream", "name": "stdout", "text": "1"}
    changes = [
        PutCell(cell=CELL, at=Position(after="b")),
        DeleteCell(cell_id="b"),
        SetOutputs(cell_id="c", changes=[OutputChange(index=0, output=output)]),
    ]
    await way.apply(changes, Expected(cells={"b": ("code", "1 + 1")}, order=["b", "c"]))
    assert page.asked == [
        {
            "op": "apply",
            "id": 1,
            "panel": "panel of a.ipynb",
            "changes": [
                {"op": "put", "cell": CELL, "at": {"after": "b", "before": None, "follows": []}},
                {"op": "delete", "cell_id": "b"},
                {
                    "op": "set_outputs",
                    "cell_id": "c",
                    "changes": [{"index": 0, "output": output}],
                },
            ],
            "expected": {
                "cells": {"b": ["code", "1 + 1"]},
                "counts": {},
                "order": ["b", "c"],
            },
        }
    ]


@pytest.mark.parametrize(
    ("status", "error"),
    [
        ("moved", Moved),
        ("read_only", DocumentUnwritable),
        ("gone", Unreachable),
        ("failed", Unreachable),
    ],
)
async def test_a_tab_that_cannot_do_it_says_why(
    ways: TabBackend, open_page: OpenPage, status: str, error: type[Exception]
) -> None:
    await open_page(shown("a.ipynb"), answering=saying(status))
    with pytest.raises(error):
        await (await reached(ways, "a.ipynb")).apply([], Expected())


async def test_a_page_that_is_closed_before_it_answers_is_unreachable(
    ways: TabBackend, open_page: OpenPage
) -> None:
    page = await open_page(shown("a.ipynb"), answering=silent)
    way = await reached(ways, "a.ipynb")
    applying = asyncio.create_task(way.apply([], Expected()))
    await page.heard("apply")
    await page.leave()
    with pytest.raises(Unreachable):
        await applying
    with pytest.raises(Unreachable):
        await way.read()


async def test_a_notebook_that_is_closed_is_unreachable_though_its_page_goes_on(
    ways: TabBackend, open_page: OpenPage
) -> None:
    page = await open_page(shown("a.ipynb"))
    way = await reached(ways, "a.ipynb")
    await page.announce()
    await until(lambda: tabs(ways) == 0)
    with pytest.raises(Unreachable):
        await way.read()
    assert page.asked == []


async def test_a_page_that_does_not_answer_in_time_is_taken_for_gone(
    ways: TabBackend, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ways, "_timeout", 0.05)
    page = await open_page(shown("a.ipynb"), answering=silent)
    with pytest.raises(Unreachable):
        await (await reached(ways, "a.ipynb")).read()
    assert await ways.find("a.ipynb") is None
    assert await page.closed() == 1001


async def test_of_several_tabs_the_one_that_was_used_last_is_the_way(
    ways: TabBackend, open_page: OpenPage
) -> None:
    first = await open_page(shown("a.ipynb", unused_seconds=5))
    second = await open_page(shown("a.ipynb", unused_seconds=60))
    assert ways.other_tabs("a.ipynb") == 1
    await (await reached(ways, "a.ipynb")).read()
    assert (len(first.asked), len(second.asked)) == (1, 0)
    await second.announce(shown("a.ipynb", unused_seconds=0), shown("b.ipynb"))
    await until(lambda: "b.ipynb" in ways.open_notebooks())
    await (await reached(ways, "a.ipynb")).read()
    assert (len(first.asked), len(second.asked)) == (1, 1)
    await second.leave()
    await until(lambda: tabs(ways) == 1)
    await (await reached(ways, "a.ipynb")).read()
    assert len(first.asked) == 2


async def test_a_tab_with_agents_unsaved_changes_is_written_to(
    ways: TabBackend, open_page: OpenPage
) -> None:
    uses = count()

    async def use(page: Page, **other: Any) -> None:
        other_path = f"{next(uses)}.ipynb"
        await page.announce(shown("a.ipynb", unused_seconds=0, **other), shown(other_path))
        await until(lambda: other_path in ways.open_notebooks())

    async def change(page: Page) -> None:
        asked = len(page.asked)
        await (await reached(ways, "a.ipynb")).apply([], Expected())
        assert len(page.asked) == asked + 1

    first = await open_page(shown("a.ipynb", dirty=True))
    second = await open_page(shown("a.ipynb", unused_seconds=60))
    await change(first)
    await use(second)
    await change(first)
    await use(first)  # saved
    await use(second, dirty=True)
    await change(second)
    await use(first, dirty=True)  # by the person
    await change(second)
    await second.leave()
    await until(lambda: ways.other_tabs("a.ipynb") == 0)
    await change(first)


async def test_a_tab_with_only_a_users_unsaved_edits_is_not_kept(
    ways: TabBackend, open_page: OpenPage
) -> None:
    await open_page(shown("a.ipynb", dirty=True, only_agents=False, unused_seconds=60))
    used = await open_page(shown("a.ipynb"))
    await (await reached(ways, "a.ipynb")).apply([], Expected())
    await used.heard("apply")


async def test_a_collaborative_tab_is_told_of_but_is_no_way(
    ways: TabBackend, open_page: OpenPage
) -> None:
    await open_page(shown("a.ipynb", collaborative=True, dirty=True))
    assert await ways.find("a.ipynb") is None
    opened = ways.open_notebooks()["a.ipynb"]
    assert (opened.tabs, opened.unsaved, opened.collaborative) == (1, True, True)


async def test_tabs_are_asked_one_thing_after_the_other(
    ways: TabBackend, open_page: OpenPage
) -> None:
    page = await open_page(shown("a.ipynb"), answering=silent)
    way = await reached(ways, "a.ipynb")
    first = asyncio.create_task(way.apply([], Expected()))
    second = asyncio.create_task(way.apply([DeleteCell(cell_id="a")], Expected()))
    await page.heard("apply")
    await page.say({"op": "answer", "id": 1, **OK})
    await first
    await page.heard("apply", "apply")
    assert page.asked[1]["changes"] == [{"op": "delete", "cell_id": "a"}]
    await page.say({"op": "answer", "id": 2, **OK})
    await second


async def test_thirty_megabytes_in_one_change_pass(ways: TabBackend, open_page: OpenPage) -> None:
    large = "x" * 30_000_000
    page = await open_page(
        shown("a.ipynb"),
        answering=lambda asked: {
            **OK,
            "notebook": {**NOTEBOOK, "cells": [{**CELL, "source": large}]},
        },
    )
    way = await reached(ways, "a.ipynb")
    await way.apply([PutCell(cell={**CELL, "source": large}, at=Position())], Expected())
    assert page.asked[0]["changes"][0]["cell"]["source"] == large
    assert (await way.read()).cells[0]["source"] == large


@pytest.mark.parametrize("message", ["no json", "{}", '{"op": "announce"}', b"\xff"])
async def test_who_sends_what_no_page_sends_is_hung_up_on(
    open_page: OpenPage, message: str | bytes
) -> None:
    page = await open_page()
    await page.say(message)
    assert await page.closed() == 1007


async def test_pages_are_closed_when_the_server_stops(
    ways: TabBackend, open_page: OpenPage
) -> None:
    page = await open_page(shown("a.ipynb"))
    await ways.stop()
    assert await page.closed() == 1001
    assert await ways.find("a.ipynb") is None


async def test_the_kernel_that_a_page_is_starting_is_waited_for(
    ways: TabBackend, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ways, "_kernel_timeout", 3600)
    await ways.kernel_started("a.ipynb")
    page = await open_page(shown("a.ipynb", kernel_starting=True), shown("b.ipynb"))
    await ways.kernel_started("b.ipynb")
    waiting = asyncio.create_task(ways.kernel_started("/a.ipynb"))
    await page.announce(shown("a.ipynb", kernel_starting=True))
    await until(lambda: tabs(ways) == 1)
    assert not waiting.done()
    await page.announce(shown("a.ipynb"))
    await asyncio.wait_for(waiting, 10)


async def test_a_page_that_goes_is_waited_for_no_longer(
    ways: TabBackend, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ways, "_kernel_timeout", 3600)
    page = await open_page(shown("a.ipynb", kernel_starting=True, collaborative=True))
    waiting = asyncio.create_task(ways.kernel_started("a.ipynb"))
    await asyncio.sleep(0)
    await page.leave()
    await asyncio.wait_for(waiting, 10)


async def test_the_wait_for_a_chosen_kernel_ends(
    ways: TabBackend, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ways, "_kernel_timeout", 0.05)
    await open_page(shown("a.ipynb", kernel_starting=True))
    await ways.kernel_started("a.ipynb")


# -- several tabs ----------------------------------------------------------------------------------


async def test_other_tabs_read_again_what_a_tab_saved_for_an_agent(
    ways: TabBackend, open_page: OpenPage
) -> None:
    source = await open_page(shown("a.ipynb", dirty=True, unused_seconds=0))
    others = [await open_page(shown("a.ipynb")) for _ in range(2)]
    elsewhere = await open_page(shown("b.ipynb"))
    ways.settle("a.ipynb")
    await source.heard("save")
    for other in others:
        await other.heard("reload")
    assert elsewhere.asked == []


async def test_a_lone_tab_is_not_saved(ways: TabBackend, open_page: OpenPage) -> None:
    page = await open_page(shown("a.ipynb", dirty=True))
    ways.settle("a.ipynb")
    await ways.stop()
    assert page.asked == []


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"dirty": True, "only_agents": False}, {}),
        ({"dirty": True}, {"dirty": True, "only_agents": False}),
        ({"dirty": True}, {"dirty": True}),
        ({}, {}),
    ],
)
async def test_nothing_is_saved_where_a_person_has_unsaved_edits(
    ways: TabBackend, open_page: OpenPage, first: dict[str, Any], second: dict[str, Any]
) -> None:
    pages = [
        await open_page(shown("a.ipynb", **first)),
        await open_page(shown("a.ipynb", **second)),
    ]
    ways.settle("a.ipynb")
    await (await reached(ways, "a.ipynb")).read()
    await ways.stop()
    assert [each["op"] for page in pages for each in page.asked] == ["read"]


async def test_others_do_not_read_again_what_was_not_saved(
    ways: TabBackend, open_page: OpenPage
) -> None:
    source = await open_page(shown("a.ipynb", dirty=True), answering=saying("moved"))
    other = await open_page(shown("a.ipynb"))
    ways.settle("a.ipynb")
    await source.heard("save")
    await ways.stop()
    assert other.asked == []


async def test_settling_again_meanwhile_is_one_more_time(
    ways: TabBackend, open_page: OpenPage
) -> None:
    source = await open_page(shown("a.ipynb", dirty=True), answering=silent)
    await open_page(shown("a.ipynb"))
    ways.settle("a.ipynb")
    await source.heard("save")
    for _ in range(5):
        ways.settle("a.ipynb")
    await source.say({"op": "answer", "id": 1, **OK})
    await source.heard("save", "save")
    await source.say({"op": "answer", "id": 2, **OK})
    await until(lambda: not ways._settling)
    assert len(source.asked) == 2


async def test_clean_tabs_read_a_file_again_that_was_written_past_them(
    ways: TabBackend, open_page: OpenPage
) -> None:
    old = await open_page(shown("a.ipynb", hash="1"))
    dirty = await open_page(shown("a.ipynb", hash="1", dirty=True))
    new = await open_page(shown("a.ipynb", hash="2"))
    ways.written("a.ipynb", "2")
    await old.heard("reload")
    assert dirty.asked == new.asked == []


async def test_a_tab_that_read_the_old_file_reads_it_again(
    ways: TabBackend, open_page: OpenPage
) -> None:
    ways.written("a.ipynb", "2")
    late = await open_page(shown("a.ipynb", hash="1"))
    await late.heard("reload")
    await until(lambda: not ways._written)
    await late.announce(shown("a.ipynb", hash="3"))
    await (await reached(ways, "a.ipynb")).read()
    assert [each["op"] for each in late.asked] == ["reload", "read"]


async def test_a_tab_that_read_the_written_file_is_left_alone(
    ways: TabBackend, open_page: OpenPage
) -> None:
    ways.written("a.ipynb", "2")
    ways.written("b.ipynb", None)
    page = await open_page(shown("a.ipynb", hash="2"), shown("b.ipynb", hash="1"))
    await (await reached(ways, "a.ipynb")).read()
    assert [each["op"] for each in page.asked] == ["read"]
