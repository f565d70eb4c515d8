"""Uploads as they come: too much, broken off, refused while the client still sends."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.asking import Agent, Send
from tests.files.files_asking import Files, Wire

FilesOf = Callable[..., Awaitable[Files]]
LIMIT = 3_000_000


@pytest.fixture
def agent_exec_config() -> dict[str, Any]:
    return {"max_file_bytes": LIMIT}


async def until_empty(folder: Path) -> None:
    """Wait until nothing is in a folder, hidden or not."""
    while os.listdir(folder):
        await asyncio.sleep(0.01)


def at(files: Files, path: str) -> str:
    return f"sessions/{files.session['id']}/files/{path}"


async def test_chunks_become_a_file(files_of: FilesOf, wire: Wire, jp_root_dir: Path) -> None:
    files = await files_of()
    await wire.begin("PUT", at(files, "a.bin"), Transfer_Encoding="chunked")
    for n in range(5):
        await wire.send_chunk(bytes([n]) * 400_000)
    assert not (jp_root_dir / "a.bin").exists()
    await wire.send_chunk(b"")
    status, body = await wire.answer()
    assert (status, json.loads(body)["bytes"]) == (201, 2_000_000)
    expected = b"".join(bytes([n]) * 400_000 for n in range(5))
    assert (jp_root_dir / "a.bin").read_bytes() == expected


async def test_just_as_much_as_is_allowed_is_taken(files_of: FilesOf) -> None:
    files = await files_of()
    assert (await files.put("a.bin", bytes(LIMIT))).status == 201
    over = await files.put("b.bin", bytes(LIMIT + 1))
    assert (over.status, over.json["code"]) == (413, "payload_too_large")
    assert over.json["detail"] == {"limit_bytes": LIMIT}
    assert await files.paths() == ["a.bin"]


async def test_too_many_chunks_are_refused_and_leave_nothing(
    files_of: FilesOf, wire: Wire, jp_root_dir: Path
) -> None:
    files = await files_of()
    await wire.begin("PUT", at(files, "new/a.bin"), Transfer_Encoding="chunked")
    for _ in range(10):
        await wire.send_chunk(bytes(500_000))
    await until_empty(jp_root_dir)  # while the client still sends
    await wire.send_chunk(b"")
    status, body = await wire.answer()
    assert (status, json.loads(body)["code"]) == (413, "payload_too_large")
    assert os.listdir(jp_root_dir) == []


async def test_a_size_that_is_too_large_is_refused_before_anything_comes(
    files_of: FilesOf, wire: Wire, jp_root_dir: Path
) -> None:
    files = await files_of()
    await wire.begin("PUT", at(files, "a.bin"), Content_Length="900000000000")
    status, body = await wire.answer()
    assert (status, json.loads(body)["code"]) == (413, "payload_too_large")
    assert await wire.at_end()
    await wire.begin(
        "PUT", at(files, "a.bin"), Content_Length=str(LIMIT + 1), Expect="100-continue"
    )
    status, _ = await wire.answer()
    assert status == 413
    assert os.listdir(jp_root_dir) == []


async def test_who_waits_to_be_asked_for_the_body_is_asked(
    files_of: FilesOf, wire: Wire, jp_root_dir: Path
) -> None:
    files = await files_of()
    await wire.begin("PUT", at(files, "a.bin"), Content_Length="3", Expect="100-continue")
    assert await wire.interim() == 100
    await wire.send(b"abc")
    assert (await wire.answer())[0] == 201
    assert (jp_root_dir / "a.bin").read_bytes() == b"abc"


@pytest.mark.parametrize(
    "length", [{"Content_Length": "2500000"}, {"Transfer_Encoding": "chunked"}]
)
async def test_an_upload_that_breaks_leaves_nothing(
    files_of: FilesOf, wire: Wire, jp_root_dir: Path, length: dict[str, str]
) -> None:
    files = await files_of()
    await wire.begin("PUT", at(files, "new/a.bin"), **length)
    await wire.send(b"1e8480\r\n" + bytes(2_000_000))
    while not os.listdir(jp_root_dir):
        await asyncio.sleep(0.01)
    assert await files.paths(recursive=True) == []
    wire.close()
    await until_empty(jp_root_dir)
    assert (await files.put("new/a.bin", b"x")).status == 201


@pytest.mark.parametrize(
    ("path", "headers", "expected"),
    [
        ("a.bin", {"Authorization": "token wrong"}, (401, "unauthenticated")),
        ("a.bin", {"Host": "elsewhere.example"}, (403, "forbidden")),
        ("a.ipynb", {}, (403, "forbidden")),
        ("../a.bin", {}, (400, "invalid_request")),
        ("there.bin", {}, (409, "file_not_owned")),
        ("a.bin", {"If-Match": '"x"'}, (412, "precondition_failed")),
    ],
    ids=["nobody", "host", "notebook", "path", "owner", "version"],
)
async def test_a_refusal_reaches_who_sends_all_before_listening(
    files_of: FilesOf,
    wire: Wire,
    jp_root_dir: Path,
    path: str,
    headers: dict[str, str],
    expected: tuple[int, str],
) -> None:
    files = await files_of()
    (jp_root_dir / "there.bin").write_text("theirs")
    for _ in range(2):  # the connection is good for another
        await wire.begin("PUT", at(files, path), Content_Length="2500000", **headers)
        await wire.send(bytes(2_500_000))
        status, body = await wire.answer()
        assert (status, json.loads(body)["code"]) == expected
    assert os.listdir(jp_root_dir) == ["there.bin"]


async def test_nobody_writes_before_it_is_known_who_asks(
    files_of: FilesOf, wire: Wire, jp_root_dir: Path
) -> None:
    files = await files_of()
    await wire.begin("PUT", at(files, "a.bin"), Content_Length="4000000", Authorization="token no")
    await wire.send(bytes(3_999_999))
    assert os.listdir(jp_root_dir) == []
    await wire.send(b"0")
    status, body = await wire.answer()
    assert (status, json.loads(body)["code"]) == (401, "unauthenticated")


async def test_who_sends_without_end_after_a_refusal_is_left(
    files_of: FilesOf, wire: Wire, jp_root_dir: Path
) -> None:
    files = await files_of()
    await wire.begin("PUT", at(files, ".a"), Transfer_Encoding="chunked")
    with pytest.raises(ConnectionError):
        await wire.send_without_end()
    assert os.listdir(jp_root_dir) == []


async def test_a_session_that_closes_meanwhile_takes_no_file(
    agent: Agent, files_of: FilesOf, wire: Wire, jp_root_dir: Path
) -> None:
    files = await files_of()
    await wire.begin("PUT", at(files, "a.bin"), Content_Length="4")
    await wire.send(b"ab")
    await agent.ask("POST", f"sessions/{files.session['id']}/close")
    await wire.send(b"cd")
    status, body = await wire.answer()
    assert (status, json.loads(body)["code"]) == (409, "session_closed")
    await until_empty(jp_root_dir)


async def test_a_file_that_somebody_puts_there_while_it_is_uploaded_stays(
    files_of: FilesOf, wire: Wire, jp_root_dir: Path
) -> None:
    files = await files_of()
    await wire.begin("PUT", at(files, "a.bin"), Content_Length="4")
    await wire.send(b"ab")
    (jp_root_dir / "a.bin").write_text("theirs")
    await wire.send(b"cd")
    status, body = await wire.answer()
    assert (status, json.loads(body)["code"]) == (409, "file_not_owned")
    assert (jp_root_dir / "a.bin").read_text() == "theirs"
    while os.listdir(jp_root_dir) != ["a.bin"]:
        await asyncio.sleep(0.01)


async def test_what_cannot_be_recorded_is_not_there(
    files_of: FilesOf, history_dir: Path, jp_root_dir: Path
) -> None:
    files = await files_of()
    await files.put("old.txt", b"x")
    journal = history_dir / "sessions" / files.session["id"] / "journal.jsonl"
    journal.unlink()
    for answered in (
        await files.put("a.txt", b"x"),
        await files.put("old.txt", b"y"),
        await files.delete("old.txt"),
    ):
        assert (answered.status, answered.json["code"]) == (503, "history_unavailable")
    assert os.listdir(jp_root_dir) == ["old.txt"]
    assert (jp_root_dir / "old.txt").read_text() == "x"


async def test_who_leaves_in_the_middle_of_a_download_holds_nothing(
    files_of: FilesOf, wire: Wire, jp_root_dir: Path
) -> None:
    files = await files_of()
    (jp_root_dir / "large.bin").write_bytes(bytes(30_000_000))
    target = str(jp_root_dir / "large.bin")

    def is_open() -> bool:
        links = (f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd"))
        return any(os.path.lexists(link) and os.readlink(link) == target for link in links)

    await wire.begin("GET", at(files, "large.bin"))
    assert await wire.some() != b""
    assert is_open()
    wire.close()
    while is_open():
        await asyncio.sleep(0.01)


async def test_a_body_where_none_belongs_is_thrown_away(ask: Send, files_of: FilesOf) -> None:
    files = await files_of()
    await files.put("a.txt", b"x")
    deleted = await files.ask("DELETE", "a.txt", b"body")
    assert deleted.status == 204
    assert (await files.ask("DELETE", "a.txt", b"body")).status == 404


async def test_a_connection_that_is_closed_with_a_refusal_says_so(
    ask: Send, jp_auth_header: dict[str, str]
) -> None:
    refused = await ask("PUT", "sessions/s_none/files/x", headers=jp_auth_header, body="")
    assert (refused.status, refused.headers.get("Connection")) == (404, "close")
