"""Show an execution's outputs as one output of a notebook.

An output that stands alone is shown as it is. Several become one HTML document, in order: a
mimebundle holds alternatives of one thing, not a sequence.
"""

from __future__ import annotations

import html
from typing import Any, Final

from ..terminal import clean
from ..types import RAW_IMAGE_TYPES, Output
from .plain import plain

_SUFFIXES: Final = {"image/svg+xml": ".svg", "image/jpeg": ".jpg"}
_PRE: Final = '<pre style="margin: 0; white-space: pre-wrap">{}</pre>'
_PRE_STDERR: Final = (
    '<pre style="margin: 0; white-space: pre-wrap; '
    'background: var(--jp-rendermime-error-background, #fdd)">{}</pre>'
)


def mimebundle(outputs: list[Output], text: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return data and metadata that show `outputs`; `text` is for those who cannot.

    Display ids are left out: what is shown here is a copy that nobody updates.
    """
    if len(outputs) == 1 and "data" in outputs[0]:
        data = {
            mimetype: value if mimetype.endswith("json") else joined(value)
            for mimetype, value in outputs[0]["data"].items()
        }
        return {**data, "text/plain": text}, dict(outputs[0].get("metadata", {}))
    if not outputs:
        return {"text/plain": text}, {}
    return {"text/plain": text, "text/html": "\n".join(map(_as_html, outputs))}, {}


def joined(value: Any) -> Any:
    """Return a mimebundle's value, its lines put together if nbformat has them apart."""
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        return "".join(value)
    return value


def suffix_of(mimetype: str) -> str:
    """Return how the name of an image's file ends, with the dot."""
    return _SUFFIXES.get(mimetype, "." + mimetype.partition("/")[2])


def _as_html(output: Output) -> str:
    kind = output["output_type"]
    if kind == "stream":
        frame = _PRE_STDERR if output["name"] == "stderr" else _PRE
        return frame.format(html.escape(plain(clean(joined(output["text"])))))
    if kind == "error":
        lines = output["traceback"] or [f"{output['ename']}: {output['evalue']}"]
        return _PRE_STDERR.format(html.escape(plain("\n".join(lines))))
    return _data_as_html(output["data"], output.get("metadata", {}))


def _data_as_html(data: dict[str, Any], metadata: dict[str, Any]) -> str:
    if "text/html" in data:
        return f"<div>{joined(data['text/html'])}</div>"
    if "image/svg+xml" in data:
        return f"<div>{joined(data['image/svg+xml'])}</div>"
    for mimetype in RAW_IMAGE_TYPES:
        if mimetype in data:
            known = metadata.get(mimetype, {})
            pixels = "".join(
                f' {side}="{int(known[side])}"'
                for side in ("width", "height")
                if isinstance(known, dict) and isinstance(known.get(side), (int, float))
            )
            encoded = html.escape("".join(joined(data[mimetype]).split()))
            return f'<div><img src="data:{mimetype};base64,{encoded}"{pixels}></div>'
    return _PRE.format(html.escape(plain(str(joined(data.get("text/plain", ""))))))
