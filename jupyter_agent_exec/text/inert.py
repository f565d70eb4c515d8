"""Make the inert copy of outputs that a notebook gets before a user has accepted them.

The copy's cell is marked as trusted, so that the notebook's own trust does not change. JupyterLab
therefore does not sanitise the cell. This module removes all content that can run code, load
something, or cover other parts of the page.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final

import mistune
import nh3
from mistune.plugins.formatting import strikethrough
from mistune.plugins.math import math
from mistune.plugins.table import table

from ..models import OutputChange
from ..types import RAW_IMAGE_TYPES, Output

MAX_HTML_LENGTH: Final = 500_000
"""HTML with more characters is held back, because sanitising would block the server."""

LARGE_HTML: Final = 50_000
"""HTML with more characters is sanitised in a thread."""

MAX_MARKUP_LENGTH: Final = 20_000
"""Markdown or LaTeX with more characters is shown as its source."""

_MAX_ENTITIES: Final = 20_000
_MAX_EFFORT: Final = 2_000_000
_AS_THEY_ARE: Final = ("text/plain", *RAW_IMAGE_TYPES)
_ALIGN: Final = {"left", "right", "center"}
_STYLES: Final = {f"text-align: {where};" for where in _ALIGN}
_CELL: Final = {"align": _ALIGN, "valign": {"top", "middle", "bottom"}, "style": _STYLES}
_ROW: Final = {"style": _STYLES}
_TABLE_TAGS: Final = "table caption colgroup col thead tbody tfoot tr th td"
_TEXT_TAGS: Final = (
    "a abbr b blockquote br cite code dd del details dfn div dl dt em h1 h2 h3 h4 h5 h6 hr i img "
    "ins kbd li mark ol p pre q s samp small span strong sub summary sup tt u ul var wbr"
)
_TAGS: Final = frozenset(f"{_TABLE_TAGS} {_TEXT_TAGS}".split())
_FORMATTING: Final = frozenset(
    {"a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt"}
    | {"u"}
)
"""Elements that a parser reopens if an end tag closed them too early."""
_VOID: Final = frozenset({"br", "hr", "img", "col", "wbr"})
_ATTRIBUTES: Final = {
    "a": {"href", "title"},
    "abbr": {"title"},
    "img": {"src", "alt", "width", "height"},
    "ol": {"start"},
    "td": {"colspan", "rowspan"},
    "th": {"colspan", "rowspan"},
}
_VALUES: Final[dict[str, dict[str, set[str]]]] = {
    "table": {"border": {"0", "1"}},
    "tr": _ROW,
    "th": {**_CELL, "scope": {"col", "row", "colgroup", "rowgroup"}},
    "td": _CELL,
}
_GONE_WITH_CONTENT: Final = {
    *("embed", "iframe", "math", "noembed", "noframes", "noscript", "object", "plaintext"),
    *("script", "select", "style", "svg", "template", "textarea", "title", "xmp"),
}
_LINK: Final = re.compile(r"(?:https?|mailto):", re.IGNORECASE)
_IMAGE: Final = re.compile(rf"data:(?:{'|'.join(RAW_IMAGE_TYPES)});base64,[A-Za-z0-9+/=\s]*")
_NUMBER: Final = re.compile(r"\d{1,4}")

_TAG: Final = re.compile(r"<(/?)([a-zA-Z][^\s/<>]*)([^<>]*)")
_KEPT_ATTRIBUTE: Final = re.compile(
    r"""\s+(?:
      (?:border|colspan|rowspan|halign|align|valign|scope|title|alt|width|height|start)="[^"]*"
    | class="dataframe" | target="_blank" | rel="noopener\ noreferrer"
    | style="text-align:\s*(?:left|right|center);?"
    | href="(?:https?|mailto):[^"]*"
    | src="data:image/(?!svg)[^"]*"
    ) | \s*/?$""",
    re.VERBOSE,
)
"""Attributes that sanitising keeps, or removes without a visible change."""
_PANDAS_STYLE: Final = re.compile(
    r"(?:\s*\.dataframe [a-z:\- ]+\{\s*(?:vertical|text)-align: [a-z]+;\s*\})*\s*"
)
_STAND_IN: Final = re.compile(r"\s*<[^<>\n]*>\s*")
"""Text with only the name of an object."""


def inert(outputs: Sequence[Output]) -> tuple[list[Output], list[str]]:
    """Return a copy of outputs without active content, and the MIME types that were held back.

    Text, raster images and JSON stay unchanged. HTML is sanitised. Markdown becomes sanitised HTML.
    LaTeX stays if it has only harmless commands; else it becomes plain text. All other MIME types
    are removed. If an output then has no data left, it gets a note that says what is hidden. The
    inert copy of an inert copy is equal to it.
    """
    copies: list[Output] = []
    held: dict[str, None] = {}
    for output in outputs:
        copy, less = _inert(output)
        copies.append(copy)
        held.update(dict.fromkeys(less))
    return copies, list(held)


def _inert(output: Output) -> tuple[Output, list[str]]:
    match output.get("output_type"):
        case "stream":
            kept = {key: output[key] for key in ("output_type", "name", "text")}
            return kept, []
        case "error":
            kept = {key: output[key] for key in ("output_type", "ename", "evalue", "traceback")}
            return kept, []
        case "display_data" | "execute_result":
            data, held = _inert_data(output.get("data", {}))
            kept = {"output_type": output["output_type"], "data": data}
            kept["metadata"] = _inert_metadata(output.get("metadata", {}), data)
            if output["output_type"] == "execute_result":
                kept["execution_count"] = output.get("execution_count")
            return kept, held
        case kind:
            held = [f"an output of type {kind}"]
            data = _held_note(held)
            return {"output_type": "display_data", "data": data, "metadata": {}}, held


def _inert_data(data: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    kept: dict[str, Any] = {}
    held: list[str] = []
    for mimetype, value in data.items():
        text = value if isinstance(value, str) else _lines(value)
        if mimetype == "application/json" or (text is not None and mimetype in _AS_THEY_ARE):
            kept[mimetype] = value
        elif text is not None and mimetype == "text/html":
            html, whole = sanitised(text)
            if html is not None:
                kept[mimetype] = html
            if not whole:
                held.append(mimetype)
        elif text is not None and mimetype == "text/latex" and is_harmless_tex(text):
            kept[mimetype] = value
        elif text is None or mimetype != "text/markdown":
            held.append(mimetype)
    markdown = _text_of(data, "text/markdown")
    if markdown is not None and "text/html" not in kept:
        html, whole = sanitised_markdown(markdown)
        if html is not None:
            kept["text/html"] = html
        if not whole:
            held.append("text/markdown")
    source = _markup_source(data)
    if source is not None and _says_nothing(kept):
        kept["text/plain"] = source
    if held and not kept:
        kept = _held_note(held)
    return kept, held


def _lines(value: Any) -> str | None:
    """Return a list of lines as one string; None for any other value."""
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        return "".join(value)
    return None


def _text_of(data: dict[str, Any], mimetype: str) -> str | None:
    value = data.get(mimetype)
    return value if isinstance(value, str) else _lines(value)


def _markup_source(data: dict[str, Any]) -> str | None:
    markdown = _text_of(data, "text/markdown")
    return _text_of(data, "text/latex") if markdown is None else markdown


def _says_nothing(kept: dict[str, Any]) -> bool:
    """Whether the data is only the name of an object."""
    plain = kept.get("text/plain", "<>")
    return kept.keys() <= {"text/plain"} and _STAND_IN.fullmatch(str(plain)) is not None


def _held_note(held: Sequence[str]) -> dict[str, Any]:
    kinds = dict.fromkeys(kind_of(what) for what in held)
    named = ", ".join(kinds)
    return {"text/plain": f"[{named} hidden until you accept the outputs]"}


_KINDS: Final = (
    ("plotly", "Plotly chart"),
    ("vega", "Vega chart"),
    ("bokeh", "Bokeh plot"),
    ("holoviews", "HoloViews plot"),
    ("jupyter.widget", "Widget"),
    ("geo+json", "Map"),
    ("svg", "SVG image"),
    ("image/", "Image"),
    ("text/html", "HTML"),
    ("javascript", "JavaScript"),
    ("markdown", "Markdown"),
    ("latex", "LaTeX"),
    ("json", "Data"),
)


def kind_of(mimetype: str) -> str:
    """Return what a MIME type is for a user, without its name, which an agent can choose."""
    return next((kind for part, kind in _KINDS if part in mimetype), "Output")


def _inert_metadata(metadata: dict[str, Any], data: dict[str, Any]) -> dict[str, Any]:
    """Return the metadata that sets the size of images and whether JSON is expanded."""
    kept: dict[str, Any] = {}
    for mimetype in data:
        told = metadata.get(mimetype)
        if not isinstance(told, dict):
            continue
        if mimetype in RAW_IMAGE_TYPES:
            allowed = {key: told[key] for key in ("width", "height") if _is_size(told.get(key))}
            if told.get("needs_background") in ("light", "dark"):
                allowed["needs_background"] = told["needs_background"]
        elif mimetype == "application/json":
            allowed = (
                {"expanded": told["expanded"]} if told.get("expanded") in (True, False) else {}
            )
        else:
            continue
        kept[mimetype] = allowed
    return kept


def _is_size(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < 100_000


# -- HTML ------------------------------------------------------------------------------------------


def _attribute(tag: str, name: str, value: str) -> str | None:
    """Return the value of an attribute if it is allowed, else None."""
    if name == "href":
        return value if _LINK.match(value) else None
    if name == "src":
        return value if _IMAGE.fullmatch(value) else None
    if name in ("width", "height", "colspan", "rowspan", "start"):
        return value if _NUMBER.fullmatch(value) else None
    return value


_CLEANER: Final = nh3.Cleaner(
    tags=set(_TAGS),
    clean_content_tags=_GONE_WITH_CONTENT,
    attributes=_ATTRIBUTES,
    tag_attribute_values=_VALUES,
    set_tag_attribute_values={"a": {"target": "_blank"}},
    attribute_filter=_attribute,
    allowed_classes={"table": {"dataframe"}},
    generic_attribute_prefixes=set(),
    link_rel="noopener noreferrer",
    url_schemes={"http", "https", "mailto", "data"},
    url_relative="deny",
)


def sanitised(html: str) -> tuple[str | None, bool]:
    """Return HTML without active content, and whether nothing was removed.

    The HTML is None if nothing visible is left, or if it cannot be sanitised in a bounded time.
    """
    if len(html) > MAX_HTML_LENGTH or html.count("&") > _MAX_ENTITIES:
        return None, False
    html = _without_pandas_style(html)
    whole, effort = _survey(html)
    if effort > _MAX_EFFORT:
        return None, False
    cleaned = _with_harmless_tex(_CLEANER.clean(html))
    for _ in range(3):
        again = _with_harmless_tex(_CLEANER.clean(cleaned))
        if again == cleaned:
            return (cleaned if _is_seen(cleaned) else None), whole
        cleaned = again
    return None, False  # HTML that changes with each parsing is unpredictable in a browser


class _Renderer(mistune.HTMLRenderer):
    """Renders Markdown as the HTML that sanitising keeps."""

    def __init__(self) -> None:
        super().__init__(escape=False)

    def block_code(self, code: str, info: str | None = None) -> str:
        return f"<pre><code>{mistune.escape(code)}</code></pre>\n"

    def inline_math(self, text: str) -> str:
        return rf"\({mistune.escape(text)}\)"

    def block_math(self, text: str) -> str:
        return f"<div>$$\n{mistune.escape(text)}\n$$</div>\n"


_markdown: Final = mistune.Markdown(
    renderer=_Renderer(),
    plugins=[table, strikethrough, math],
)
_ALIGNED: Final = re.compile(r' style="text-align:(left|right|center)"')


def sanitised_markdown(source: str) -> tuple[str | None, bool]:
    """Return Markdown as HTML without active content, and whether nothing was removed.

    The HTML is None if nothing visible is left, or if it cannot be made in a bounded time.
    """
    if len(source) > MAX_MARKUP_LENGTH:
        return None, False
    try:
        html = _markdown(source)
    except RecursionError:
        return None, False
    assert isinstance(html, str)
    return sanitised(_ALIGNED.sub(r' style="text-align: \1;"', html))


_TEX: Final = re.compile(
    r"\\(?=(?:[gex]?def|(?:future)?let|global|require|label|definecolor|mathtoolsset|setOptions"
    r"|(?:re)?new[A-Za-z]*|New[A-Za-z]*|provide[A-Za-z]*|Declare[A-Za-z]*"
    r"|href|url|html[A-Za-z]*|style|class|cssId|data|mmlToken|unicode|includegraphics|bbox"
    r")(?![A-Za-z]))"
)
"""LaTeX commands that define others for the whole page, load something, or set HTML attributes."""

_TAG_OR_TEX: Final = re.compile(rf'<[^"<>]*(?:"[^"]*"[^"<>]*)*>|{_TEX.pattern}')


def is_harmless_tex(source: str) -> bool:
    """Whether LaTeX has no command that reaches beyond its own formula."""
    return len(source) <= MAX_MARKUP_LENGTH and _TEX.search(source) is None


def _with_harmless_tex(html: str) -> str:
    """Return sanitised HTML in which the harmful commands of formulas are only text.

    An element inside a formula keeps it from being typeset.
    """
    return _TAG_OR_TEX.sub(lambda found: "\\<span></span>" if found[0] == "\\" else found[0], html)


def _without_pandas_style(html: str) -> str:
    """Return HTML without the style that pandas adds to a table; JupyterLab has its own."""
    before, opened, rest = html.partition("<style scoped>")
    style, closed, after = rest.partition("</style>")
    if opened and closed and len(style) < 1000 and _PANDAS_STYLE.fullmatch(style):
        return before + after
    return html


def _survey(html: str) -> tuple[bool, int]:
    """Return whether sanitising removes nothing, and its maximum cost in parser steps.

    For each tag, a parser may visit all open elements and reopen all formatting elements that were
    closed too early. A tag counts as open until its end tag follows at its own level.
    """
    whole, count, deepest, formatting, most = True, 0, 0, 0, 0
    opened: list[str] = []
    for found in _TAG.finditer(html):
        closing, tag, attributes = found[1], found[2].lower(), found[3]
        count += 1
        if tag not in _TAGS or (attributes and _KEPT_ATTRIBUTE.sub("", attributes)):
            whole = False
        if not closing and tag not in _VOID:
            opened.append(tag)
            formatting += tag in _FORMATTING
            most = max(most, formatting)
            deepest = max(deepest, len(opened))
        elif closing and opened and opened[-1] == tag:
            opened.pop()
            formatting -= tag in _FORMATTING
    return whole, count * (deepest + 8 * most)


def _is_seen(html: str) -> bool:
    return bool(re.sub(r"<[^<>]*>", "", html).strip()) or "<img " in html


class _Item:
    """One output: its inert copy, and the original to identify it."""

    __slots__ = ("_inert", "held", "more", "original")

    def __init__(self, original: Output) -> None:
        self.original = original
        (self._inert,), self.held = inert([original])
        self.more: list[str] = []
        """Text that was appended to a stream later."""

    def whole(self) -> Output:
        if self.more:
            text = "".join([self._inert["text"], *self.more])
            self._inert, self.more = {**self._inert, "text": text}, []
        return self._inert


class InertCopy:
    """The inert copy of the outputs of an execution's cell.

    Each output is made inert once. If the same object comes again, it has not changed.
    """

    def __init__(self) -> None:
        self._items: list[_Item] = []
        self._held: Counter[str] = Counter()

    @property
    def held(self) -> list[str]:
        """MIME types that were held back."""
        return sorted(self._held)

    def feed(self, steps: Iterable[OutputChange]) -> list[OutputChange]:
        """Apply changes of the original outputs, and return the changes of the copy."""
        dropped: dict[int, _Item] = {}
        return [self._feed(step, dropped) for step in steps]

    async def feed_without_blocking(self, steps: Sequence[OutputChange]) -> list[OutputChange]:
        """Like `feed`, but sanitise large HTML in a thread."""
        if _html_length(steps) > LARGE_HTML:
            return await asyncio.to_thread(self.feed, steps)
        return self.feed(steps)

    def _feed(self, step: OutputChange, dropped: dict[int, _Item]) -> OutputChange:
        if isinstance(step.append, str):
            self._items[step.index].more.append(step.append)
        elif isinstance(step.output, dict):
            return OutputChange(index=step.index, output=self._put(step, step.output, dropped))
        else:
            gone = self._replace(slice(step.index, None))
            dropped.update((id(item.original), item) for item in gone)
        return step

    def _put(self, step: OutputChange, original: Output, dropped: dict[int, _Item]) -> Output:
        item = dropped.get(id(original)) or _Item(original)
        self._replace(slice(step.index, step.index + 1), item)
        return item.whole()

    def _replace(self, where: slice, *items: _Item) -> list[_Item]:
        """Replace a range of items, and return the replaced items."""
        gone = self._items[where]
        self._items[where] = items
        for item in items:
            self._held.update(item.held)
        for item in gone:
            self._held.subtract(item.held)
        self._held = +self._held
        return gone

    def whole(self) -> list[OutputChange]:
        """Return changes that turn any outputs into the copy."""
        return set_outputs([item.whole() for item in self._items])


def _html_length(steps: Iterable[OutputChange]) -> int:
    """Return the number of HTML characters to sanitise. Markdown counts tenfold."""
    found = [step.output.get("data", {}) for step in steps if isinstance(step.output, dict)]
    return sum(
        len(data.get("text/html", "")) + 10 * len(data.get("text/markdown", "")) for data in found
    )


def set_outputs(outputs: Sequence[Output]) -> list[OutputChange]:
    """Return changes that turn any outputs into `outputs`."""
    first = OutputChange(index=0, truncate=True)
    return [first, *(OutputChange(index=i, output=output) for i, output in enumerate(outputs))]
