"""Replaces secrets in texts by a mark that names them, such as ``[redacted: agent token]``.

A `Redactor` has the rules. A `Redaction` applies them to one execution: it counts, and finds
secrets that come in pieces. Agent tokens are always replaced, the rest is configured.
"""

from __future__ import annotations

import html
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import quote

import msgspec
import regex
from traitlets import Bool, Bunch, Dict, HasTraits, List, TraitError, Unicode, validate

from .types import JSON

S = TypeVar("S", bound=msgspec.Struct)

PATTERN_SECONDS: Final = 0.5
"""Seconds of the processor that one pattern gets for one text. What takes longer is replaced."""

MOST_HELD: Final = 16_384
"""Characters. A longer beginning of a match is replaced without its end."""

SHORTEST_VALUE: Final = 6

SHORTEST_CUT: Final = 4
"""Characters. What is left of a secret is replaced if it has as many."""

_BINARY: Final = re.compile(r"(image/(?!svg)|audio/|video/|application/pdf)")
_MARK: Final = re.compile(r"\[redacted: [^\]\n]{1,100}\]")


class Rule(NamedTuple):
    """A kind of secret."""

    name: str
    pattern: regex.Pattern[str]
    public: int = 0
    """How many characters at its beginning are no secret. They are not held back."""


OWN_TOKENS_BEGIN: Final = "j"
OWN_TOKENS: Final = Rule(
    "agent token", regex.compile(r"jae[xr]_t_[0-9A-Z]{26}_[0-9a-f]{64}"), public=len("jaex_t_")
)

CREDENTIALS: Final[Mapping[str, str]] = {
    "AWS access key": r"(?:AKIA|ASIA)[0-9A-Z]{16}",
    "AWS secret key": r"aws_secret_access_key['\"]?\s{0,9}[=:]\s{0,9}['\"]?[\w/+]{40}",
    "GitHub token": r"gh[opsur]_\w{36,255}|github_pat_\w{22,255}",
    "GitLab token": r"glpat-[\w-]{20,200}",
    "Google API key": r"AIza[\w-]{35}",
    "Hugging Face token": r"hf_[A-Za-z0-9]{30,100}",
    "JSON web token": r"eyJ[\w-]{10,4000}\.eyJ[\w-]{10,8000}\.[\w-]{20,2000}",
    "npm token": r"npm_[A-Za-z0-9]{36}",
    "password in an address": r"://[^\s:@/'\"]{1,200}:[^\s:@/'\"]{1,200}@",
    "private key": r"-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----[^-]{1,12000}-----END "
    r"[A-Z ]{0,20}PRIVATE KEY-----",
    "PyPI token": r"pypi-[\w-]{50,300}",
    "secret API key": r"sk-[\w-]{20,300}",
    "Slack token": r"xox[abeoprs]-[\w-]{10,250}",
    "Stripe key": r"[rs]k_(?:live|test)_\w{16,200}",
}
"""Common credentials that can be told by their form."""


class SlowPatternError(Exception):
    """A pattern took too long; its name."""


class Pending(NamedTuple):
    """The end of a text that may begin a secret."""

    text: str = ""
    shown: int = 0
    """How many of its characters were shown, because they are no secret by themselves."""


NOTHING: Final = Pending()


class Redactor:
    """Replaces what matches its rules, and agent tokens. Thread-safe."""

    def __init__(self, rules: Sequence[Rule] = ()) -> None:
        self._rules = (OWN_TOKENS, *rules)
        self._is_configured = bool(rules)
        names = "|".join(regex.escape(rule.name) for rule in self._rules)
        self._marks = Rule("", regex.compile(rf"\[redacted: (?:{names})\]"))

    def text(self, text: str) -> tuple[str, int]:
        """Return a text, and how many secrets were replaced in it. JSON stays JSON."""
        try:
            if text.endswith("…") and (cut := self._cut(text)) is not None:
                return cut
            shown, _, count = self.piece(text, is_last=True)
            may_hide = self._is_configured and "\\" in text
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
        """Return a value with its texts redacted, and the count. Images stay as they are."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            items = [self.value(item) for item in value]
            count = sum(each for _, each in items)
            return [item for item, _ in items] if count else value, count
        if isinstance(value, dict):
            made, count = {}, 0
            for key, item in value.items():
                shown, in_key = self.text(key)
                is_binary = isinstance(item, str) and _BINARY.match(key)
                made[shown], in_item = (item, 0) if is_binary else self.value(item)
                count += in_key + in_item
            return made if count else value, count
        return value, 0

    def _cut(self, text: str) -> tuple[str, int] | None:
        """Return a text that the kernel cut within a secret; None if it did not."""
        shown, waits, count = self.piece(text[:-1], is_last=False)
        if len(waits.text) - waits.shown < SHORTEST_CUT:
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
        text, shown = before.text + text, before.shown
        if not (self._is_configured or before.text or OWN_TOKENS_BEGIN in text):
            return text, NOTHING, 0
        context, found = len(text), []
        for rule in self._rules:
            for start, end in _matches(rule, text, is_last=is_last):
                if not is_last and end == len(text) and end - start <= rule.public:
                    context = min(context, start)
                else:
                    found.append((start, end, rule.name))
        if found:  # what was replaced before stays as it is
            marks = list(_matches(self._marks, text, is_last=True))
            found = [
                (start, end, name)
                for start, end, name in found
                if not any(start < last and first < end for first, last in marks)
            ]
        spans = list(_merged(found))
        held = len(text)
        if not is_last and spans and spans[-1][1] == held > spans[-1][0] >= held - MOST_HELD:
            held = spans.pop()[0]
        pieces, at = [], shown
        for start, end, name in spans:
            if end > shown:
                pieces += [text[at:start], mark(name)]
                at = end
        pieces.append(text[at:held])
        kept = len(text) if is_last else min(context, held)
        return "".join(pieces), Pending(text[kept:], max(held, shown) - kept), len(spans)


def _matches(rule: Rule, text: str, *, is_last: bool) -> Iterator[tuple[int, int]]:
    """Yield where a rule matches; unless the text is the last, also where a match may begin."""
    try:
        for match in rule.pattern.finditer(text, partial=not is_last, timeout=PATTERN_SECONDS):
            if match.end() > match.start():
                yield match.span()
    except TimeoutError:
        raise SlowPatternError(rule.name) from None


def _merged(found: Sequence[tuple[int, int, str]]) -> Iterator[tuple[int, int, str]]:
    """Yield spans in order, those that overlap as one with the first one's name."""
    last: tuple[int, int, str] | None = None
    for start, end, name in sorted(found):
        if last is not None and start < last[1]:
            last = (last[0], max(last[1], end), last[2])
        else:
            if last is not None:
                yield last
            last = (start, end, name)
    if last is not None:
        yield last


class Redaction:
    """The redaction of one execution's outputs, which come in pieces.

    Attributes
    ----------
    count
        How many secrets were replaced.
    """

    def __init__(self, redactor: Redactor) -> None:
        self.count = 0
        self._redactor = redactor
        self._pending: dict[str, Pending] = {}
        self._slow: str | None = None

    def stream(self, name: str, text: str, *, is_last: bool = False) -> str:
        """Return what to show of a stream's next piece. A secret's beginning waits for more."""
        if self._slow is not None:
            return ""
        try:
            shown, pending, count = self._redactor.piece(
                text, self._pending.pop(name, NOTHING), is_last=is_last
            )
        except SlowPatternError as error:  # it must not happen with each piece again
            self._slow = mark(f"{error} took too long, with all that follows")
            shown, pending, count = self._slow, NOTHING, 1
        if pending.text:
            self._pending[name] = pending
        self.count += count
        return shown

    def rest(self) -> list[tuple[str, str]]:
        """Return, by the stream's name, what still waits: no more follows, or not soon."""
        return [(name, self.stream(name, "", is_last=True)) for name in list(self._pending)]

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
    return len(_MARK.findall(text))


def may_be(source: str, recorded: str) -> bool:
    """Return whether a source may be what was recorded, as far as the record shows it."""
    first, *parts = _MARK.split(recorded)
    if not parts or not source.startswith(first):
        return source == recorded
    at, last = len(first), parts.pop()
    for part in parts:
        at = source.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return source.endswith(last) and at + len(last) <= len(source)


# -- configuration ---------------------------------------------------------------------------------


class RedactionTraits(HasTraits):
    """What is replaced before it is recorded, answered or shown."""

    redact_env = List(
        Unicode(),
        config=True,
        help="""Names of environment variables. Their values, as they are when the server starts,
        are replaced by `[redacted: NAME]` in what is recorded, answered and shown of agents' code
        and its outputs. Agent tokens are always replaced. Default: none.""",
    )
    redact_patterns = Dict(
        Unicode(),
        config=True,
        help="""Regular expressions of your own by name, such as
        `{"customer number": r"KD-\\d{8}"}`. What matches is replaced by `[redacted: NAME]`, like
        the values of `redact_env`. Each repeat needs a bound, such as `{1,200}`, and none may be
        within another. Default: none.""",
    )
    redact_credentials = Bool(
        False,
        config=True,
        help="""Whether common credentials are replaced too, as far as their form tells them: keys
        of AWS, Google and Stripe, tokens of GitHub, GitLab, Hugging Face, npm, PyPI and Slack, keys
        that begin with `sk-`, JSON web tokens, private keys, passwords in addresses.""",
    )

    @validate("redact_env")
    def _check_redact_env(self, proposal: Bunch) -> list[str]:
        for name in proposal.value:
            if 0 < len(os.environ.get(name, "")) < SHORTEST_VALUE:
                raise TraitError(
                    f"redact_env: the value of {name} has less than {SHORTEST_VALUE} characters; "
                    "other texts would contain it too."
                )
        return list(proposal.value)

    @validate("redact_patterns")
    def _check_redact_patterns(self, proposal: Bunch) -> dict[str, str]:
        for name, pattern in proposal.value.items():
            if (why := _refusal(pattern)) is not None:
                raise TraitError(f"redact_patterns: {name!r} {why}")
            if not _MARK.fullmatch(mark(name)):
                raise TraitError(f"redact_patterns: {name!r} cannot be a name: no ']', one line.")
        return dict(proposal.value)

    def redactor(self) -> Redactor:
        """Return what replaces secrets, by the configuration."""
        rules = [
            Rule(name, _value_pattern(value))
            for name in self.redact_env
            if (value := os.environ.get(name))
        ]
        rules += [Rule(name, regex.compile(each)) for name, each in self.redact_patterns.items()]
        if self.redact_credentials:
            rules += [
                Rule(name, regex.compile(each), public=3) for name, each in CREDENTIALS.items()
            ]
        return Redactor(rules)


def _value_pattern(value: str) -> regex.Pattern[str]:
    """Return a pattern for a value: as it is, and as JSON, Python, HTML and addresses write it."""
    forms = {value, repr(value)[1:-1], html.escape(value), html.escape(value, quote=False)}
    forms |= {quote(value, safe=""), json.dumps(value)[1:-1]}
    forms.add(json.dumps(value, ensure_ascii=False)[1:-1])
    return regex.compile("|".join(map(regex.escape, sorted(forms, key=len, reverse=True))))


_ATOM: Final = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_GROUP: Final = re.compile(r"\((?:\?[^:()]*:|\?P<\w+>|\?<?[=!])?([^()]*)\)(\{?)")


def _refusal(pattern: str) -> str | None:
    """Return why a pattern of the operator's is refused; None if it is not."""
    try:
        compiled = regex.compile(pattern)
    except (regex.error, RecursionError) as error:
        return f"is not a regular expression: {error}."
    if compiled.search("") is not None:
        return "matches nothing at all, which is everywhere."
    plain = _ATOM.sub("x", pattern)
    if re.search(r"[*+]|\{\d*,\}", plain):
        return "has a repeat without a bound; write {0,200} for * and {1,200} for +."
    while (group := _GROUP.search(plain)) is not None:
        inner, repeat = group[1], group[2]
        if repeat and "{" in inner:
            return "has a repeat within a repeat, which may take for ever; write it without."
        kept = "x{1}" if "{" in inner and not repeat else "x"
        plain = plain[: group.start()] + kept + repeat + plain[group.end() :]
    return None
