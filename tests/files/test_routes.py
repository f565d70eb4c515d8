"""A session's files over HTTP."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.asking import Agent, Answered
from tests.files.files_asking import Files
from tests.sessions.living_notebook import notebook_target

CHANGED = (412, "precondition_failed")

FilesOf = Callable[..., Awaitable[Files]]


def code(answered: Answered) -> tuple[int, str]:
    return answered.status, answered.json["code"]


async def entries(agent: Agent, files: Files) -> list[dict[str, Any]]:
    journal = await agent.get(f"sessions/{files.session['id']}/journal")
    told = [json.loads(line)["entry"] for line in journal.body.splitlines()]
    return [entry for entry in told if entry["type"].startswith("file_")]


async def test_a_file_is_uploaded_listed_read_replaced_and_deleted(
    agent: Agent, files_of: FilesOf, jp_root_dir: Path
) -> None:
    files = await files_of()
    put = await files.put("data/in.csv", b"a,b\n1,2\n")
    assert put.status == 201
    assert put.headers["Location"].endswith(f"/sessions/{files.session['id']}/files/data/in.csv")
    assert put.json == {
        "path": "data/in.csv", "is_folder": False, "bytes": 8, "mimetype": "text/csv",
        "modified_at": put.json["modified_at"],
    }  # fmt: skip
    assert (jp_root_dir / "data" / "in.csv").read_bytes() == b"a,b\n1,2\n"
    assert await files.paths() == ["data"]
    assert await files.paths(recursive=True) == ["data", "data/in.csv"]
    assert (await files.list(path="data")).json["files"] == [put.json]

    got = await files.get("data/in.csv")
    assert (got.status, got.body, got.headers["ETag"]) == (200, b"a,b\n1,2\n", put.headers["ETag"])
    again = await files.put("data/in.csv", b"new")
    assert (again.status, again.headers["ETag"] != put.headers["ETag"]) == (200, True)
    assert "Location" not in again.headers
    assert (await files.get("data/in.csv")).body == b"new"

    assert code(await files.delete("data")) == (409, "file_unwritable")
    assert (await files.delete("data/in.csv")).status == 204
    assert (await files.delete("data")).status == 204
    assert os.listdir(jp_root_dir) == []
    assert code(await files.get("data/in.csv")) == (404, "file_not_found")
    assert code(await files.delete("data/in.csv")) == (404, "file_not_found")
    one = {"type": "file_uploaded", "path": "data/in.csv"}
    first, second = (hashlib.sha256(body).hexdigest() for body in (b"a,b\n1,2\n", b"new"))
    assert [
        {name: value for name, value in entry.items() if name not in ("n", "at", "by", "format")}
        for entry in await entries(agent, files)
    ] == [
        {**one, "bytes": 8, "sha256": first},
        {**one, "bytes": 3, "sha256": second, "replaced": True},
        {"type": "file_deleted", "path": "data/in.csv", "bytes": 3, "sha256": second},
        {"type": "file_deleted", "path": "data"},
    ]
    events = (await agent.get(f"sessions/{files.session['id']}/events")).json["events"]
    told = [(event["type"], event["text"]) for event in events if event["type"].startswith("file")]
    assert told[0] == ("file_uploaded", "data/in.csv")
    assert told[-1] == ("file_deleted", "data")


async def test_a_file_is_sent_so_that_no_browser_shows_it_as_a_page(files_of: FilesOf) -> None:
    files = await files_of()
    await files.put('ä "b".html', b"<script>alert(1)</script>")
    for answered in (await files.get('ä "b".html'), await files.head('ä "b".html')):
        assert answered.status == 200
        assert answered.headers["Content-Type"] == "text/html"
        assert answered.headers["Content-Length"] == "25"
        assert answered.headers["Content-Disposition"] == (
            "attachment; filename=\"___b_.html\"; filename*=UTF-8''%C3%A4%20%22b%22.html"
        )
        assert answered.headers["Content-Security-Policy"] == "sandbox; default-src 'none'"
        assert answered.headers["X-Content-Type-Options"] == "nosniff"
        assert answered.headers["Cache-Control"] == "private, no-cache"
        assert answered.headers["Accept-Ranges"] == "bytes"
    assert (await files.head('ä "b".html')).body == b""
    await files.put("page.html.gz", b"x")
    assert (await files.head("page.html.gz")).headers["Content-Type"] == "application/octet-stream"


async def test_ranges_of_a_file_are_read_as_long_as_it_is_the_same(files_of: FilesOf) -> None:
    files = await files_of()
    etag = (await files.put("a.bin", bytes(range(100)))).headers["ETag"]
    part = await files.get("a.bin", Range="bytes=90-")
    assert (part.status, part.body) == (206, bytes(range(90, 100)))
    assert part.headers["Content-Range"] == "bytes 90-99/100"
    assert part.headers["Content-Length"] == "10"
    assert (await files.get("a.bin", Range="bytes=-5")).body == bytes(range(95, 100))
    both = await files.get("a.bin", Range="bytes=0-1,5-6")
    assert (both.status, len(both.body)) == (200, 100)
    same = await files.get("a.bin", Range="bytes=50-59", If_Range=etag)
    assert (same.status, same.body) == (206, bytes(range(50, 60)))
    behind = await files.get("a.bin", Range="bytes=100-")
    assert code(behind) == (416, "range_not_satisfiable")
    assert behind.headers["Content-Range"] == "bytes */100"
    assert "ETag" not in behind.headers
    known = await files.get("a.bin", If_None_Match=etag)
    assert (known.status, known.body) == (304, b"")
    await files.put("a.bin", bytes(100))
    other = await files.get("a.bin", Range="bytes=50-59", If_Range=etag)
    assert (other.status, other.body) == (200, bytes(100))
    assert (await files.get("a.bin", If_None_Match=etag)).status == 200
    empty = await files.put("empty", b"")
    assert (empty.status, empty.json["bytes"]) == (201, 0)
    read = await files.get("empty")
    assert (read.status, read.body, read.headers["ETag"]) == (200, b"", empty.headers["ETag"])


async def test_a_persons_file_is_replaced_or_deleted_only_as_it_was_read(
    files_of: FilesOf, jp_root_dir: Path
) -> None:
    files = await files_of()
    mine = jp_root_dir / "mine.csv"
    mine.write_text("1")
    assert code(await files.put("mine.csv", b"2")) == (409, "file_not_owned")
    assert code(await files.put("mine.csv", b"2", If_Match="*")) == (409, "file_not_owned")
    assert code(await files.delete("mine.csv")) == (409, "file_not_owned")
    assert code(await files.put("mine.csv", b"2", If_Match='"x"')) == CHANGED
    assert code(await files.put("mine.csv", b"2", If_None_Match="*")) == CHANGED
    assert code(await files.put("new.csv", b"2", If_Match="*")) == CHANGED
    assert mine.read_text() == "1"
    etag = (await files.get("mine.csv")).headers["ETag"]
    mine.write_text("3!")
    assert code(await files.put("mine.csv", b"2", If_Match=etag)) == CHANGED
    etag = (await files.head("mine.csv")).headers["ETag"]
    assert (await files.put("mine.csv", b"2", If_Match=etag)).status == 200
    assert (await files.put("mine.csv", b"4")).status == 200
    mine.write_text("5!")
    assert code(await files.delete("mine.csv")) == (409, "file_not_owned")
    etag = (await files.head("mine.csv")).headers["ETag"]
    assert code(await files.delete("mine.csv", If_Match='"x"')) == CHANGED
    assert (await files.delete("mine.csv", If_Match=etag)).status == 204
    assert (await files.put("new.csv", b"2", If_None_Match="*")).status == 201
    assert os.listdir(jp_root_dir) == ["new.csv"]


async def test_another_sessions_file_is_not_ones_own(files_of: FilesOf) -> None:
    one, other = await files_of(), await files_of()
    assert (await one.put("a.txt", b"1")).status == 201
    assert code(await other.put("a.txt", b"2")) == (409, "file_not_owned")
    assert (await other.get("a.txt")).body == b"1"


async def test_a_read_only_file_stays(files_of: FilesOf, jp_root_dir: Path) -> None:
    files = await files_of()
    await files.put("a.txt", b"1")
    (jp_root_dir / "a.txt").chmod(0o444)
    etag = (await files.head("a.txt")).headers["ETag"]
    assert code(await files.put("a.txt", b"2", If_Match=etag)) == (409, "file_unwritable")
    assert code(await files.delete("a.txt", If_Match=etag)) == (409, "file_unwritable")
    assert (jp_root_dir / "a.txt").read_text() == "1"


async def test_a_file_that_changed_while_code_ran_is_nobodys(
    agent: Agent, files_of: FilesOf, jp_root_dir: Path
) -> None:
    files = await files_of()
    done = await agent.run(files.session, "open('plot 1.png', 'w').write('png')")
    listed = {file["path"]: file for file in (await files.list()).json["files"]}
    assert listed["plot 1.png"]["mimetype"] == "image/png"
    told = (await agent.get(f"executions/{done['id']}")).json
    assert "plot 1.png" not in told["text"]
    assert code(await files.put("plot 1.png", b"y")) == (409, "file_not_owned")
    etag = (await files.head("plot 1.png")).headers["ETag"]
    assert (await files.put("plot 1.png", b"y", If_Match=etag)).status == 200


async def test_what_is_recorded_of_a_file_does_not_say_where_it_is_read(
    agent: Agent, files_of: FilesOf
) -> None:
    files = await files_of()
    await agent.run(files.session, "open('a.txt', 'w').close()")
    await files.list()
    path = f"sessions/{files.session['id']}"
    answers = [await agent.get(f"{path}/{what}") for what in ("journal", "notebook")]
    recorded = b"".join(answered.body for answered in answers)
    assert b"a.txt" in recorded
    assert b'"url"' not in recorded
    assert b"/files/" not in recorded


@pytest.mark.parametrize("name", ["a.ipynb", "A.IPYNB", "sub/a.ipynb"])
async def test_a_notebook_is_read_but_neither_written_nor_deleted(
    files_of: FilesOf, jp_root_dir: Path, name: str
) -> None:
    files = await files_of()
    path = jp_root_dir / name
    assert code(await files.put(name, b"{}")) == (403, "forbidden")
    path.parent.mkdir(exist_ok=True)
    path.write_text("{}")
    got = await files.get(name)
    assert (got.status, got.body) == (200, b"{}")
    etag = got.headers["ETag"]
    put, deleted = (
        await files.put(name, b"[]", If_Match=etag),
        await files.delete(name, If_Match=etag),
    )
    for answered in (put, deleted):
        assert code(answered) == (403, "forbidden")
        assert "cells" in answered.json["message"]
    assert path.read_text() == "{}"


async def test_a_sessions_folder_is_where_its_kernel_works(
    agent: Agent, files_of: FilesOf, jp_root_dir: Path
) -> None:
    (jp_root_dir / "work").mkdir()
    files = await files_of(target={"kind": "scratch", "cwd": "work"})
    await files.put("a.txt", b"a")
    done = await agent.run(files.session, "print(open('a.txt').read())")
    assert done["text"] == "a\n"
    assert await files.paths() == ["a.txt"]
    (jp_root_dir / "work" / "a.txt").unlink()
    (jp_root_dir / "work").rmdir()
    assert code(await files.list()) == (409, "folder_unknown")
    assert code(await files.put("a.txt", b"a")) == (409, "folder_unknown")
    assert os.listdir(jp_root_dir) == []


async def test_a_session_with_a_notebook_has_the_notebooks_folder(
    files_of: FilesOf, jp_root_dir: Path
) -> None:
    (jp_root_dir / "work").mkdir()
    (jp_root_dir / "above.txt").write_text("x")
    files = await files_of(target=notebook_target("work/a.ipynb", create=True))
    assert (await files.put("a.txt", b"a")).status == 201
    assert await files.paths() == ["a.ipynb", "a.txt"]


async def test_a_kernel_has_the_folder_of_its_document_or_none(
    agent: Agent, files_of: FilesOf, jp_root_dir: Path, jp_serverapp: Any
) -> None:
    (jp_root_dir / "work").mkdir()
    (jp_root_dir / "work" / "a.txt").write_text("a")
    sessions = jp_serverapp.session_manager
    console = await sessions.create_session(
        path="work/console-1", name="", type="console", kernel_name="python3"
    )
    files = await files_of(target={"kind": "kernel", "kernel_id": console["kernel"]["id"]})
    assert await files.paths() == ["a.txt"]
    alone = await jp_serverapp.kernel_manager.start_kernel(kernel_name="python3")
    files = await files_of(target={"kind": "kernel", "kernel_id": alone})
    for answered in (await files.list(), await files.get("a.txt"), await files.put("b.txt", b"b")):
        assert code(answered) == (409, "folder_unknown")


async def test_a_closed_session_has_no_files_any_more(
    agent: Agent, files_of: FilesOf, jp_root_dir: Path
) -> None:
    files = await files_of()
    await files.put("a.txt", b"a")
    await agent.ask("POST", f"sessions/{files.session['id']}/close")
    for answered in (
        await files.list(),
        await files.get("a.txt"),
        await files.put("b.txt", b"b"),
        await files.delete("a.txt"),
    ):
        assert code(answered) == (409, "session_closed")
    assert os.listdir(jp_root_dir) == ["a.txt"]


async def test_lists_go_on_where_they_ended(files_of: FilesOf) -> None:
    files = await files_of()
    names = ["a.txt", "b/c.txt", "b/d.txt", "e.txt"]
    for name in names:
        await files.put(name, b"x")
    told: list[str] = []
    after: dict[str, str] = {}
    while True:
        page = (await files.list(recursive=True, limit=2, **after)).json
        told += [file["path"] for file in page["files"]]
        if page["next_after"] is None:
            break
        after = {"after": page["next_after"]}
    assert told == ["a.txt", "b", "b/c.txt", "b/d.txt", "e.txt"]
    assert await files.paths(path="b", after="b/c.txt") == ["b/d.txt"]
    elsewhere = {"path": "b", "after": "e.txt"}
    for query in ({"limit": 0}, {"limit": 1001}, {"after": "../x"}, elsewhere):
        answered = await files.list(**query)
        assert code(answered) == (400, "invalid_request")
        assert answered.json["detail"]["field"] in query
    for path in ("a.txt", "nowhere", ".git", "..", "/etc"):
        assert code(await files.list(path=path)) == (404, "file_not_found")


async def test_a_folder_is_read_by_its_list_alone(files_of: FilesOf) -> None:
    files = await files_of()
    await files.put("b/c.txt", b"x")
    assert code(await files.get("b")) == (404, "file_not_found")
    assert code(await files.put("b", b"x")) == (403, "forbidden")
    assert code(await files.put("b/c.txt/d", b"x")) == (403, "forbidden")


async def test_other_verbs_are_refused(files_of: FilesOf) -> None:
    files = await files_of()
    answered = await files.ask("POST", "a.txt", b"x")
    assert code(answered) == (405, "method_not_allowed")
    assert answered.headers["Allow"] == "DELETE, GET, HEAD, OPTIONS, PUT"


async def test_uploads_of_one_file_at_once_are_one_after_the_other(
    agent: Agent, files_of: FilesOf, jp_root_dir: Path
) -> None:
    files = await files_of()
    bodies = [bytes([65 + n]) * 300_000 for n in range(6)]
    answers = await asyncio.gather(*(files.put("a.bin", body) for body in bodies))
    assert sorted(answered.status for answered in answers) == [200] * 5 + [201]
    assert (jp_root_dir / "a.bin").read_bytes() in bodies
    assert os.listdir(jp_root_dir) == ["a.bin"]
    assert len(await entries(agent, files)) == 6
