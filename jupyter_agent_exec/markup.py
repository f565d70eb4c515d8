"""The text of an HTML fragment: table cells apart by tabs, rows and blocks on lines. Pure."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Final

_DROPPED: Final = frozenset({"script", "style", "template", "head", "noscript", "svg"})
# fmt: off
_BLOCKS: Final = frozenset({
    "address", "article", "aside", "blockquote", "br", "caption", "dd", "details", "div", "dl",
    "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5",
    "h6", "header", "hr", "li", "main", "nav", "ol", "p", "pre", "section", "summary", "table",
    "tbody", "tfoot", "thead", "tr", "ul",
})
# fmt: on
_SPACE = re.compile(r"[ \t\r\n\f\v\u00a0]+")


def html_text(html: str) -> str:
    """Return what there is to read in `html`."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return reader.text()


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._lines: list[list[str]] = [[]]
        self._dropped = 0
        self._preformatted = 0
        self._row_begun = False

    def text(self) -> str:
        lines = ("".join(line).rstrip(" ") for line in self._lines)
        return "\n".join(line for line in lines if line.strip())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _DROPPED:
            self._dropped += 1
        elif tag in _BLOCKS:
            self._lines.append([])
            self._preformatted += tag == "pre"
            if tag == "li":
                self._lines[-1].append("- ")
        elif tag in ("td", "th") and self._row_begun:
            line = self._lines[-1]
            while line and line[-1].endswith(" "):
                line[-1] = line[-1].rstrip(" ")
                if line[-1]:
                    break
                line.pop()
            line.append("\t")
        elif tag == "img" and not self._dropped:
            self._lines[-1].append(dict(attrs).get("alt") or "")
        if tag in ("td", "th"):
            self._row_begun = True
        elif tag == "tr":
            self._row_begun = False

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _DROPPED:
            self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        if tag in _DROPPED:
            self._dropped = max(0, self._dropped - 1)
        elif tag in _BLOCKS:
            self._lines.append([])
            if tag == "pre":
                self._preformatted = max(0, self._preformatted - 1)

    def handle_data(self, data: str) -> None:
        if self._dropped:
            return
        if self._preformatted:
            first, *others = data.split("\n")
            self._lines[-1].append(first)
            self._lines += [[line] for line in others]
            return
        line = self._lines[-1]
        text = _SPACE.sub(" ", data)
        if not line or line[-1].endswith((" ", "\t")):
            text = text.lstrip(" ")
        if text:
            line.append(text)
