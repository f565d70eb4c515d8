"""Search the executions of all servers that have arrived at a far side."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .archive import Archive, ArchivedJournal, Span, parsed

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


def search_archive(archive: Archive, words: str, span: Span | None = None) -> list[Hit]:
    """Return the executions whose facts, sources or outputs contain `words`; the newest first.

    Parameters
    ----------
    archive
        What has arrived.
    words
        To search for; upper and lower case are the same.
    span
        Only executions of which something was recorded in this time, and what was; None: all.
    """
    words = words.casefold()
    hits = [
        hit
        for arrived in archive.journals(span)
        if not arrived.name.startswith("ledger-")
        for hit in _hits(arrived, words)
    ]
    return sorted(hits, key=lambda hit: hit.accepted_at, reverse=True)


def _hits(arrived: ArchivedJournal, words: str) -> Iterator[Hit]:
    opening = arrived.opening or next(iter(arrived.lines), None)
    opened = {} if opening is None else parsed(opening)
    if opened.get("type") != "opened":
        opened = {}
    about = json.dumps([arrived.server, opened], ensure_ascii=False)
    if not _may_have(arrived, about, words):
        return
    executions: dict[str, list[dict[str, Any]]] = {}
    for line in arrived.lines:
        entry = parsed(line)
        if line.n >= (arrived.first or 0) and isinstance(entry.get("execution_id"), str):
            executions.setdefault(entry["execution_id"], []).append(entry)
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


def _may_have(arrived: ArchivedJournal, about: str, words: str) -> bool:
    """Return whether the words are anywhere: most journals need not be understood."""
    texts = (
        each.decode("utf-8", "replace")
        for each in (*(line.canonical for line in arrived.lines), *arrived.payloads.values())
    )
    return words in about.casefold() or any(words in text.casefold() for text in texts)
