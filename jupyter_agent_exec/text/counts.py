"""Counts and sizes, as text for people and models."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """Return a count with its noun, in the plural unless there is one."""
    if count == 1:
        return f"{count:,} {noun}"
    return f"{count:,} {noun[:-1]}ies" if noun.endswith("ry") else f"{count:,} {noun}s"


def size_in_words(size: int) -> str:
    """Return a number of bytes for a sentence, such as ``12 kB``."""
    if size < 1000:
        return counted(size, "byte")
    return f"{size / 1000:.0f} kB" if size < 1_000_000 else f"{size / 1_000_000:.1f} MB"
