"""Compare the outputs of two runs of the same source.

What differs from run to run without a meaning does not count: memory addresses, the time of the
run, how long something took, folders of absolute paths, ids, the last digits of floats, and the
order in which standard output and standard error came. Times far from the run are data.
"""

from __future__ import annotations

import difflib
import io
import json
import math
import re
from base64 import b64decode
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from typing import Any, Final, NamedTuple

from ..errors import InvalidRequest
from ..models import RerunRules
from ..sessions.text_ranges import substitute
from ..terminal import clean
from ..types import Output

MAX_DIFF_CHARACTERS: Final = 10_000
"""Maximum number of characters of a diff."""

MAX_LINES: Final = 2000
"""Maximum number of lines to make a diff of, from the first that differs."""

_CONTEXT: Final = 2
"""Lines that a diff shows around those that differ."""

_HUNK: Final = re.compile(r"^@@ -(\d+)(.*?) \+(\d+)", re.M)
"""Where a part of a unified diff is."""

_PLACEHOLDERS: Final = (
    (re.compile(r"\b0x[0-9a-fA-F]{6,}\b"), "<address>"),
    (
        re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", re.I),
        "<id>",
    ),
    (re.compile(r"\bT_[0-9a-f]{5}(?=_|\b)"), "T_<id>"),  # of a pandas Styler
    (re.compile(r"(?<![\w.:/<])/(?:[\w.+@~-]+/)+"), "<folder>/"),
)
"""What takes the place of text that differs from run to run."""

_SVG: Final = (
    (re.compile(r"<metadata>.*?</metadata>", re.S), ""),
    (re.compile(r'(?<=\s)id="[^"]*"'), 'id="<id>"'),
    (re.compile(r'(?<=href=")#[^"]*|(?<=url\()#[^)]*'), "#<id>"),
)
"""The same for SVG images, whose ids are made anew each time."""

_TIMED: Final = re.compile(
    r"\b(?:wall time|cpu times|per loop|elapsed|took|finished in|completed in|duration)\b|it/s\b",
    re.I,
)
"""A line that says how long something took."""

_DURATION: Final = re.compile(
    r"(?<![\w.])\d[\d:.]*(?:e[+-]\d+)? ?(?:ns|µs|μs|us|ms|s|secs?|seconds?|min|it/s)?\b"
)
"""A duration in such a line."""

_TOKEN: Final = re.compile(
    r"(?P<time>\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)"
    r"|(?P<ctime>\b[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}\b)"
    r"|(?P<number>(?<![\w.])[+-]?(?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][+-]?\d+)?(?!\w))"
)
"""What may differ within a line: times, and numbers that are not integers."""

_NOW: Final = timedelta(days=1)
"""A printed time that is no further from its run than this is the time of the run."""

_MODEL_ID: Final = "model_id"
"""Id of a widget's model, which is made anew each time."""


class Difference(NamedTuple):
    """One way in which two runs differ."""

    what: str
    """A sentence."""
    diff: str = ""
    """The lines that differ, in the form of a unified diff."""


class Comparison(NamedTuple):
    """How the outputs of two runs compare."""

    differences: list[Difference]
    unclear: list[str]
    """Sentences about outputs that cannot be compared."""


def compare(
    before: Sequence[Output], after: Sequence[Output], rules: RerunRules, now: datetime
) -> Comparison:
    """Compare outputs as recorded with outputs now.

    Parameters
    ----------
    before, after
        nbformat outputs.
    rules
        What does not count as a difference.
    now
        When the second run was.
    """
    try:
        return _Comparing(rules, now).compare(before, after)
    except InvalidRequest as error:  # of the rules' patterns
        return Comparison([], [f"{error.detail['field']}: {error.message}"])


class _Comparing:
    """Collects the differences of two lists of outputs."""

    def __init__(self, rules: RerunRules, now: datetime) -> None:
        self._rules = rules
        self._now = now
        self._differences: list[Difference] = []
        self._unclear: list[str] = []

    def compare(self, before: Sequence[Output], after: Sequence[Output]) -> Comparison:
        """Compare what was printed, then the other outputs one by one, then the error."""
        for name in ("stdout", "stderr"):
            self._text(
                f"What the code printed to {name}", _stream(before, name), _stream(after, name)
            )
        shown, now = _displayed(before), _displayed(after)
        if len(shown) != len(now):
            self._add(f"There were {len(shown)} results and displays; now there are {len(now)}.")
        for number, (one, other) in enumerate(zip(shown, now, strict=False), 1):
            self._data(f"Output {number}", one.get("data") or {}, other.get("data") or {})
        self._errors(_error(before), _error(after))
        return Comparison(self._differences, self._unclear)

    def _add(self, what: str, diff: str = "") -> None:
        self._differences.append(Difference(what, diff))

    def _errors(self, before: Output | None, after: Output | None) -> None:
        if before is None or after is None:
            if after is not None:
                self._add(f"It raised {_name(after)} now.")
            elif before is not None:
                self._add(f"It raised {_name(before)} before, and nothing now.")
            return
        if before.get("ename") != after.get("ename"):
            self._add(f"It raised {_name(before)} before, and {_name(after)} now.")
            return
        self._text("The error's message", str(before.get("evalue")), str(after.get("evalue")))

    def _data(self, where: str, before: dict[str, Any], after: dict[str, Any]) -> None:
        """Compare two mimebundles."""
        for mimetype in sorted(before.keys() | after.keys()):
            if mimetype not in after:
                self._add(f"{where} has no {mimetype} now.")
            elif mimetype not in before:
                self._add(f"{where} had no {mimetype} before.")
            else:
                self._value(f"{where} ({mimetype})", mimetype, before[mimetype], after[mimetype])

    def _value(self, where: str, mimetype: str, before: Any, after: Any) -> None:
        if mimetype == "image/svg+xml":
            self._text(where, _joined(before), _joined(after), more=_SVG)
        elif mimetype.startswith("image/"):
            self._image(where, _joined(before), _joined(after))
        elif (
            isinstance(before, (str, list))
            and isinstance(after, (str, list))
            and not _is_json(mimetype)
        ):
            self._text(where, _joined(before), _joined(after))
        else:
            self._text(where, _as_json(before), _as_json(after))

    def _image(self, where: str, before: str, after: str) -> None:
        if before == after:
            return
        if find_spec("PIL") is None:
            self._unclear.append(
                f"{where} has other bytes; install pillow to compare what it shows."
            )
            return
        try:
            distance = _distance(before, after)
        except (OSError, ValueError) as error:
            self._add(f"{where} cannot be read as an image: {error}.")
            return
        if distance is None:
            self._add(f"{where} has another size.")
        elif distance > self._rules.image_tolerance:
            self._add(f"{where} looks different: its pixels differ by {100 * distance:.2g} %.")

    def _text(
        self, where: str, before: str, after: str, more: Iterable[tuple[re.Pattern[str], str]] = ()
    ) -> None:
        if before == after:
            return
        texts = [clean(before), clean(after)]
        if self._rules.ignore:
            texts = substitute(texts, self._rules.ignore, "<ignored>", "rules.ignore")
        one, other = (self._lines(text, more) for text in texts)
        start = self._alike(one, other)
        if start == len(one) == len(other):
            return
        end = self._alike(one[:start:-1], other[:start:-1])
        self._add(
            f"{where} differs.",
            self._diff(one, other, max(0, start - _CONTEXT), max(0, end - _CONTEXT)),
        )

    def _alike(self, one: list[str], other: list[str]) -> int:
        """Return how many lines are the same before the first that is not."""
        pairs = enumerate(zip(one, other, strict=False))
        shorter = min(len(one), len(other))
        return next((at for at, pair in pairs if not self._same_line(*pair)), shorter)

    def _diff(self, one: list[str], other: list[str], start: int, end: int) -> str:
        """Return a diff of lines, without some at their start and their end that are the same."""
        one, other = one[start : len(one) - end], other[start : len(other) - end]
        is_cut = max(len(one), len(other)) > MAX_LINES
        one, other = one[:MAX_LINES], other[:MAX_LINES]
        # A line that is the same is shown as before, so that it is no part of the diff.
        matched = difflib.SequenceMatcher(None, one, other, autojunk=False)
        shown = list(other)
        for op, first, end, to_first, to_end in matched.get_opcodes():
            if op == "replace" and end - first == to_end - to_first:
                for left, right in zip(range(first, end), range(to_first, to_end), strict=True):
                    if self._same_line(one[left], other[right]):
                        shown[right] = one[left]
        lines = difflib.unified_diff(one, shown, "before", "now", lineterm="", n=_CONTEXT)
        diff = _HUNK.sub(
            lambda at: f"@@ -{int(at[1]) + start}{at[2]} +{int(at[3]) + start}", "\n".join(lines)
        )
        if is_cut or len(diff) > MAX_DIFF_CHARACTERS:
            diff = f"{diff[:MAX_DIFF_CHARACTERS]}\n… (and more)"
        return diff

    def _lines(self, text: str, more: Iterable[tuple[re.Pattern[str], str]]) -> list[str]:
        """Return the lines of a text, with placeholders for what does not count."""
        for expression, placeholder in (*more, *_PLACEHOLDERS):
            text = expression.sub(placeholder, text)
        return [
            _DURATION.sub("<duration>", line) if _TIMED.search(line) else line.rstrip()
            for line in text.rstrip().split("\n")
        ]

    def _same_line(self, one: str, other: str) -> bool:
        """Return whether two lines are equal, but for the last digits and the time of the run."""
        if one == other:
            return True
        if _skeleton(one) != _skeleton(other):
            return False
        return all(map(self._same_token, _TOKEN.finditer(one), _TOKEN.finditer(other)))

    def _same_token(self, one: re.Match[str], other: re.Match[str]) -> bool:
        if one[0] == other[0]:
            return True
        if one.lastgroup == "number":
            tolerance = self._rules.float_tolerance
            return math.isclose(
                float(one[0]), float(other[0]), rel_tol=tolerance, abs_tol=tolerance**2
            )
        return abs(_moment(other) - self._now) <= _NOW


def _skeleton(line: str) -> str:
    """Return a line without its tokens. Spaces count as one: columns are as wide as numbers."""
    return " ".join(_TOKEN.sub(lambda token: f"<{token.lastgroup}>", line).split())


def _moment(token: re.Match[str]) -> datetime:
    """Return a printed time; one without a time zone counts as UTC."""
    try:
        if token.lastgroup == "ctime":
            moment = datetime.strptime(token[0], "%a %b %d %H:%M:%S %Y").replace(tzinfo=UTC)
        else:
            moment = datetime.fromisoformat(token[0])
    except ValueError:  # such as a 13th month
        return datetime.min.replace(tzinfo=UTC)
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _stream(outputs: Sequence[Output], name: str) -> str:
    return "".join(
        _joined(output.get("text"))
        for output in outputs
        if output["output_type"] == "stream" and output.get("name") == name
    )


def _displayed(outputs: Sequence[Output]) -> list[Output]:
    return [each for each in outputs if each["output_type"] in ("display_data", "execute_result")]


def _error(outputs: Sequence[Output]) -> Output | None:
    return next((each for each in outputs if each["output_type"] == "error"), None)


def _name(error: Output) -> str:
    return str(error.get("ename") or "an error")


def _joined(text: Any) -> str:
    return "".join(map(str, text)) if isinstance(text, list) else str(text or "")


def _is_json(mimetype: str) -> bool:
    return mimetype.endswith("json")


def _as_json(value: Any) -> str:
    return json.dumps(_without_model_ids(value), indent=1, sort_keys=True, ensure_ascii=False)


def _without_model_ids(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_model_ids(value[key]) for key in value if key != _MODEL_ID}
    return value


def _distance(before: str, after: str) -> float | None:
    """Return how much two images differ, from 0 to 1; None if their sizes differ.

    Raises
    ------
    OSError, ValueError
        One is not an image, or too large to look at.
    """
    from PIL import Image, ImageChops, ImageStat

    try:
        with (
            Image.open(io.BytesIO(b64decode(before))) as one,
            Image.open(io.BytesIO(b64decode(after))) as other,
        ):
            if one.size != other.size:
                return None
            difference = ImageChops.difference(one.convert("RGB"), other.convert("RGB"))
            return max(ImageStat.Stat(difference).rms) / 255
    except (SyntaxError, Image.DecompressionBombError) as error:  # of broken files
        raise ValueError(str(error)) from error
