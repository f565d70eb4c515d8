"""Check the arguments, and read the files they name, before a command does anything."""

from __future__ import annotations

import math
import sys
from argparse import ArgumentTypeError, Namespace
from collections.abc import Sequence
from pathlib import Path


class UsageError(Exception):
    """The command line is wrong, or names something that cannot be used."""


class Declined(Exception):
    """The user was asked whether to go on, and has not said yes."""


def check_where(arguments: Namespace) -> None:
    """Refuse contradictory options for where code runs and where its cell goes.

    Raises
    ------
    UsageError
        Options contradict each other, or SOURCE is missing. The message names the option.
    """
    if arguments.source is None and arguments.cell is None:
        raise UsageError("SOURCE is missing; only with --cell it may be.")
    if arguments.stdin and arguments.source == "-" and not arguments.code:
        raise UsageError("--stdin: standard input is SOURCE already.")
    kernel_options = ("kernel_name", "cwd", "env", "isolated")
    where = (arguments.session, arguments.notebook)
    refused = (
        (arguments.session, (*kernel_options, "agent", "title"), "is for a new session"),
        (arguments.notebook, kernel_options[1:], "is not for a notebook"),
        (arguments.kernel, kernel_options, "is not for a kernel that runs already"),
        (
            where == (None, None),
            ("after", "before", "cell", "no_cell"),
            "needs --notebook, or the --session of one",
        ),
        (arguments.notebook is None, ("create",), "needs --notebook"),
    )
    for applies, options, why in refused:
        for name in options:
            if applies and getattr(arguments, name):
                raise UsageError(f"--{name.replace('_', '-')} {why}.")


def read_source(word: str, *, is_code: bool) -> str:
    """Return the source from standard input for ``-``, from the file `word`, or `word` itself.

    Raises
    ------
    UsageError
        The file does not exist, cannot be read, or is not source code.
    """
    if is_code:
        return word
    if word == "-":
        return _decoded(sys.stdin.buffer.read(), "standard input")
    path = Path(word)
    if _is_file(path):
        if path.suffix == ".ipynb":
            raise UsageError(
                f"{word} is a notebook, not source code. Run it with `jupyter execute`, or one of "
                "its cells with --notebook and --cell."
            )
        try:
            return _decoded(path.read_bytes(), word)
        except OSError as error:
            raise UsageError(f"{word} cannot be read: {error.strerror}.") from error
    if word.endswith((".py", ".ipynb")) and len(word.split()) == 1:
        raise UsageError(f"There is no file {word}. To run these characters as code, add --code.")
    return word


def read_env(pairs: Sequence[str]) -> dict[str, str]:
    """Return ``NAME=value`` pairs as a dict."""
    variables: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise UsageError(f"--env takes NAME=value, not {pair!r}.")
        variables[name] = value
    return variables


def image_folder(word: str | None) -> Path | None:
    """Return the folder for images, and create it if it does not exist."""
    if word is None:
        return None
    folder = Path(word)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"Images cannot be saved in {word}: {error.strerror}.") from error
    return folder


def known_id(word: str) -> str:
    """Return the id of a session or an execution that an argument says."""
    if not word.startswith(("s_", "x_")):
        raise ArgumentTypeError(f"an id begins with s_ (session) or x_ (execution): {word!r}")
    return word


def seconds(word: str) -> float:
    """Return the seconds that an argument says."""
    try:
        number = float(word)
    except ValueError:
        number = math.nan
    if not (0 < number < math.inf):
        raise ArgumentTypeError(f"{word!r} is not a number of seconds")
    return number


def duration(word: str) -> float:
    """Return the seconds of a duration such as 90m, 8h or 30d."""
    unit = {"m": 60, "h": 3600, "d": 86_400}.get(word[-1:])
    if unit is None or not word[:-1].isdecimal():
        raise ArgumentTypeError(f"not a number with m, h or d: {word!r}")
    return float(word[:-1]) * unit


def count(word: str) -> int:
    """Return the number, from 1 on, that an argument says."""
    try:
        number = int(word)
    except ValueError:
        number = 0
    if number < 1:
        raise ArgumentTypeError(f"{word!r} is not a number from 1 on")
    return number


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False  # too long for a file name, or contains a NUL: it is code


def _decoded(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{name} is not UTF-8 text (byte {error.start}).") from error
