"""A session's files by tools, and what its code asks for while it runs."""

from __future__ import annotations

import base64
import re
from functools import partial
from pathlib import Path

import pytest
from mcp_types import ImageContent
from PIL import Image

from jupyter_agent_exec import errors
from jupyter_agent_exec.mcp import budget
from tests.mcp.mcp_clients import text_of
from tests.mcp.tools_bench import Bench, size


def etag_of(text: str) -> str:
    """Return the etag in the text of a tool."""
    found = re.search(r'etag ("[^"]*")', text)
    assert found is not None
    return found[1]


async def test_a_file_is_written_listed_and_read(bench: Bench, jp_root_dir: Path) -> None:
    session = await bench.open()
    asked = {"session_id": session, "path": "data/names.txt", "text": "Ada\nGrace é\n"}
    written = await bench.text("write_file", **asked)
    assert written.startswith("'data/names.txt': new, 13 bytes, etag ")
    assert (jp_root_dir / "data/names.txt").read_text() == "Ada\nGrace é\n"
    assert "data/" in (await bench.text("read_file", session_id=session)).splitlines()
    listed = await bench.text("read_file", session_id=session, path="data")
    assert listed == "data/names.txt  13 bytes"
    read = await bench.text("read_file", session_id=session, path="data/names.txt")
    assert read.startswith("Ada\nGrace é\n\n['data/names.txt': ")
    assert etag_of(read) == etag_of(written)
    assert "replaced" in await bench.text("write_file", **{**asked, "text": "new"})
    told = await bench.run(session, "open('data/names.txt').read()")
    assert told["text"] == "'new'"


async def test_a_file_of_somebody_else_is_replaced_only_by_its_etag(
    bench: Bench, jp_root_dir: Path
) -> None:
    (jp_root_dir / "theirs.txt").write_text("theirs")
    session = await bench.open()
    asked = {"session_id": session, "path": "theirs.txt", "text": "mine"}
    with pytest.raises(errors.FileNotOwned):
        await bench.call("write_file", **asked)
    etag = etag_of(await bench.text("read_file", session_id=session, path="theirs.txt"))
    (jp_root_dir / "theirs.txt").write_text("theirs, changed")
    with pytest.raises(errors.PreconditionFailed):
        await bench.call("write_file", **asked, etag=etag)
    assert (jp_root_dir / "theirs.txt").read_text() == "theirs, changed"
    etag = etag_of(await bench.text("read_file", session_id=session, path="theirs.txt"))
    await bench.call("write_file", **asked, etag=etag)
    assert (jp_root_dir / "theirs.txt").read_text() == "mine"


async def test_the_lines_of_a_file_that_match_are_read(bench: Bench, jp_root_dir: Path) -> None:
    (jp_root_dir / "names.txt").write_text("Ada\nGrace é\nada\n")
    look = partial(bench.text, "read_file", session_id=await bench.open(), path="names.txt")
    assert (await look(match="ADA")).startswith("0: Ada\n13: ada\n\n['names.txt': ")
    assert (await look(match="ADA", offset=1)).startswith("13: ada\n")
    assert (await look(match="nosuch")).startswith("There is no line with 'nosuch'.\n['names")
    assert (await look(match="ADA", limit=1)).endswith("; more: read_file(…, offset=13)]")


async def test_a_large_text_is_read_in_parts_that_make_the_whole(
    bench: Bench, jp_root_dir: Path
) -> None:
    whole = "".join(f"{i} é€😀\n" for i in range(8000))
    (jp_root_dir / "large.txt").write_text(whole)
    session = await bench.open()
    parts: list[str] = []
    offset: int | None = 0
    while offset is not None:
        asked = {"session_id": session, "path": "large.txt", "offset": offset, "limit": 20_000}
        result = await bench.whole("read_file", **asked)
        assert size(result) < 10 * budget.RANGE_BYTES
        text, _, note = text_of(result).rpartition("\n")
        parts.append(text)
        more = re.search(r"offset=(\d+)", note)
        offset = None if more is None else int(more[1])
    assert "".join(parts) == whole
    inside = whole.encode().index("é".encode()) + 1
    asked = {"session_id": session, "path": "large.txt", "offset": inside, "limit": 40}
    told = await bench.text("read_file", **asked)
    assert told.startswith("é€")
    assert len(told.rpartition("\n")[0].encode()) <= 40
    asked["offset"] = len(whole.encode())
    assert f"ends before offset {asked['offset']:,}" in await bench.text("read_file", **asked)


async def test_an_image_is_shown_and_other_bytes_are_not_text(
    bench: Bench, jp_root_dir: Path
) -> None:
    Image.new("RGB", (3000, 30), "red").save(jp_root_dir / "plot.png")
    (jp_root_dir / "data.bin").write_bytes(b"a\0b" * 1000)
    (jp_root_dir / "latin.txt").write_bytes(b"caf\xe9 " * 1000)
    (jp_root_dir / "fake.png").write_text("no image")
    session = await bench.open()
    shown = await bench.whole("read_file", session_id=session, path="plot.png")
    assert isinstance(shown.content[1], ImageContent)
    for path in ("data.bin", "latin.txt"):
        told = await bench.text("read_file", session_id=session, path=path)
        assert "it is no text: read it with code" in told
    told = await bench.text("read_file", session_id=session, path="fake.png")
    assert told.startswith("no image\n")
    (jp_root_dir / "plots.ipynb").write_text("{}")
    with pytest.raises(errors.InvalidRequest, match="read_notebook reads its cells"):
        await bench.call("read_file", session_id=session, path="plots.ipynb")
    with pytest.raises(errors.FileMissing):
        await bench.call("read_file", session_id=session, path="none.txt")


async def test_bytes_are_written_as_they_are(bench: Bench, jp_root_dir: Path) -> None:
    session = await bench.open()
    data = base64.b64encode(bytes(range(256))).decode()
    await bench.call("write_file", session_id=session, path="all.bin", base64=data)
    assert (jp_root_dir / "all.bin").read_bytes() == bytes(range(256))


async def test_many_files_are_listed_page_by_page(bench: Bench, jp_root_dir: Path) -> None:
    for i in range(600):
        (jp_root_dir / f"{i:03}{'n' * 200}").touch()
    session = await bench.open()
    paths: list[str] = []
    after: str | None = None
    while True:
        result = await bench.whole("read_file", session_id=session, after=after)
        assert size(result) < 300_000
        *lines, last = text_of(result).splitlines()
        paths += lines
        if (more := re.search(r"after='(.*)'", last)) is None:
            paths.append(last)
            break
        after = more[1]
    assert [path[:3] for path in paths] == [f"{i:03}" for i in range(600)]


async def test_each_tool_asks_for_the_files_scope(bench: Bench) -> None:
    session = await bench.open()
    bench.refused = {"files"}
    for tool, asked in (
        ("read_file", {}),
        ("read_file", {"path": "a"}),
        ("write_file", {"path": "a", "text": ""}),
    ):
        with pytest.raises(errors.Forbidden):
            await bench.call(tool, session_id=session, **asked)


# -- input -------------------------------------------------------------------------------------


async def test_what_code_asks_for_is_answered(bench: Bench) -> None:
    session = await bench.open(allow_stdin=True)
    source = "first = input('name? ')\nsecond = input('age? ')\nprint(first, second)"
    asks = await bench.run(session, source)
    assert asks["status"] == "awaiting_input"
    assert asks["input"]["prompt"] == "name? "
    assert "give_input(execution_id=" in asks["notes"][0]
    id = asks["execution_id"]
    asks = await bench.call("give_input", execution_id=id, value="Ada")
    assert asks["input"]["prompt"] == "age? "
    told = await bench.call("give_input", execution_id=id, value="36")
    assert (told["status"], told.get("input")) == ("ok", None)
    assert "Ada 36" in told["text"]
    with pytest.raises(errors.InputNotAsked):
        await bench.call("give_input", execution_id=id, value="x")


async def test_who_waits_hears_at_once_that_code_asks(bench: Bench) -> None:
    session = await bench.open(allow_stdin=True)
    asks = await bench.run(session, "import time; time.sleep(1); input('? ')", wait=60)
    assert asks["status"] == "awaiting_input"
    assert len(bench.client.told) <= 3  # who waited on would have heard more in the meantime
    ended = await bench.call("stop", execution_id=asks["execution_id"])
    assert ended["status"] == "interrupted"
