"""From the content of a kernel's messages to valid nbformat outputs, as they come back from disk.

What a kernel should not send but may (lone surrogates, NaN, a MIME value that is not text, missing
keys) becomes what is nearest to it and valid.
"""

from __future__ import annotations

import json
import math
from typing import Any, Final

from ..types import JSON, Output
from .streams import encode, without_surrogates

DISPLAYS: Final = frozenset({"display_data", "execute_result", "update_display_data"})


def display(msg_type: str, content: dict[str, Any]) -> tuple[Output, int]:
    """Return the output of a message of a type in `DISPLAYS`, and its size in bytes."""
    data = content.get("data")
    bundle = {clean_text(str(k)): v for k, v in data.items()} if isinstance(data, dict) else {}
    size = 0
    for mimetype, value in bundle.items():
        bundle[mimetype], value_size = _mime_value(mimetype, value)
        size += value_size
    metadata = content.get("metadata")
    if isinstance(metadata, dict) and metadata:
        metadata, value_size = _json_value(metadata)
        size += value_size
    else:
        metadata = {}
    if msg_type != "execute_result":
        return {"output_type": "display_data", "data": bundle, "metadata": metadata}, size
    count = content.get("execution_count")
    return {
        "output_type": "execute_result",
        "data": bundle,
        "metadata": metadata,
        "execution_count": count if isinstance(count, int) and count >= 0 else None,
    }, size


def display_id(content: dict[str, Any]) -> str | None:
    """Return the display id that a message names."""
    transient = content.get("transient")
    found = transient.get("display_id") if isinstance(transient, dict) else None
    return found if isinstance(found, str) and found else None


def error(content: dict[str, Any]) -> tuple[Output, int]:
    """Return the output of an `error` message, and its size."""
    traceback = content.get("traceback")
    lines = [clean_text(str(line)) for line in traceback] if isinstance(traceback, list) else []
    output = {
        "output_type": "error",
        "ename": clean_text(str(content.get("ename", ""))),
        "evalue": clean_text(str(content.get("evalue", ""))),
        "traceback": lines,
    }
    return output, _error_size(output)


def cut_error(output: Output, max_bytes: int) -> tuple[Output, int]:
    """Return an error no larger than `max_bytes`, notes aside, and how many bytes that cost.

    A traceback, or a message, that is larger than its part loses its middle.
    """
    if _error_size(output) <= max_bytes:
        return output, 0
    ename, cut_ename = _cut_middle(output["ename"], max_bytes // 8)
    evalue, cut_evalue = _cut_middle(output["evalue"], max_bytes // 4)
    lines, cut_lines = _cut_lines(output["traceback"], max_bytes // 2)
    cut = {"output_type": "error", "ename": ename, "evalue": evalue, "traceback": lines}
    return cut, cut_ename + cut_evalue + cut_lines


def _error_size(output: Output) -> int:
    return sum(map(_size, (output["ename"], output["evalue"], *output["traceback"])))


def clean_text(text: str) -> str:
    """Return `text` as UTF-8 can hold it."""
    return text if text.isascii() else without_surrogates(text)


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(encode(text))


def _mime_value(mimetype: str, value: JSON) -> tuple[JSON, int]:
    """Return an entry of a mimebundle and its size.

    Source: nbformat 4.5's schema (`mimebundle`) and how nbformat joins lists of lines.
    """
    if mimetype == "application/json" or (
        mimetype.startswith("application/") and mimetype.endswith("+json")
    ):
        return _json_value(value)
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        value = "".join(value)
    elif not isinstance(value, str):
        value = json.dumps(_clean(value), ensure_ascii=False)
    value = clean_text(value)
    return value, _size(value)


def _json_value(value: JSON) -> tuple[JSON, int]:
    """Return `value` without what JSON or UTF-8 cannot hold, and the size of its JSON."""
    try:
        return value, len(json.dumps(value, ensure_ascii=False, allow_nan=False).encode())
    except ValueError:  # also a UnicodeEncodeError
        value = _clean(value)
        return value, len(json.dumps(value, ensure_ascii=False).encode())


def _clean(value: JSON) -> JSON:
    """Do as jupyter_client's `json_clean` does with floats that are not finite."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else repr(value)
    if isinstance(value, list):
        return [_clean(item) for item in value]
    if isinstance(value, dict):
        return {clean_text(str(key)): _clean(item) for key, item in value.items()}
    return value


def _cut_middle(text: str, max_bytes: int) -> tuple[str, int]:
    """Return `text` with a note in place of its middle if it is too large, and what that cost."""
    data = text.encode()
    if len(data) <= max_bytes:
        return text, 0
    head = data[: max_bytes // 2].decode(errors="ignore")
    tail = data[len(data) - max_bytes // 2 :].decode(errors="ignore")
    omitted = len(data) - _size(head) - _size(tail)
    return f"{head}[… {omitted:,} bytes left out …]{tail}", omitted


def _cut_lines(lines: list[str], max_bytes: int) -> tuple[list[str], int]:
    """Return the first and the last lines, and what was left out between them.

    A line that is too large by itself loses its own middle first.
    """
    omitted = 0
    kept: list[list[str]] = [[], []]
    first, last = 0, len(lines) - 1
    room = [max_bytes // 2, max_bytes // 2]
    for side in (1, 0):
        while first <= last:
            line, cut = _cut_middle(lines[last if side else first], max_bytes // 4)
            if _size(line) > room[side]:
                break
            room[side] -= _size(line)
            kept[side].append(line)
            omitted += cut
            first, last = (first, last - 1) if side else (first + 1, last)
    left_out = sum(map(_size, lines[first : last + 1]))
    if first <= last:
        kept[0].append(f"[… {left_out:,} bytes left out …]")
    return kept[0] + kept[1][::-1], omitted + left_out
