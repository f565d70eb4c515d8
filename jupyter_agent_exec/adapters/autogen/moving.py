"""Files to and from the folder of a session's kernel."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from pathlib import Path

from ...client import AsyncSession
from ...errors import FileNotOwned


async def upload(session: AsyncSession, files: Sequence[Path | str], folder: Path) -> None:
    """Put files into the session's folder, under their own names, in place of what is there.

    Parameters
    ----------
    files
        Paths below `folder`, or absolute ones.

    Raises
    ------
    FileNotFoundError
        One is not there; nothing was uploaded.
    """
    for file in files:
        if not (folder / file).is_file():
            raise FileNotFoundError(f"{file} does not exist")
    for path in [folder / file for file in files]:
        try:
            await session.upload(path)
        except FileNotOwned:  # the program says what is to be there
            name = unicodedata.normalize("NFC", path.name)
            await session.upload(path, name, etag=await session.file_etag(name))


async def download(session: AsyncSession, files: Sequence[Path | str], folder: Path) -> list[str]:
    """Write files of the session's folder to the same paths below `folder`, and return these.

    Raises
    ------
    FileNotFoundError
        One is not there.
    """
    there: dict[str, set[str]] = {}
    paths: list[str] = []
    for name in [Path(file).as_posix() for file in files]:
        parent = name.rpartition("/")[0]
        if parent not in there:
            there[parent] = set(await names(session, parent))
        if name not in there[parent]:
            raise FileNotFoundError(f"{name} does not exist")
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        paths.append(str(await session.download(name, path)))
    return paths


async def names(session: AsyncSession, parent: str = "") -> list[str]:
    """Return the paths of the files in the session's folder, or in one below it."""
    return [each.path async for each in session.files(parent) if not each.is_folder]
