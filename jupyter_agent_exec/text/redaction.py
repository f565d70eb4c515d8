"""Replaces secrets in texts by a mark that names them, such as ``[redacted: agent token]``.

A `Redactor` has the rules. A `Redaction` applies them to one execution: it counts, and finds
secrets that come in pieces. Agent tokens are always replaced, the rest is configured.

A secret is looked for in a text as it is, and in what a reader sees of it (`_Seen`): without escape
sequences and tags, with carriage returns and backspaces applied. So no later step can join what
was apart here, whatever it makes of the text: text for models, an index, a notebook.
"""

from __future__ import annotations

import binascii
import html
import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
import regex

from ..types import JSON
from .terminal import clean

S = TypeVar("S", bound=msgspec.Struct)

PATTERN_SECONDS: Final = 0.5
"""Seconds of the processor that one pattern gets for one text. What takes longer is replaced."""

MOST_HELD: Final = 16_384
"""Characters. A longer beginning of a match is replaced without its end."""

SHORTEST_CUT: Final = 4
"""Characters. What is left of a secret is replaced if it has as many."""

SHORTEST_IN_BINARY: Final = 8
"""Characters. Shorter matches in an image's data are chance."""

LONG_DATA: Final = 1_000
"""Characters of base64. Shorter data of an image is searched as a text too: it may be one."""

LONGEST_LINE: Final = 4_096
"""Characters of an unfinished line that are remembered, because more may overwrite it."""

LONGEST_PAIR: Final = 1_000
"""Characters. Longer values are not searched together with their keys."""

_BINARY: Final = re.compile(r"(image/(?!svg)|audio/|video/|application/pdf)")
_JSON_TYPE: Final = re.compile(r"application/(?:json|.*\+json)")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_TAGS: Final[Mapping[str, regex.Pattern[str]]] = {
    mimetype: regex.compile(
        rf"(?s)<(?:!--.*?--!?>|(?i:({dropped}))\b.*?</(?i:\1)\s*>"
        r"|[a-zA-Z/!?][^<>\"']*+(?:(?:\"[^\"]*+\"|'[^']*+')[^<>\"']*+)*+>)"
    )
    for mimetype, dropped in {
        "text/html": "script|style|template|head|noscript|svg",
        "text/markdown": "script|style|template|head|noscript|svg",
        "image/svg+xml": "script|style",
    }.items()
}
"""What a reader does not see, by mimetype."""

_ENTITY: Final = re.compile(r"&#?\w{1,32};?")
MARK: Final = re.compile(r"\[redacted: [^\]\n]{1,100}\]")


class Rule(NamedTuple):
    """A kind of secret."""

    name: str
    pattern: regex.Pattern[str]
    public: int = 0
    """How many characters at its beginning are no secret. They are not held back."""


OWN_TOKENS_BEGIN: Final = "j"
_HIDES: Final = r"[\\<&\"]|[^ -~]"
_HINT: Final = rf"j(?:a(?:e(?:[xr]|{_HIDES})|{_HIDES})|{_HIDES})"
HAS_TOKEN: Final = re.compile(_HINT)
HAS_TOKEN_IN_BYTES: Final = re.compile(_HINT.encode())
"""Found in all that has an agent token, as a text or as JSON, also if something is hidden in it."""

OWN_TOKENS: Final = Rule(
    "agent token", regex.compile(r"jae[xr]_t_[0-9A-Z]{26}_[0-9a-f]{64}"), public=len("jaex_t_")
)


class SlowPatternError(Exception):
    """A pattern took too long; its name."""


class Pending(NamedTuple):
    """The end of a text that may begin a secret."""

    text: str = ""
    shown: int = 0
    """How many of its characters were shown, because they are no secret by themselves."""
    line: str = ""
    """What was shown before it of the same line, which a carriage return may bring back."""

    @property
    def waits(self) -> bool:
        """Whether some of it was not shown yet."""
        return len(self.text) > self.shown


NOTHING: Final = Pending()


class _Span(NamedTuple):
    """A part of a text to replace."""

    start: int
    end: int
    instead: str
    secrets: int = 1
    is_line: bool = False
    """Whether `instead` is all of a line, from its beginning on."""


class _Part(NamedTuple):
    """A part of what a reader sees."""

    at: int
    """Where it begins in what is seen."""
    start: int
    end: int
    """Where it stands in the text."""
    is_as_written: bool


class _Seen:
    """A text as a reader sees it, and where each part of that stands in the text."""

    def __init__(self, text: str, other: Iterable[tuple[int, int, str]]) -> None:
        """Take parts of the text that are seen as something else: start, end, and as what."""
        pieces: list[str] = []
        self._parts: list[_Part] = []
        self._starts: list[int] = []
        length = at = 0
        for start, end, seen in (*other, (len(text), len(text), "")):
            for piece, part in ((text[at:start], (at, start, True)), (seen, (start, end, False))):
                if piece:
                    self._parts.append(_Part(length, *part))
                    self._starts.append(length)
                    pieces.append(piece)
                    length += len(piece)
            at = end
        self.text = "".join(pieces)
        self._end = len(text)

    @classmethod
    def in_terminal(cls, text: str) -> _Seen:
        """Return what a terminal shows of a text. A line that has control characters is a part."""

        def lines() -> Iterator[tuple[int, int, str]]:
            at = 0
            while (control := _CONTROL.search(text, at)) is not None:
                start = text.rfind("\n", 0, control.start()) + 1
                at = text.find("\n", control.end())
                at = len(text) if at < 0 else at
                yield start, at, clean(text[start:at])

        return cls(text, lines())

    @classmethod
    def on_page(cls, text: str, mimetype: str) -> _Seen:
        """Return what a browser shows of a text."""

        def parts() -> Iterator[tuple[int, int, str]]:
            at = 0
            for tag in [
                *(each.span() for each in _TAGS[mimetype].finditer(text)),
                (len(text),) * 2,
            ]:
                for entity in _ENTITY.finditer(text, at, tag[0]):
                    yield *entity.span(), html.unescape(entity[0])
                yield *tag, ""
                at = tag[1]

        return cls(text, parts())

    def spans(
        self, found: Sequence[tuple[int, int, str]], *, to_the_end: bool = False
    ) -> Iterator[_Span]:
        """Return what to replace in the text for what was found in what is seen.

        Parameters
        ----------
        to_the_end
            Whether what is found at the end takes all that follows unseen with it.
        """
        group: list[tuple[int, int, str]] = []
        begin = reach = 0
        for each in _merged(found):
            first, last = self._index(each[0]), self._index(each[1] - 1)
            start, end = each[:2]
            if not self._parts[first].is_as_written:
                start = self._starts[first]
            if not self._parts[last].is_as_written:
                end = self._starts[last + 1] if self._parts[last + 1 :] else len(self.text)
            if group and start >= reach:
                yield self._span(begin, reach, group)
                group = []
            if not group:
                begin = start
            group.append(each)
            reach = end
        if group:
            span = self._span(begin, reach, group)
            is_at_end = to_the_end and reach == len(self.text)
            yield span._replace(end=self._end) if is_at_end else span

    def _span(self, start: int, end: int, found: Sequence[tuple[int, int, str]]) -> _Span:
        pieces, at = [], start
        for first, last, name in found:
            pieces += [self.text[at:first], mark(name)]
            at = last
        pieces.append(self.text[at:end])
        begin, last_part = self._parts[self._index(start)], self._parts[self._index(end - 1)]
        is_as_written = last_part.is_as_written
        return _Span(
            begin.start + (start - begin.at if begin.is_as_written else 0),
            last_part.start + end - last_part.at if is_as_written else last_part.end,
            "".join(pieces),
            len(found),
            is_line=not begin.is_as_written,
        )

    def _index(self, at: int) -> int:
        """Return which part has a character that is seen."""
        return bisect_right(self._starts, at) - 1


class Redactor:
    """Replaces what matches its rules, and agent tokens. Thread-safe.

    Attributes
    ----------
    is_configured
        Whether it has rules of the configuration.
    """

    def __init__(self, rules: Sequence[Rule] = ()) -> None:
        self._rules = (OWN_TOKENS, *rules)
        self.is_configured = bool(rules)
        names = "|".join(regex.escape(rule.name) for rule in self._rules)
        self._marks = Rule("", regex.compile(rf"\[redacted: (?:{names})\]"))

    def text(self, text: str) -> tuple[str, int]:
        """Return a text, and how many secrets were replaced in it. JSON stays JSON."""
        if not self.is_configured and HAS_TOKEN.search(text) is None:
            return text, 0
        try:
            if text.endswith("…") and (cut := self._cut(text)) is not None:
                return cut
            shown, _, count = self.piece(text, is_last=True)
            may_hide = self.is_configured and "\\" in text
            if (count or may_hide) and text.lstrip()[:1] in ("{", "["):
                try:
                    parsed = json.loads(text)
                except ValueError:
                    return shown, count
                value, count = self.value(parsed)
                shown = json.dumps(value, ensure_ascii=False) if count else text
        except SlowPatternError as error:
            return mark(f"{error} took too long"), 1
        except RecursionError:
            return mark("nested too deeply"), 1
        return shown, count

    def value(self, value: JSON) -> tuple[JSON, int]:
        """Return a value with its texts redacted, and the count.

        An image, sound or the like that holds a secret is replaced by a mark in `text/plain`.
        """
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            items = [self.value(item) for item in value]
            count = sum(each for _, each in items)
            return [item for item, _ in items] if count else value, count
        if isinstance(value, dict):
            return self._dict(value)
        return value, 0

    def lines(self, value: JSON) -> tuple[JSON, int]:
        """Return a list of lines like `value`; a secret may go over several of them."""
        value, count = self.value(value)
        if self.is_configured and _is_lines(value):
            shown, more = self.text("\n".join(value))
            if more:
                return shown.split("\n"), count + more
        return value, count

    def _dict(self, value: dict[str, JSON]) -> tuple[dict[str, JSON], int]:
        made: dict[str, JSON] = {}
        count, gone = 0, []
        for key, item in value.items():
            if "/" in key and _is_lines(item) and not _JSON_TYPE.match(key):
                item = "".join(item)  # nbformat divides a text so
            if isinstance(item, str) and _BINARY.match(key):
                if (found := self._in_binary(item)) is not None:
                    gone.append(found)
                else:
                    made[key] = item
                continue
            shown, in_key = self.text(key)
            made[shown], in_item = self.value(item)
            if isinstance(item, str):
                if key in _TAGS:
                    made[shown], more = self._page(made[shown], key)
                    in_item += more
                elif self.is_configured and not in_item and len(item) <= LONGEST_PAIR:
                    paired, in_item = self.text(f'"{key}": "{item}"')
                    if in_item and (found_mark := MARK.search(paired)) is not None:
                        made[shown] = found_mark[0]
            count += in_key + in_item
        if gone:
            texts = [made.get("text/plain"), *gone]
            made["text/plain"] = "\n".join(each for each in texts if isinstance(each, str))
        count += len(gone)
        return made if count else value, count

    def _in_binary(self, text: str) -> str | None:
        """Return the mark of a secret in what should be an image, sound or the like, in base64."""
        try:
            data = binascii.a2b_base64("".join(text.split()), strict_mode=True)
        except ValueError:
            data = b""
        if not data or len(text) < LONG_DATA:
            shown, count = self.text(text)
            if count:
                found = MARK.search(shown)
                return shown if found is None else found[0]
        if self.is_configured and data:
            inside = data.decode("utf-8", "replace")
            try:
                for start, end, name in self._found(inside):
                    if end - start >= SHORTEST_IN_BINARY:
                        return mark(name)
            except SlowPatternError as error:
                return mark(f"{error} took too long")
        return None

    def _page(self, text: str, mimetype: str) -> tuple[str, int]:
        """Return markup without the secrets that a reader would see in it."""
        if not self.is_configured and HAS_TOKEN.search(text) is None:
            return text, 0
        try:
            plain = html.unescape(_TAGS[mimetype].sub("", text, timeout=PATTERN_SECONDS))
            if plain == text or not self._found(plain):
                return text, 0
            seen = _Seen.on_page(text, mimetype)
            found = self._found(seen.text)
        except TimeoutError:
            return mark(f"{mimetype} took too long"), 1
        except SlowPatternError as error:
            return mark(f"{error} took too long"), 1
        pieces, at = [], 0
        for span in seen.spans(found):
            pieces += [text[at : span.start], html.escape(span.instead, quote=False)]
            at = span.end
        return "".join([*pieces, text[at:]]), len(found)

    def _cut(self, text: str) -> tuple[str, int] | None:
        """Return a text that the kernel cut within a secret; None if it did not."""
        shown, pending, count = self.piece(text[:-1], is_last=False)
        if len(pending.text) - pending.shown < SHORTEST_CUT:
            return None
        return f"{shown}{mark('the beginning of a secret')}…", count + 1

    def struct(self, struct: S) -> S:
        """Return a struct of free texts with its texts redacted."""
        shown, count = self.text(msgspec.json.encode(struct).decode())
        return msgspec.json.decode(shown, type=type(struct)) if count else struct

    def piece(
        self, text: str, before: Pending = NOTHING, *, is_last: bool
    ) -> tuple[str, Pending, int]:
        """Return what to show of a piece of text, its end that has to wait, and the count.

        Raises
        ------
        SlowPatternError
        """
        if not (self.is_configured or before.text or OWN_TOKENS_BEGIN in text):
            return text, NOTHING, 0
        line = len(before.line)
        text, shown = f"{before.line}{before.text}{text}", line + before.shown
        context = len(text)
        found = []
        for start, end, name, public in self._candidates(text[line:], is_last=is_last):
            if end - start <= public:
                context = min(context, line + start)
            else:
                found.append(_Span(line + start, line + end, mark(name)))
        if _CONTROL.search(text) is not None:
            seen = _Seen.in_terminal(text)
            found += seen.spans(
                [
                    (start, end, name)
                    for start, end, name, public in self._candidates(seen.text, is_last=is_last)
                    if end - start > public
                ],
                to_the_end=not is_last,
            )
        spans = _joined(found)
        held = len(text)
        if not is_last and spans and spans[-1].end == held > spans[-1].start >= held - MOST_HELD:
            held = spans.pop().start
        pieces, at, count = [], shown, 0
        for span in spans:
            if span.end > shown:
                instead = span.instead
                if span.is_line and span.start < shown:  # overwrite what was shown of it
                    instead = "\r" + instead.ljust(shown - span.start)
                pieces += [text[at : span.start], instead]
                at = span.end
                count += span.secrets
        pieces.append(text[at:held])
        told = "".join(pieces)
        if not self.is_configured and is_last:
            return told, NOTHING, count
        kept = len(text) if is_last else min(context, held)
        was_shown = max(held, shown) - kept
        return told, Pending(text[kept:], was_shown, _line(text[:shown] + told, was_shown)), count

    def _candidates(self, text: str, *, is_last: bool) -> Iterator[tuple[int, int, str, int]]:
        """Yield secrets, and where one may begin at the end, with how much of that is public."""
        found = [
            (start, end, rule.name, rule.public if not is_last and end == len(text) else 0)
            for rule in self._rules
            for start, end in _matches(rule, text, is_last=is_last)
        ]
        # What was replaced before stays as it is.
        marks = list(_matches(self._marks, text, is_last=True)) if found else []
        for each in found:
            if not any(each[0] < last and first < each[1] for first, last in marks):
                yield each

    def _found(self, text: str) -> list[tuple[int, int, str]]:
        """Return the secrets in a whole text: where they begin and end, and their names."""
        return _merged(each[:3] for each in self._candidates(text, is_last=True))


def _is_lines(value: JSON) -> bool:
    return isinstance(value, list) and all(isinstance(line, str) for line in value)


def _line(shown: str, without: int) -> str:
    """Return the last line of what was shown, without characters at its end."""
    line = shown[: len(shown) - without].rpartition("\n")[2]
    if len(line) > LONGEST_LINE:
        line = clean(line)[:LONGEST_LINE] + ("\r" if line.endswith("\r") else "")
    return line


def _joined(found: Iterable[_Span]) -> list[_Span]:
    """Return spans in order, those that overlap as one: a wider one says what is instead."""
    joined: list[_Span] = []
    for span in sorted(found, key=lambda span: (span.start, -span.end)):
        if not joined or span.start >= joined[-1].end:
            joined.append(span)
        elif (last := joined[-1]).end < span.end:
            instead, secrets = last.instead + span.instead, last.secrets + span.secrets
            joined[-1] = last._replace(end=span.end, instead=instead, secrets=secrets)
    return joined


def _matches(rule: Rule, text: str, *, is_last: bool) -> Iterator[tuple[int, int]]:
    """Yield where a rule matches; unless the text is the last, also where a match may begin."""
    try:
        for match in rule.pattern.finditer(text, partial=not is_last, timeout=PATTERN_SECONDS):
            if match.end() > match.start():
                yield match.span()
    except TimeoutError:
        raise SlowPatternError(rule.name) from None


def _merged(found: Iterable[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """Return spans in order, those that overlap as one with the first one's name."""
    merged: list[tuple[int, int, str]] = []
    for start, end, name in sorted(found):
        if not merged or start >= merged[-1][1]:
            merged.append((start, end, name))
        else:
            first, last, its_name = merged[-1]
            merged[-1] = first, max(last, end), its_name
    return merged


class Redaction:
    """The redaction of one execution's outputs, which come in pieces.

    Attributes
    ----------
    count
        How many secrets were replaced.
    pending
        What is remembered of streams, by their names.
    """

    def __init__(self, redactor: Redactor) -> None:
        self.count = 0
        self.pending: dict[str, Pending] = {}
        self._redactor = redactor
        self._slow: str | None = None

    def stream(self, name: str, text: str, *, is_last: bool = False) -> str:
        """Return what to show of a stream's next piece. A secret's beginning waits for more."""
        if self._slow is not None:
            return ""
        try:
            shown, pending, count = self._redactor.piece(
                text, self.pending.pop(name, NOTHING), is_last=is_last
            )
        except SlowPatternError as error:  # it must not happen with each piece again
            self._slow = mark(f"{error} took too long, with all that follows")
            shown, pending, count = self._slow, NOTHING, 1
        if pending is not NOTHING:
            self.pending[name] = pending
        self.count += count
        return shown

    def taken_count(self) -> int:
        """Return how many secrets were replaced since the last call."""
        count, self.count = self.count, 0
        return count

    def rest(self) -> list[tuple[str, str]]:
        """Return, by the stream's name, what still waits: no more follows, or not soon."""
        waiting = [name for name, each in self.pending.items() if each.waits]
        return [(name, self._rest(name)) for name in waiting]

    def _rest(self, name: str) -> str:
        waits, count = self.pending[name], self.count
        shown = self.stream(name, "", is_last=True)
        if self.count == count:  # more may still make a secret of it
            self.pending[name] = waits._replace(shown=len(waits.text))
        return shown

    def text(self, text: str) -> str:
        """Return a text with its secrets replaced."""
        shown, count = self._redactor.text(text)
        self.count += count
        return shown

    def content(self, content: dict[str, Any]) -> dict[str, Any]:
        """Return the content of a kernel's message with its secrets replaced."""
        if self._slow is not None:
            return {key: _without_texts(value, self._slow) for key, value in content.items()}
        made = dict(content)
        for key, value in content.items():
            if key == "transient":  # the id of a display, which is not shown
                continue
            try:
                if key == "traceback":
                    made[key], count = self._redactor.lines(value)
                else:
                    made[key], count = self._redactor.value(value)
            except RecursionError:
                made[key], count = mark("nested too deeply"), 1
            self.count += count
        return made


def _without_texts(value: JSON, instead: str) -> JSON:
    if isinstance(value, dict):
        return {key: _without_texts(item, instead) for key, item in value.items()}
    if isinstance(value, list):
        return [instead] if value else []
    return instead if isinstance(value, str) else value


def mark(name: str) -> str:
    """Return what replaces a secret."""
    return f"[redacted: {name}]"


def marks_in(text: str) -> int:
    """Return how many marks a text has. A source with marks is not what ran."""
    return len(MARK.findall(text))


def may_be(source: str, recorded: str) -> bool:
    """Return whether a source may be what was recorded, as far as the record shows it."""
    first, *parts = MARK.split(recorded)
    if not parts or not source.startswith(first):
        return source == recorded
    at, last = len(first), parts.pop()
    for part in parts:
        at = source.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return source.endswith(last) and at + len(last) <= len(source)
