"""Find letters that look like ASCII letters, and show text as it is. Pure.

`\u0440assword` begins with a Cyrillic letter, and Python reads `\uff45val` as `eval`. Text in one
script is not reported, such as a comment in Russian or a variable with one Greek letter as its
name.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Final

# Source: confusables.txt of Unicode's UTS 39: letters of living scripts that look like one ASCII
# letter. Letters that Python itself reads as ASCII letters need no table.
_TABLE: Final = (
    ("\u0251\u0261\u1d04\u1d0f\u1d1c\u1d20\u1d21\u1d22\ua731", "agcouvwzs"),  # Latin
    ("\u037f\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d", "JABEZHlKMN"),  # Greek
    ("\u039f\u03a1\u03a4\u03a5\u03a7\u03b1\u03b3\u03b9\u03bd\u03bf", "OPTYXayivo"),  # Greek
    ("\u03c1\u03c3\u03c5\u03d2\u03dc\u03f1\u03f2\u03f3\u03f9\u03fa", "pouYFpcjCM"),  # Greek
    ("\u1d26\u1fbe", "ri"),  # Greek
    ("\u0405\u0406\u0408\u0410\u0412\u0415\u041a\u041c\u041d\u041e", "SlJABEKMHO"),  # Cyrillic
    ("\u0420\u0421\u0422\u0423\u0425\u042c\u0430\u0433\u0435\u043e", "PCTYXbareo"),  # Cyrillic
    ("\u0440\u0441\u0443\u0445\u0455\u0456\u0458\u0461\u0474\u0475", "pcyxsijwVv"),  # Cyrillic
    ("\u04ae\u04af\u04bb\u04bd\u04c0\u04cf\u0501\u050c\u051b\u051c", "YyhelidGqW"),  # Cyrillic
    ("\u051d\ua647", "wi"),  # Cyrillic
    ("\u054d\u054f\u0555\u0561\u0563\u0566\u0570\u0578\u057c\u057d", "USOwqqhnnu"),  # Armenian
    ("\u0581\u0584\u0585", "gfo"),  # Armenian
    ("\u10e7\u10ff", "yo"),  # Georgian
    ("\u13a0\u13a1\u13a2\u13a5\u13a9\u13aa\u13ab\u13ac\u13b3\u13b7", "DRTiYAJEWM"),  # Cherokee
    ("\u13bb\u13bd\u13c0\u13c2\u13c3\u13cf\u13d2\u13d4\u13d5\u13d9", "HYGhZbRWSV"),  # Cherokee
    ("\u13da\u13de\u13df\u13e2\u13e6\u13e7\u13f3\u13f4\uab75\uab81", "SLCPKdGBir"),  # Cherokee
    ("\uab83\uab93\uaba9\uabaa\uabaf", "wzvsc"),  # Cherokee
    ("\u2c85\u2c8e\u2c92\u2c94\u2c98\u2c9a\u2c9e\u2c9f\u2ca2\u2ca3", "rHlKMNOoPp"),  # Coptic
    ("\u2ca4\u2ca5\u2ca6\u2ca8\u2cac\u2cd0", "CcTYXL"),  # Coptic
    ("\ua4d0\ua4d1\ua4d2\ua4d3\ua4d4\ua4d6\ua4d7\ua4d9\ua4da\ua4dc", "BPdDTGKJCZ"),  # Lisu
    ("\ua4dd\ua4df\ua4e0\ua4e1\ua4e2\ua4e3\ua4e6\ua4e7\ua4ea\ua4eb", "FMNLSRVHWX"),  # Lisu
    ("\ua4ec\ua4ee\ua4f0\ua4f2\ua4f3\ua4f4", "YAElOU"),  # Lisu
)

LOOKALIKES: Final = {
    letter: like for letters, likes in _TABLE for letter, like in zip(letters, likes, strict=True)
}
"""The ASCII letter that each letter looks like."""

_TURNING: Final = ("R", "AL", "AN")
"""Bidirectional classes of right-to-left letters, which reorder the text around them."""

_BLANK: Final = "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0" + "".join(
    map(chr, [*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)])
)
"""Invisible letters and marks."""

_RUN: Final = re.compile(r"[\w\x80-\U0010ffff]+")
_PART: Final = re.compile(r"[^_]+")
_ASCII_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ASCII_LETTER: Final = re.compile(r"[A-Za-z]")


def lookalikes(text: str) -> dict[int, str]:
    """Return the ASCII letters that letters of a text look like, by position.

    Two kinds of letters are reported. First, letters that Python reads as ASCII letters, in a word
    that Python reads as an ASCII name or that contains ASCII letters. Second, letters that look
    like ASCII letters, in a part of a word between underscores that also contains ASCII letters, or
    that consists only of such letters in the name of a called function.
    """
    if text.isascii():
        return {}
    found: dict[int, str] = {}
    for start, word in _words(text):
        if word.isascii():
            continue
        if _ASCII_NAME.fullmatch(_read(word)) or _ASCII_LETTER.search(word):
            found |= {
                start + at: _read(letter)
                for at, letter in enumerate(word)
                if not letter.isascii() and _ASCII_NAME.fullmatch("a" + _read(letter))
            }
        is_called = text[start + len(word) :].startswith("(")
        for match in _PART.finditer(word):
            part = match.group()
            is_whole = is_called and len(part) > 1 and all(each in LOOKALIKES for each in part)
            if is_whole or _ASCII_LETTER.search(part):
                found |= {
                    start + match.start() + at: LOOKALIKES[letter]
                    for at, letter in enumerate(part)
                    if letter in LOOKALIKES
                }
    return found


def lookalike_words(*texts: str | None) -> dict[str, dict[str, str]]:
    """Return the words of texts with such letters: for each, its letters and what they look like.

    A page marks these words wherever it shows them, also in a part or a comparison of the texts.
    """
    found: dict[str, dict[str, str]] = {}
    for text in filter(None, texts):
        alike = lookalikes(text)
        for start, word in _words(text) if alike else ():
            letters = {letter: alike[at] for at, letter in enumerate(word, start) if at in alike}
            if letters:
                found.setdefault(word, {}).update(letters)
    return found


def exact(text: str, *, isolated: bool = False) -> str:
    """Return `text` with visible escapes for characters that hide, reorder or imitate text.

    An escape is the character's number. Spaces, tabs and line feeds stay. No character is removed.

    Parameters
    ----------
    isolated
        Whether the text stands where right-to-left letters reorder no other text, as in HTML's
        `<bdi>`. They stay then.
    """
    alike = lookalikes(text)
    return "".join(
        char if _is_seen(char, isolated) and at not in alike else f"<U+{ord(char):04X}>"
        for at, char in enumerate(text)
    )


def _is_seen(char: str, isolated: bool) -> bool:
    if char.isascii():
        return char.isprintable() or char in "\t\n"
    hidden = unicodedata.category(char)[0] in "CZ" or char in _BLANK
    return not hidden and (isolated or unicodedata.bidirectional(char) not in _TURNING)


def _words(text: str) -> Iterator[tuple[int, str]]:
    """Yield the words of a text that can be names, with their start positions."""
    for run in _RUN.finditer(text):
        start = run.start()
        for at, letter in enumerate(run.group(), run.start()):
            if not f"a{letter}".isidentifier():  # such as a raised number
                if at > start:
                    yield start, text[start:at]
                start = at + 1
        if run.end() > start:
            yield start, text[start : run.end()]


def _read(name: str) -> str:
    """Return the name that Python reads, in NFKC form."""
    return unicodedata.normalize("NFKC", name)
