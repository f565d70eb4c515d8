"""Defines a line of a journal, to the byte: canonical bytes, hashes, formatting and parsing.

The writer and `verify` share this definition. It reads no files, and does not interpret entries.

A line is ``{"hash":"<64 hex>","entry":<canonical bytes>,"payloads":{"<name>":"<text>"},
"salts":{"<name>":"<32 hex>"}}`` and a line feed; `payloads` and `salts` are left out when there are
none. The hash is the SHA-256 of the previous line's hash (its 64 ASCII characters) and the
canonical bytes. Payloads and salts are not hashed with the line, so that they can be erased later
and the chain still verifies.

An entry names a payload by a commitment: the HMAC-SHA256 of its bytes, with the 32 ASCII characters
of its salt as the key. Without the salt, nobody can guess a payload. Each entry has ``"format":2``.
No released version wrote another format, and only this one is read.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import msgspec

GENESIS: Final = "0" * 64
"""The previous hash of a journal's first line."""

FORMAT: Final = 2
"""The `format` of all entries."""

_encode = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
).encode
_encode_texts = msgspec.json.Encoder(order="sorted").encode
_decode_at = json.JSONDecoder().raw_decode
_PREFIX = re.compile(r'\{"hash":"([0-9a-f]{64})","entry":')
_PAYLOADS = ',"payloads":'
_SALTS = ',"salts":'


class ParsedLine(NamedTuple):
    """The parts of a line, unchecked against the lines before it."""

    hash: str
    canonical: bytes
    entry: dict[str, Any]
    payloads: dict[str, str]
    salts: dict[str, str]


def canonical(entry: Mapping[str, Any]) -> bytes:
    """Return an entry's bytes: UTF-8 JSON, keys sorted, no spaces, only needed escapes.

    A lone surrogate, which UTF-8 cannot hold, becomes a question mark.
    """
    return _encode(entry).encode("utf-8", "replace")


def link(previous: str, entry: bytes) -> str:
    """Return the hash of the line with these canonical bytes after the line hashed `previous`."""
    return hashlib.sha256(previous.encode("ascii") + entry).hexdigest()


def format_line(
    line_hash: str,
    entry: bytes,
    payloads: Mapping[Any, str],
    salts: Mapping[Any, str] = MappingProxyType({}),
) -> bytes:
    """Return a whole line, line feed included."""
    line = b'{"hash":"%b","entry":%b' % (line_hash.encode("ascii"), entry)
    for name, texts in ((_PAYLOADS, payloads), (_SALTS, salts)):
        if texts:
            line += name.encode() + _encode_texts(texts)
    return line + b"}\n"


def next_line(
    previous: str, entry: bytes, texts: Mapping[Any, str], salts: Mapping[Any, str]
) -> tuple[str, bytes]:
    """Return an entry's hash and its line, after the line hashed `previous`.

    Parameters
    ----------
    entry
        Its canonical bytes.
    texts, salts
        Payloads, and salts of these and of others, by name. The line gets those that its entry
        names.
    """
    line_hash = link(previous, entry)
    named = {name: salt for name, salt in salts.items() if name.encode("ascii") in entry}
    on_line = {name: texts[name] for name in named if name in texts}
    return line_hash, format_line(line_hash, entry, on_line, named)


def hash_on(line: bytes) -> bytes:
    """Return the hash that a line has, unchecked; it need not be one."""
    return line[9:73]


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
    canonical = text[prefix.end() : end].encode("utf-8")
    payloads, end = _texts(text, _PAYLOADS, end)
    salts, end = _texts(text, _SALTS, end)
    if text[end:] != "}":
        raise ValueError("something other than payloads and salts follows the entry")
    if not isinstance(entry, dict):
        raise ValueError("the entry is not an object")
    return ParsedLine(prefix[1], canonical, entry, payloads, salts)


def _texts(text: str, name: str, start: int) -> tuple[dict[str, str], int]:
    """Return the payloads or the salts that stand at `start`, if they do, and where they end."""
    if not text.startswith(name, start):
        return {}, start
    texts, end = _decode_at(text, start + len(name))
    if not isinstance(texts, dict):
        raise ValueError("its payloads or salts are not an object")
    if not all(isinstance(value, str) for value in texts.values()):
        raise ValueError("a payload or a salt is not text")
    return texts, end
