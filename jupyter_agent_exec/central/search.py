"""Search the executions of all servers that have arrived at a far side."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .archive import Archive, ArchivedJournal

_PAYLOADS = ("source", "values", "outputs", "text")


@dataclass(kw_only=True, slots=True)
class Hit:
    """An execution that was found."""

    server: str
    session_id: str
    execution_id: str
    agent: str
    username: str
    status: str
    """Its final status, or `unfinished`."""
    accepted_at: str
    match: str
    """The first line of its source, or of what was found; empty if only facts have arrived."""


def search_archive(archive: Archive, words: str) -> list[Hit]:
    """Return the executions whose facts, sources or outputs contain `words`; the newest first."""
    hits = [
        hit
        for name in archive.names()
        if not name.startswith("ledger-")
        for hit in _hits(archive.journal(name), words.casefold())
    ]
    return sorted(hits, key=lambda hit: hit.accepted_at, reverse=True)


def _hits(arrived: ArchivedJournal, words: str) -> Iterator[Hit]:
    opened: dict[str, Any] = {}
    executions: dict[str, list[dict[str, Any]]] = {}
    for line in arrived.lines:
        entry = json.loads(line.canonical)
        if entry.get("type") == "opened":
            opened = entry
        if isinstance(entry.get("execution_id"), str):
            executions.setdefault(entry["execution_id"], []).append(entry)
    about = json.dumps([arrived.server, opened], ensure_ascii=False)
    for execution_id, entries in executions.items():
        texts = [
            arrived.payloads[entry[field]].decode("utf-8", "replace")
            for entry in entries
            for field in _PAYLOADS
            if entry.get(field) in arrived.payloads
        ]
        facts = json.dumps(entries, ensure_ascii=False)
        found = next((text for text in texts if words in text.casefold()), None)
        if found is None and words not in f"{about}{facts}".casefold():
            continue
        ended = next((entry for entry in entries if entry.get("type") == "finished"), {})
        shown = found or (texts[0] if texts else "")
        yield Hit(
            server=arrived.server,
            session_id=arrived.name,
            execution_id=execution_id,
            agent=str((opened.get("agent") or {}).get("name", "")),
            username=str(opened.get("username", "")),
            status=str(ended.get("status", "unfinished")),
            accepted_at=str(entries[0].get("at", "")),
            match=next(
                (each for each in shown.splitlines() if words in each.casefold()),
                shown.partition("\n")[0],
            ),
        )
