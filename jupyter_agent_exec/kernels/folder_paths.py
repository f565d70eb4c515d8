"""Which paths in a kernel's folder agents may use, and which are hidden. Pure.

A path has one spelling: names, separated by slashes. A name is refused if a program behind the
server could read another path in it: a proxy that decodes it again, a file system that normalises
it, or one that drops characters at its end.
"""

from __future__ import annotations

import mimetypes
import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Final
from urllib.parse import unquote, unquote_to_bytes

from ..errors import InvalidRequest

MOST_NAME_BYTES: Final = 255
MOST_READINGS: Final = 4
"""Maximum number of times to decode a name, to find how other programs may read it."""

MOST_PARTS: Final = 64
"""Maximum number of names in a path."""

_DATA: Final = re.compile(
    r"[^.]\.(?:txt|log|csv|tsv|json|jsonl|ndjson|geojson|parquet|feather|arrow|orc|avro|xlsx|ods|"
    r"h5|hdf5|nc|npy|npz|fits|sqlite|db|dta|gpkg|shp|shx|dbf|"
    r"png|jpg|jpeg|gif|webp|bmp|tif|tiff|pdf|wav|mp3|flac|ogg|mp4|webm)"
    r"(?:\.(?:gz|bz2|xz|zst))?\Z",
    re.IGNORECASE | re.ASCII,
)
"""Suffixes of data files and of compressed files."""

_CONFIGURATION: Final = re.compile(
    r"conf|requirements|constraints|packages?\b|package-|kernel|settings|overrides|options|tasks|"
    r"launch|extension|plugin|workspace|composer|manifest|hooks|environment|cmakelists|install\.json|"
    r"entry_points|dist-info|egg-info|nodemon|deno\b",
    re.IGNORECASE | re.ASCII,
)
"""Matches names of files and folders that configure what programs run, whatever their suffix:
`jupyter_server_config.json`, `requirements.txt`, `kernel.json`, `CMakeLists.txt`, …"""

_NO_TEXT: Final = frozenset({"Cc", "Cs", "Zl", "Zp"})
"""Unicode categories that no name may contain: controls, surrogates, line and paragraph ends."""


def parts_of(path: str, field: str = "path") -> tuple[str, ...]:
    """Return the parts of a path.

    Raises
    ------
    InvalidRequest
        The path does not have this one spelling.
    """
    parts = tuple(path.split("/"))
    if len(parts) > MOST_PARTS:
        raise InvalidRequest(f"{field}: over {MOST_PARTS} folders deep.", field=field)
    for name in parts:
        what = _wrong_with(name)
        if what is not None:
            raise InvalidRequest(
                f"{field}: {path[:200]!r} {what}. Write names divided by '/', from the session's "
                "folder on.",
                field=field,
            )
    return parts


def decoded(raw: str) -> str:
    """Return the path in an address, where each name is encoded separately.

    Raises
    ------
    InvalidRequest
        A name holds a slash, or is not UTF-8.
    """
    try:
        names = [unquote_to_bytes(name).decode() for name in raw.split("/")]
    except UnicodeDecodeError:
        raise InvalidRequest("path: not UTF-8.", field="path") from None
    if any("/" in name for name in names):
        raise InvalidRequest("path: a slash within a name; write it as it is.", field="path")
    return "/".join(names)


def check_new(parts: Sequence[str]) -> None:
    """Raise InvalidRequest if a new name is not in Unicode's composed form (NFC)."""
    if not all(unicodedata.is_normalized("NFC", name) for name in parts):
        raise InvalidRequest("path: its characters are not composed (NFC).", field="path")


def is_reached(name: str) -> bool:
    """Return whether agents may see a file or a folder with this name."""
    return _wrong_with(name) is None and not is_hidden([name])


def is_hidden(parts: Sequence[str]) -> bool:
    """Return whether any of a path's names begins with a dot, in any reading."""
    return any(reading.startswith(".") for name in parts for reading in _readings(name))


def is_notebook(name: str) -> bool:
    """Return whether a name is that of a notebook, in any reading."""
    return any(reading.lower().endswith(".ipynb") for reading in _readings(name))


def is_data(parts: Sequence[str]) -> bool:
    """Return whether a file can only hold data, by its path. Any other file may become code.

    Code is any file that some program may run: modules, scripts, libraries, build files, files
    without a suffix, pickles, archives, pages, and text that can be a notebook (Markdown).
    """
    suffixed = all(_DATA.search(reading) for reading in _readings(parts[-1]))
    return suffixed and not any(
        _CONFIGURATION.search(reading) for name in parts for reading in _readings(name)
    )


def mimetype_of(path: str) -> str | None:
    """Return a file's media type by its name; None if unknown, or if it is compressed."""
    mimetype, encoding = mimetypes.guess_type(path)
    return None if encoding is not None else mimetype


def _wrong_with(name: str) -> str | None:
    """Return what is wrong with a name; None if it is valid."""
    try:
        if len(name.encode()) > MOST_NAME_BYTES:
            return f"has a name of over {MOST_NAME_BYTES} bytes"
    except UnicodeEncodeError:
        return "is not text"
    for times, reading in enumerate(_readings(name)):
        if times > MOST_READINGS:
            return "is encoded more often than anybody reads it"
        if reading in ("", ".", ".."):
            return "has a name that is empty, '.' or '..'"
        if "/" in reading or "\\" in reading:
            return "has a slash or a backslash within a name"
        if any(unicodedata.category(character) in _NO_TEXT for character in reading):
            return "has a control character"
        if reading.endswith((" ", ".")):
            return "has a name that ends with a dot or a space"
    return None


def _readings(name: str) -> Iterator[str]:
    """Yield a name, and the names that other programs may read it as."""
    while True:
        yield name
        told = unicodedata.normalize("NFKC", name)
        seen = "".join(each for each in told if unicodedata.category(each) != "Cf")
        other = unquote(seen)
        if other == name:
            return
        name = other
