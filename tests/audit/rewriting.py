"""What somebody with all rights to a history's folder can do to it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from jupyter_agent_exec.journal import chain


def journals(folder: Path) -> list[Path]:
    return sorted(folder.glob("sessions/*/journal.jsonl"))


def ledger_of(folder: Path) -> Path:
    (ledger,) = folder.glob("ledger-*.jsonl")
    return ledger


def cut(path: Path, lines: int) -> None:
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-lines]))


def by_somebody_else(entry: dict[str, Any]) -> None:
    entry["by"]["agent"] = "somebody else"


def write_anew(folder: Path, change: Callable[[dict[str, Any]], object] = by_somebody_else) -> None:
    """Change what all entries say, with new hashes everywhere, as if it had always been so."""
    anew = {chain.GENESIS: chain.GENESIS}

    def rewrite(path: Path) -> None:
        previous, lines = chain.GENESIS, []
        for data in path.read_bytes().splitlines():
            line = chain.parse_line(data)
            entry = line.entry
            change(entry)
            if entry["type"] == "session_closed":
                rewrite(folder / "sessions" / entry["session_id"] / "journal.jsonl")
            for name in {"chain", "ledger"} & entry.keys():
                entry[name]["head"] = anew[entry[name]["head"]]
            previous, text = chain.next_line(previous, entry, line.payloads, line.salts)
            anew[line.hash] = previous
            lines.append(text)
        path.write_bytes(b"".join(lines))

    ledger = ledger_of(folder)
    rewrite(ledger)
    last = chain.parse_line(ledger.read_bytes().splitlines()[-1])
    ledger.with_suffix(".head").write_text(f"{last.hash}\n")
