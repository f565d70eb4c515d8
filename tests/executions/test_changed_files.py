"""Which files of a folder were written while something ran."""

from __future__ import annotations

import os
from pathlib import Path

from jupyter_agent_exec.executions.changed_files import (
    MOST_ENTRIES,
    Seen,
    Span,
    changed_files,
    span,
)

from jupyter_agent_exec.kernels.folder import Folder
from jupyter_agent_exec.kernels.kernel import WorkingFolder
from jupyter_agent_exec.types import ExecutionId

SECOND = 1_000_000_000
START = 1_790_000_000 * SECOND + 123_456_789
FIRST, NEXT = ExecutionId("x_1"), ExecutionId("x_2")
NOWHERE = Path("/nowhere")


def put(path: Path, at: int, content: str = "123") -> Path:
    """Write a file at a time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    os.utime(path, ns=(at, at))
    return path


def ran(begin: float, end: float, id: ExecutionId = FIRST) -> Span:
    return Span(id, START + int(begin * SECOND), START + int(end * SECOND))


def paths(
    folder: Path, *spans: Span, seen: Seen | None = None, document: str | None = None
) -> dict[ExecutionId, list[str]]:
    where = WorkingFolder(Folder(folder, ()), document)
    found = changed_files(where, spans, {} if seen is None else seen, leave_out=NOWHERE)
    return {id: [file.path for file in told.files] for id, told in found.items()}


def test_files_are_told_whose_time_falls_into_the_execution(tmp_path: Path) -> None:
    put(tmp_path / "before.txt", START - SECOND)
    put(tmp_path / "b.txt", START + SECOND)
    put(tmp_path / "a.txt", START)
    put(tmp_path / "after.txt", START + 3 * SECOND)
    assert paths(tmp_path, ran(0, 2)) == {FIRST: ["a.txt", "b.txt"]}


def test_size_and_time_are_told(tmp_path: Path) -> None:
    put(tmp_path / "a.txt", START, "12345")
    found = changed_files(WorkingFolder(Folder(tmp_path, ())), [ran(0, 1)], {}, leave_out=NOWHERE)
    (file,) = found[FIRST].files
    assert (file.bytes, file.modified_at) == (5, "2026-09-21T14:13:20.123Z")


def test_each_file_is_told_of_the_execution_that_ran_then(tmp_path: Path) -> None:
    put(tmp_path / "first.txt", START + SECOND)
    put(tmp_path / "next.txt", START + 3 * SECOND)
    found = paths(tmp_path, ran(0, 2), ran(2.001, 4, NEXT))
    assert found == {FIRST: ["first.txt"], NEXT: ["next.txt"]}


def test_a_clock_that_ticks_slowly_is_allowed_for(tmp_path: Path) -> None:
    put(tmp_path / "tick.txt", START - 4_000_000)
    put(tmp_path / "coarse.txt", START // SECOND * SECOND - SECOND)
    put(tmp_path / "old.txt", START - 30_000_000)
    assert paths(tmp_path, ran(0, 2)) == {FIRST: ["coarse.txt", "tick.txt"]}


def test_what_was_told_is_told_again_only_if_it_changed(tmp_path: Path) -> None:
    seen: Seen = {}
    put(tmp_path / "a.txt", START)
    put(tmp_path / "b.txt", START)
    assert paths(tmp_path, ran(0, 1), seen=seen) == {FIRST: ["a.txt", "b.txt"]}
    put(tmp_path / "b.txt", START, "other")
    assert paths(tmp_path, ran(0.001, 1, NEXT), seen=seen) == {NEXT: ["b.txt"]}
    assert paths(tmp_path, ran(0.001, 1, NEXT), seen=seen) == {}


def test_hidden_files_links_and_what_tools_keep_are_left_out(tmp_path: Path) -> None:
    kept = put(tmp_path / "work" / "data" / "a.csv", START)
    for path in (".hidden", ".git/x", ".ipynb_checkpoints/n.ipynb", "__pycache__/m.pyc"):
        put(tmp_path / "work" / path, START)
    put(tmp_path / "work" / "node_modules" / "x.js", START)
    put(tmp_path / "work" / "n.ipynb", START)
    put(tmp_path / "work" / "data" / "n.ipynb", START)
    put(tmp_path / "elsewhere" / "b.csv", START)
    (tmp_path / "work" / "link.csv").symlink_to(kept)
    os.utime(tmp_path / "work" / "link.csv", ns=(START, START), follow_symlinks=False)
    (tmp_path / "work" / "folder").symlink_to(tmp_path / "elsewhere")
    os.mkfifo(tmp_path / "work" / "pipe")
    found = paths(tmp_path / "work", ran(-1, 1), document="n.ipynb")
    assert found == {FIRST: ["data/a.csv", "data/n.ipynb"]}


def test_the_history_is_not_what_was_written(tmp_path: Path) -> None:
    put(tmp_path / "history" / "sessions" / "j.jsonl", START)
    where = WorkingFolder(Folder(tmp_path, ()))
    assert changed_files(where, [ran(0, 1)], {}, leave_out=tmp_path / "history") == {}


def test_a_link_in_place_of_a_folder_leads_nowhere(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    for name in ("secret", "at/secret"):
        put(outside / name, START)
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "link").symlink_to(outside)
    assert paths(outside, ran(0, 1)) == {FIRST: ["at/secret", "secret"]}
    for parts in (("link",), ("link", "at")):
        where = WorkingFolder(Folder(tmp_path / "root", parts))
        assert changed_files(where, [ran(0, 1)], {}, leave_out=NOWHERE) == {}


def test_a_deep_folder_is_looked_into_so_far(tmp_path: Path) -> None:
    put(tmp_path / "1/2/3/4/in.txt", START)
    put(tmp_path / "1/2/3/4/5/out.txt", START)
    assert paths(tmp_path, ran(0, 1)) == {FIRST: ["1/2/3/4/in.txt"]}


def test_many_files_are_counted(tmp_path: Path) -> None:
    for number in range(103):
        put(tmp_path / f"{number:03}.txt", START)
    found = changed_files(WorkingFolder(Folder(tmp_path, ())), [ran(0, 1)], {}, leave_out=NOWHERE)[
        FIRST
    ]
    assert [found.files[0].path, found.files[-1].path] == ["000.txt", "099.txt"]
    assert (len(found.files), found.more) == (100, 3)


def test_a_huge_folder_is_looked_at_so_far(tmp_path: Path) -> None:
    for number in range(MOST_ENTRIES + 5):
        put(tmp_path / f"{number}.txt", START)
    told = changed_files(WorkingFolder(Folder(tmp_path, ())), [ran(0, 1)], {}, leave_out=NOWHERE)[
        FIRST
    ]
    assert len(told.files) + told.more == MOST_ENTRIES


def test_names_that_are_no_text_and_folders_that_are_gone_are_no_error(tmp_path: Path) -> None:
    with open(os.fsencode(tmp_path) + b"/\xff.txt", "w"):
        os.utime(os.fsencode(tmp_path) + b"/\xff.txt", ns=(START, START))
    assert paths(tmp_path, ran(0, 1)) == {FIRST: ["\ufffd.txt"]}
    assert paths(tmp_path / "gone", ran(0, 1)) == {}


def test_times_of_the_record_are_read_with_what_they_leave_off() -> None:
    told = span(FIRST, "2026-09-21T14:13:20.123Z", "2026-09-21T14:13:20.123Z")
    assert told.begin <= START <= told.end
