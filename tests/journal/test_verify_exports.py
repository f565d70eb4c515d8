"""Exports of a real session: each field that came from the record is held to it."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jupyter_agent_exec.journal.findings import Outcome, Report
from jupyter_agent_exec.journal.verify import verify_history
from jupyter_agent_exec.journal.verify_notebook import verify_notebook
from jupyter_agent_exec.records import digest_of
from tests.server_process import server_process

ERROR = "raise ValueError('no')"
SOURCES: list[tuple[str, dict[str, Any]]] = [
    ("import threading, IPython.display as d\na = 1", {}),
    ("print('é' * 20_000)", {"max_output_bytes": 1000}),
    ("open('made.txt', 'w').write('x')", {"values": {"double": "a * 2", "wrong": "b"}}),
    (ERROR, {"values": {"never": "a"}}),
    ("h = d.display(d.HTML('<b>1</b>'), display_id=True)", {}),
    ("h.update({'application/json': [1, None, {'deep': [{}]}]}, raw=True)", {}),
    ("threading.Timer(0, print, ['late']).start()", {}),
]  # fmt: skip


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A journal that a real server wrote, and the export that it gave."""
    folder = tmp_path_factory.mktemp("real")
    with server_process(folder, approval={"scratch": "none"}) as server:
        session = server.open(
            title="Sales 😀",
            agent={"name": "analyst", "version": "1", "model": "m"},
            target={"kind": "scratch", "cwd": "", "env": {}},
            init_source="started = True",
        )
        ids = [
            server.run(session, source, wait=30, **asked).json()["id"] for source, asked in SOURCES
        ]
        server.run(session, "1", wait=30, revises=ids[2], claim={"purpose": "Count “all”."})
        review = {"verdict": "flagged", "comment": "why?"}
        assert server.ask("PUT", f"executions/{ids[1]}/review", review).status_code == 200
        server.ask("PUT", "approvals/policy", {"scratch": "always"})
        asking = server.open(agent={"name": "analyst"})
        asks = server.run(asking, "asked = 1", wait=0).json()["id"]
        asks_too = server.run(asking, "asked = 2", wait=0).json()["id"]
        decided = server.ask(
            "POST",
            f"executions/{asks}/approve",
            {"source": "changed = 1", "source_sha256": digest_of(b"asked = 1")},
        )
        assert decided.status_code == 200, decided.text
        decided = server.ask("POST", f"executions/{asks_too}/reject", {"reason": "No."})
        assert decided.status_code == 200, decided.text
        server.get(f"executions/{asks}?wait=30")
        for id in (session, asking):
            assert server.ask("POST", f"sessions/{id}/close", {}).status_code == 200
            for name, query in (("plain", ""), ("clean", "?clean=true")):
                text = server.ask("GET", f"sessions/{id}/notebook{query}").text
                (folder / f"{name}-{id}.ipynb").write_text(text, "utf-8")
    assert verify_history(folder / "history").findings == []
    return folder, session


def exports(folder: Path, name: str) -> Iterator[tuple[Path, Path]]:
    for path in sorted(folder.glob(f"{name}-*.ipynb")):
        session = path.stem.partition("-")[2]
        yield path, folder / "history" / "sessions" / session / "journal.jsonl"


def check(folder: Path, path: Path, journal: Path, document: Any) -> Report:
    changed = folder / "changed.ipynb"
    changed.write_text(json.dumps(document), "utf-8")
    return verify_notebook(changed, journal)


def test_what_a_real_server_exports_agrees(exported: tuple[Path, str]) -> None:
    folder, _ = exported
    for name in ("plain", "clean"):
        told = [verify_notebook(*each).findings for each in exports(folder, name)]
        assert told == [[], []]


def test_it_has_what_there_can_be(exported: tuple[Path, str]) -> None:
    folder, _ = exported
    named = {
        name
        for path, _ in exports(folder, "plain")
        for cell in json.loads(path.read_text("utf-8"))["cells"]
        for name in cell["metadata"]["agent_exec"]
    }
    assert named == {
        "session_id", "execution_id", "seq", "agent", "username", "status", "accepted_at",
        "started_at", "finished_at", "kernel_id", "incarnation", "source_sha256", "entry_hash",
        "outputs_complete", "review", "omitted", "init", "reason", "revises", "approval",
        "values", "claim", "execution_count",
    }  # fmt: skip


FOREIGN = {"nbformat", "nbformat_minor"}
"""What the record does not tell."""


def edits(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any, str]]:
    """Yield each place in a document, another value for it (None to take it out), and the kind."""
    if isinstance(value, dict):
        for name, item in value.items():
            if place or name not in FOREIGN:
                yield from edits(item, (*place, name))
                if says_something(item):
                    yield (*place, name), None, "missing"
        if place and place not in ((), ("metadata",)) and place[-1] != "metadata":
            yield (*place, "forged"), "forged", "added"
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from edits(item, (*place, index))
        if value:
            yield place, value[:-1], "shorter"
        if place[-1] != "tags":  # which people may add
            yield place, [*value, copy.deepcopy(value[-1]) if value else "forged"], "longer"
    elif isinstance(value, bool):
        yield place, not value, "bool"
    elif isinstance(value, (int, float)):
        yield place, value + 1, "number"
    else:
        yield place, f"{value or ''}x", "text" if value else "empty"


def says_something(value: Any) -> bool:
    """Whether a value is more than the defaults, which another version may leave out."""
    if isinstance(value, dict):
        return any(map(says_something, value.values()))
    return value not in (None, [], False, 0)


def changed(document: Any, place: tuple[Any, ...], value: Any) -> Any:
    document = copy.deepcopy(document)
    *way, last = place
    inner = document
    for step in way:
        inner = inner[step]
    if value is None:
        del inner[last]
    else:
        inner[last] = value
    return document


@pytest.mark.parametrize("name", ["plain", "clean"])
def test_each_field_that_is_edited_added_or_missing_is_told(
    exported: tuple[Path, str], name: str
) -> None:
    folder, _ = exported
    count, untold = 0, []
    for path, journal in exports(folder, name):
        document = json.loads(path.read_text("utf-8"))
        tried = set()
        for place, value, kind in edits(document):
            field = tuple(step for step in place if isinstance(step, str))
            if (field, kind) in tried:  # in a cell, or an event, before
                continue
            tried.add((field, kind))
            count += 1
            report = check(folder, path, journal, changed(document, place, value))
            if report.outcome is Outcome.WHOLE:
                untold.append((place, value))
    assert untold == [], "\n".join(map(str, untold))
    assert count > 100


@pytest.mark.parametrize(
    ("place", "named"),
    [
        (("cells", 1, "metadata", "agent_exec", "agent", "name"), "agent"),
        (("cells", 1, "metadata", "agent_exec", "username"), "username"),
        (("cells", 1, "metadata", "agent_exec", "started_at"), "started_at"),
        (("cells", 1, "metadata", "agent_exec", "trusted_by"), "trusted_by (added)"),
        (("metadata", "agent_exec", "session", "agent"), "agent_exec.session.agent"),
        (("metadata", "agent_exec", "events", 0, "by"), "agent_exec.events[0].by"),
        (("metadata", "kernelspec"), "kernelspec"),
    ],
)
def test_what_was_forged_is_named(
    exported: tuple[Path, str], place: tuple[Any, ...], named: str
) -> None:
    folder, session = exported
    path = folder / f"plain-{session}.ipynb"
    journal = folder / "history" / "sessions" / session / "journal.jsonl"
    document = changed(json.loads(path.read_text("utf-8")), place, "forged")
    [finding] = check(folder, path, journal, document).findings
    assert finding.outcome is Outcome.ALTERED
    assert finding.message.endswith(f": {named}.")
