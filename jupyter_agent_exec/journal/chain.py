"""Defines a line of a journal, to the byte: canonical bytes, hashes, formatting and parsing.

This is the only definition that the writer and `verify` share. It uses only the standard library,
reads no files, and does not interpret entries.

A line is ``{"hash":"<64 hex>","entry":<canonical bytes>,"payloads":{"<digest>":"<text>"}}`` and a
line feed; `payloads` is left out when there are none. The hash is the SHA-256 of the previous
line's hash (its 64 ASCII characters) and the canonical bytes. Payloads are not hashed with the
line: the entry names them by the SHA-256 of their UTF-8 text, so one can be erased later and the
chain still verifies.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

GENESIS: Final = "0" * 64
"""The previous hash of a journal's first line."""

_encode = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
).encode
_decode_at = json.JSONDecoder().raw_decode
_PREFIX = re.compile(r'\{"hash":"([0-9a-f]{64})","entry":')
_PAYLOADS = ',"payloads":'


class ParsedLine(NamedTuple):
    """The parts of a line, unchecked against the lines before it."""

    hash: str
    canonical: bytes
    entry: dict[str, Any]
    payloads: dict[str, str]


def canonical(entry: Mapping[str, Any]) -> bytes:
    """Return an entry's bytes: UTF-8 JSON, keys sorted, no spaces, only needed escapes.

    A lone surrogate, which UTF-8 cannot hold, becomes a question mark.
    """
    return _encode(entry).encode("utf-8", "replace")


def link(previous: str, entry: bytes) -> str:
    """Return the hash of the line with these canonical bytes after the line hashed `previous`."""
    return hashlib.sha256(previous.encode("ascii") + entry).hexdigest()


def format_line(line_hash: str, entry: bytes, payloads: Mapping[Any, str]) -> bytes:
    """Return a whole line, line feed included."""
    start = b'{"hash":"%b","entry":%b' % (line_hash.encode("ascii"), entry)
    if not payloads:
        return start + b"}\n"
    return b"%b%b%b}\n" % (start, _PAYLOADS.encode("ascii"), _encode(payloads).encode("utf-8"))


def next_line(
    previous: str, entry: Mapping[str, Any], texts: Mapping[Any, str]
) -> tuple[str, bytes]:
    """Return an entry's hash and its line, after the line hashed `previous`.

    Parameters
    ----------
    texts
        Payloads by their digests; those that the entry names stand on its line.
    """
    data = canonical(entry)
    line_hash = link(previous, data)
    named = {digest: text for digest, text in texts.items() if digest.encode("ascii") in data}
    return line_hash, format_line(line_hash, data, named)


def parse_line(line: bytes) -> ParsedLine:
    """Parse a line, with or without its line feed.

    Raises
    ------
    ValueError
        If `format_line` would not write such a line; the message says where it differs.
    """
    try:
        return _parse(line)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _parse(line: bytes) -> ParsedLine:
    text = line.decode("utf-8").removesuffix("\n")
    prefix = _PREFIX.match(text)
    if prefix is None:
        raise ValueError("the line does not start with a hash and an entry")
    entry, end = _decode_at(text, prefix.end())
    payloads: Any = {}
    start, rest = end, text[end : end + len(_PAYLOADS)]
    if rest == _PAYLOADS:
        payloads, start = _decode_at(text, end + len(_PAYLOADS))
    if text[start:] != "}":
        raise ValueError("something other than payloads follows the entry")
    if not isinstance(entry, dict) or not isinstance(payloads, dict):
        raise ValueError("the entry or its payloads are not an object")
    if not all(isinstance(value, str) for value in payloads.values()):
        raise ValueError("a payload is not text")
    return ParsedLine(prefix[1], text[prefix.end() : end].encode("utf-8"), entry, payloads)
