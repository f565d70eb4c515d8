"""Turns the results of code blocks into AutoGen's results, and transfers files."""

from __future__ import annotations

import asyncio
import json
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from ...client import Result, Session
from ...errors import FileNotOwned
from ...text.terminal import clean
from ..kernel_session import Life, life_of
from ..requirements import needed
from ..result_pieces import (
    DisplayedObject,
    RaisedException,
    Stream,
    changed_note,
    end_note,
    omitted_note,
    pieces,
    save_html,
    state_note,
)

with needed("autogen-ext[jupyter-executor]>=0.5,<0.8"):
    from autogen_ext.code_executors.jupyter import JupyterCodeResult

_SHOWN_AS_JSON: Final = ("application/json", "text/latex", "text/markdown")
"""MIME types that results include besides ``text/plain``. Others are binary or not for reading."""


class CodeTimeout(asyncio.TimeoutError):
    """Code ran longer than the executor's timeout. It was stopped; variables are kept.

    Parameters
    ----------
    partial
        The result so far, earlier blocks included. Its output is the message.
    """

    def __init__(self, partial: JupyterCodeResult) -> None:
        super().__init__(partial.output)
        self.partial = partial


def answer(
    results: Sequence[Result], folder: Path, *, own_restart: Life | None
) -> JupyterCodeResult:
    """Return the result of blocks, up to the first that failed.

    Parameters
    ----------
    results
        The result of each block, in order.
    folder
        Folder for images and HTML.
    own_restart
        The kernel's life after a restart by the caller. The result does not mention that restart.

    Raises
    ------
    CodeTimeout
        A block ran too long.
    """
    exit_code = 0
    outputs: list[str] = []
    files: list[Path] = []
    for result in results:
        expected = own_restart is not None and life_of(result) == own_restart
        notes = filter(None, [None if expected else state_note(result), changed_note(result)])
        outputs.append("\n".join([*notes, *_texts(result, folder, files)]))
        if not result.ok:
            exit_code = 1
            break
    told = JupyterCodeResult(exit_code=exit_code, output="\n".join(outputs), output_files=files)
    if exit_code and result.status == "timed_out":
        raise CodeTimeout(told)
    return told


def _texts(result: Result, folder: Path, files: list[Path]) -> Iterator[str]:
    """Yield the texts of an execution. Save other outputs, and add their paths to `files`."""
    for piece in pieces(result):
        match piece:
            case Stream():
                yield clean(piece.text)
            case RaisedException():
                yield piece.plain_traceback
            case DisplayedObject():
                yield from _shown(piece, folder, files)
    yield from filter(None, [end_note(result), omitted_note(result)])


def _shown(shown: DisplayedObject, folder: Path, files: list[Path]) -> Iterator[str]:
    if shown.text is not None:
        yield clean(shown.text)
    if shown.picture is not None:
        files.append(shown.picture.save(folder).absolute())
    if shown.html is not None:
        files.append(save_html(shown.html, folder).absolute())
    for mimetype in _SHOWN_AS_JSON:
        if mimetype in shown.data:
            yield json.dumps(shown.data[mimetype])


def upload(session: Session, files: Sequence[Path | str], folder: Path) -> None:
    """Upload files into the session's folder under their own names, and replace existing files.

    Parameters
    ----------
    files
        Paths below `folder`, or absolute ones.

    Raises
    ------
    FileNotFoundError
        A file is missing; nothing was uploaded.
    """
    for file in files:
        if not (folder / file).is_file():
            raise FileNotFoundError(f"{file} does not exist")
    for path in [folder / file for file in files]:
        try:
            session.upload(path)
        except FileNotOwned:  # the program may replace any file
            name = unicodedata.normalize("NFC", path.name)
            session.upload(path, name, etag=session.file_etag(name))


def download(session: Session, files: Sequence[Path | str], folder: Path) -> list[str]:
    """Download files of the session to the same paths below `folder`, and return those paths.

    Raises
    ------
    FileNotFoundError
        A file is missing.
    """
    there: dict[str, set[str]] = {}
    paths: list[str] = []
    for name in [Path(file).as_posix() for file in files]:
        parent = name.rpartition("/")[0]
        if parent not in there:
            there[parent] = set(file_names(session, parent))
        if name not in there[parent]:
            raise FileNotFoundError(f"{name} does not exist")
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        paths.append(str(session.download(name, path)))
    return paths


def file_names(session: Session, parent: str = "") -> list[str]:
    """Return the paths of the files in the session's folder, or in the folder `parent`."""
    return [each.path for each in session.files(parent) if not each.is_folder]
