"""A script that applies regular expressions to its standard input; see `text_ranges`.

It runs in its own process, needs only the standard library, and gets its request as a JSON object
in its argument.
"""

from __future__ import annotations

import codecs
import contextlib
import io
import json
import re
import sys
import time
from collections.abc import Iterator
from typing import Any, BinaryIO

PIECE_BYTES = 1 << 16
"""A longer line is searched in pieces of this length."""

SHOWN_CHARACTERS = 1000
MEMORY_BYTES = 1 << 30


def main() -> None:
    """Search, and print a JSON object with `matches` and `next_offset`, or with `error`.

    With `patterns` in place of `pattern`, print `texts`: those of standard input, substituted.
    """
    request = json.loads(sys.argv[1])
    _limit_memory()
    if "patterns" in request:
        json.dump({"texts": substitute(json.load(sys.stdin), **request)}, sys.stdout)
        return
    try:
        pattern = re.compile(request["pattern"])
    except (re.error, ValueError, OverflowError, RecursionError, MemoryError) as error:
        answer: dict[str, Any] = {"error": str(error) or type(error).__name__}
    else:
        answer = search(sys.stdin.buffer, pattern, request)
    sys.stdout.write(json.dumps(answer))


def search(file: BinaryIO, pattern: re.Pattern[str], request: dict[str, Any]) -> dict[str, Any]:
    """Return the lines that match, and where to continue."""
    deadline = time.monotonic() + request["seconds"]
    matches: list[dict[str, Any]] = []
    next_offset = None
    for count, (line, offset, text) in enumerate(pieces(file, request["start"], request["line"])):
        if len(matches) >= request["limit"] or (count and time.monotonic() > deadline):
            next_offset = offset
            break
        match = pattern.search(text)
        if match is not None:
            first = 0 if match.end() <= SHOWN_CHARACTERS else max(0, match.start() - 200)
            matches.append(
                {
                    "line": line,
                    "offset": offset + len(text[:first].encode()),
                    "text": text[first : first + SHOWN_CHARACTERS],
                }
            )
    return {"matches": matches, "next_offset": next_offset}


def substitute(texts: list[str], patterns: list[str], placeholder: str) -> list[str]:
    """Return texts with a placeholder for all that matches."""
    for pattern in patterns:
        texts = [re.sub(pattern, lambda _: placeholder, text, flags=re.M) for text in texts]
    return texts


def pieces(file: BinaryIO, start: int, line: int) -> Iterator[tuple[int, int, str]]:
    """Yield number, offset and text of each line from `start` on, in pieces if it is long."""
    if file.seekable():
        file.seek(start)
    else:
        rest = start
        while rest > 0 and (skipped := file.read(min(rest, PIECE_BYTES))):
            rest -= len(skipped)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    offset = start
    while data := file.readline(PIECE_BYTES):
        ends_line = data.endswith(b"\n")
        pending = len(decoder.getstate()[0])
        text = decoder.decode(data, final=ends_line)
        yield line, offset - pending, text.rstrip("\n")
        offset += len(data)
        line += ends_line


def _limit_memory() -> None:
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


if __name__ == "__main__":
    sys.stdin = io.TextIOWrapper(sys.stdin.buffer)
    main()
