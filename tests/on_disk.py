"""What a history's record says, read from its files."""

from __future__ import annotations

from pathlib import Path


def record_bytes(history_dir: Path) -> dict[str, bytes]:
    """Return all that is recorded, by file; the index is no record."""
    paths = [*history_dir.glob("ledger-*.jsonl"), *history_dir.glob("sessions/**/*")]
    return {str(path): path.read_bytes() for path in paths if path.is_file()}


def recorded_sessions(history_dir: Path) -> list[str]:
    """Return the ids of the sessions that have a folder."""
    return sorted(path.name for path in history_dir.glob("sessions/*"))
