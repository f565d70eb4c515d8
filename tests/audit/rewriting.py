"""What somebody with all rights to a history's folder can do to it."""

from __future__ import annotations

import shutil
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


def forge(path: Path, entry: dict[str, Any]) -> dict[str, Any]:
    """Add an entry to a chain, with all that a server writes; return the new end of the chain."""
    last = chain.parse_line(path.read_bytes().splitlines()[-1])
    n = last.entry["n"] + 1
    whole = {"at": last.entry["at"], "by": {"kind": "server"}, **entry}
    head, line = chain.next_line(
        last.hash, chain.canonical({**whole, "n": n, "format": chain.FORMAT}), {}, {}
    )
    with path.open("ab") as file:
        file.write(line)
    if path.with_suffix(".head").exists():
        path.with_suffix(".head").write_text(f"{head}\n")
    return {"head": head, "length": n + 1}


def end(path: Path) -> dict[str, Any]:
    last = chain.parse_line(path.read_bytes().splitlines()[-1])
    return {"head": last.hash, "length": last.entry["n"] + 1}


def without_payloads(path: Path) -> None:
    """Take all payloads out of a journal."""
    lines = map(chain.parse_line, path.read_bytes().splitlines())
    path.write_bytes(b"".join(chain.format_line(each.hash, each.canonical, {}) for each in lines))
    shutil.rmtree(path.with_name("blobs"), ignore_errors=True)


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
            previous, text = chain.next_line(
                previous, chain.canonical(entry), line.payloads, line.salts
            )
            anew[line.hash] = previous
            lines.append(text)
        path.write_bytes(b"".join(lines))

    ledger = ledger_of(folder)
    rewrite(ledger)
    last = chain.parse_line(ledger.read_bytes().splitlines()[-1])
    ledger.with_suffix(".head").write_text(f"{last.hash}\n")
