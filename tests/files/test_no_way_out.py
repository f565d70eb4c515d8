"""What an agent may try, over HTTP, to get out of its session's folder."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.files.files_asking import Files

FilesOf = Callable[..., Awaitable[Files]]

INSIDE = "what-is-inside"
MALFORMED = [
    "../secret", "..%2fsecret", "..%2Fsecret", "%2e%2e/secret", "%2e%2e%2fsecret", "..%5csecret",
    "..\\secret", "%252e%252e%252fsecret", "%252e%252e/secret", "..%252fsecret",
     "sub/../../secret", "sub/..%2f..%2fsecret", "./../secret", ".", "..",
    "/etc/passwd", "%2fetc%2fpasswd", "//etc/passwd", "sub//a.txt", "sub/", "sub/.", "sub%2fa.txt",
    "%ef%bc%8e%ef%bc%8e/secret", "..%ef%bc%8fsecret", "a.txt%00", "a.txt%00.png", "a.txt.",
    "a.txt%20",
    "a.txt%0d%0aSet-Cookie:x", "sub/%e2%80%8b..", "C:%5cWindows",  "a%e2%80%a8b",
    "x" * 300, "/".join(["x"] * 100), "%2e%2e;/secret%2f", "sub\\a.txt",
]  # fmt: skip

NO_TEXT = ["..%c0%afsecret", "%c0%ae%c0%ae/secret", "%ff%fe"]

HIDDEN = [
    ".hidden", ".git/config", "sub/.hidden", "%2ehidden", "%252ehidden", "%e2%80%8b.hidden",
    "%ef%bc%8ehidden", "record/ledger.jsonl", "record", "record/new", "link", "linked/secret",
    "linked/new", "sub/link.txt", "loop/a", "pipe", "pipe/a",
]  # fmt: skip


@pytest.fixture
def history_dir(jp_root_dir: Path) -> Path:
    """The history, where no operator should put it."""
    return jp_root_dir / "record"


@pytest.fixture
def folder(jp_root_dir: Path, tmp_path: Path) -> Path:
    (tmp_path / "secret").write_text("secret")
    (jp_root_dir / "sub").mkdir()
    (jp_root_dir / ".git").mkdir()
    for path in ("a.txt", ".hidden", ".git/config", "sub/a.txt", "sub/.hidden"):
        (jp_root_dir / path).write_text(INSIDE)
    (jp_root_dir / "link").symlink_to(tmp_path / "secret")
    (jp_root_dir / "sub" / "link.txt").symlink_to("../a.txt")
    (jp_root_dir / "linked").symlink_to(tmp_path)
    (jp_root_dir / "loop").symlink_to("loop")
    os.mkfifo(jp_root_dir / "pipe")
    return jp_root_dir


def contents(*folders: Path) -> dict[str, Any]:
    """Return all that is below folders, but for what the server itself writes."""
    return {
        str(path): path.read_bytes() if path.is_file() else None
        for folder in folders
        for path in folder.rglob("*")
        if "record" not in path.parts and not path.is_fifo()
    }


async def test_there_is_no_way_out_of_the_folder(
    files_of: FilesOf, folder: Path, tmp_path: Path
) -> None:
    files = await files_of()
    for name in ("ledger.jsonl", "new"):
        (folder / "record" / name).unlink(missing_ok=True)
    (folder / "record" / "ledger.jsonl").write_text("record")
    before = contents(folder, tmp_path / "secret")
    wrong: list[str] = []
    for raw in NO_TEXT:
        for method in ("GET", "HEAD", "PUT", "DELETE"):
            assert (await files.ask(method, raw)).status == 400
    for raw in [*MALFORMED, *HIDDEN]:
        asked = (
            ("GET", None, (404,)),
            ("HEAD", None, (404,)),
            ("PUT", b"written", (400,) if raw in MALFORMED else (403,)),
            ("DELETE", None, (400,) if raw in MALFORMED else (403, 404)),
        )
        for method, body, statuses in asked:
            for headers in ({}, {"If_Match": "*"}) if method in ("PUT", "DELETE") else ({},):
                answered = await files.ask(method, raw, body, **headers)
                if answered.status not in statuses or INSIDE.encode() in answered.body:
                    wrong.append(f"{method} {raw}: {answered.status} {answered.body[:200]!r}")
    assert not wrong, "\n".join(wrong)
    assert contents(folder, tmp_path / "secret") == before
    assert (tmp_path / "secret").read_text() == "secret"
    assert (folder / "record" / "ledger.jsonl").read_text() == "record"
    assert await files.paths(recursive=True) == ["a.txt", "sub", "sub/a.txt"]


async def test_an_encoded_name_is_the_name(files_of: FilesOf, folder: Path) -> None:
    files = await files_of()
    assert (await files.ask("GET", "%61%2etxt")).body == INSIDE.encode()
    assert (await files.ask("PUT", "b%20c%2B.txt", b"x")).status == 201
    assert (folder / "b c+.txt").read_text() == "x"


async def test_the_history_is_nobodys_folder(files_of: FilesOf, folder: Path) -> None:
    (folder / "record" / "work").mkdir(parents=True, exist_ok=True)
    files = await files_of(target={"kind": "scratch", "cwd": "record/work"})
    assert (await files.list()).status == 404
    assert (await files.put("a.txt", b"x")).status == 403
    assert os.listdir(folder / "record" / "work") == []
