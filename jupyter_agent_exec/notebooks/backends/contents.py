"""Reaches a notebook that is not open, through the server's contents manager.

A file is read, changed and saved. Its hash is checked right before the save. If someone else has
saved the file meanwhile, everything starts again.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
from collections.abc import Callable, Sequence, Set
from datetime import datetime
from http import HTTPStatus
from typing import Any, Final, TypeAlias
from weakref import WeakValueDictionary

import nbformat
from jupyter_core.utils import ensure_async
from tornado.web import HTTPError

from ...errors import AgentExecError, DocumentUnwritable, NotebookNotFound
from ...tasks import start_apart
from ...types import Via
from ..cell_names import CELL_IDS_SINCE, is_made_up, with_names
from ..changes import Change, Expected, Moved, Notebook, NotebookHandle, apply, joined, order_of
from ..repairs import cell_fault, fault, repaired
from .atomic_contents import atomic

MAX_TRIES: Final = 5
"""How often to retry a save because someone else has saved in between."""

READ_DELAYS: Final = (0.02, 0.05, 0.1, 0.2)
"""Seconds before each retry of a failed read. Jupyter writes files in place, so a file is
incomplete while someone saves it."""

Model: TypeAlias = dict[str, Any]


class ContentsBackend:
    """Reaches notebooks as files.

    Parameters
    ----------
    contents
        The server's contents manager. Its results may be awaitable or not.
    saved
        Called with the path of a notebook that was saved here, and the hash of its file. The hash
        is None if the contents manager has no hashes.
    """

    def __init__(
        self,
        contents: Any,
        log: logging.Logger,
        *,
        saved: Callable[[str, str | None], None] | None = None,
    ) -> None:
        self._saved = saved
        self._files = _Files(atomic(contents))
        self._log = log
        self._handles: WeakValueDictionary[str, _ContentsHandle] = WeakValueDictionary()

    async def find(self, path: str) -> NotebookHandle:
        """Return the handle of a path. Its methods raise if there is no notebook."""
        path = path.strip("/")
        handle = self._handles.get(path)
        if handle is None:
            handle = _ContentsHandle(path, self._files, self._log, self._saved)
            self._handles[path] = handle
        return handle

    async def not_in_file(self, path: str, ids: Set[str]) -> Set[str]:
        """Return those ids that no cell in a notebook's file has; none if it cannot be read."""
        try:
            return ids - {*order_of((await (await self.find(path)).read()).cells)}
        except (NotebookNotFound, DocumentUnwritable):
            return set()

    async def last_modified(self, path: str) -> datetime | None:
        """Return when a notebook was saved last; None if unknown."""
        return await self._files.last_modified(path)

    async def stop(self) -> None:
        """Wait until all pending changes are saved."""
        for handle in list(self._handles.values()):
            async with handle.turn:
                pass


class _ContentsHandle:
    """A notebook's file."""

    via: Via = "contents"
    streams = False

    def __init__(
        self,
        path: str,
        files: _Files,
        log: logging.Logger,
        saved: Callable[[str, str | None], None] | None,
    ) -> None:
        self._saved = saved
        self._path = path
        self._files = files
        self._log = log
        self.turn = asyncio.Lock()
        """Held while the file is changed."""

    async def read(self) -> Notebook:
        """Return the notebook from the disk."""
        model = await self._files.get(self._path)
        self._check_valid(model)
        content = _readable(model["content"])
        return Notebook(
            cells=[_with_strings(cell) for cell in content["cells"]],
            nbformat_minor=content["nbformat_minor"],
        )

    async def apply(self, changes: Sequence[Change], expected: Expected) -> None:
        """Save the notebook with changes. A save that has begun ends, even if nobody waits."""
        async with self.turn:
            for _ in range(MAX_TRIES):
                model = await self._files.get(self._path)
                self._check_writable(model)
                before = _readable(model["content"])
                after = apply(before, changes, expected)
                _check_changed(before, after)
                notebook = _storable(after, before, model["content"])
                saving = start_apart(self._save(model, notebook), f"save {self._path}")
                if await self._outcome(saving):
                    return
        raise Moved(f"{self._path} was saved by others {MAX_TRIES} times meanwhile.")

    async def _outcome(self, saving: asyncio.Task[bool]) -> bool:
        left: asyncio.CancelledError | None = None
        while not saving.done():
            try:
                await asyncio.wait({saving})
            except asyncio.CancelledError as cancelled:
                left = cancelled
        if left is not None:
            raise left
        error = saving.exception()
        if error is None or isinstance(error, AgentExecError):
            return saving.result()
        self._log.error("%s could not be saved", self._path, exc_info=error)
        raise self._unwritable("could not be saved; the server's log says why") from error

    async def _save(self, model: Model, notebook: dict[str, Any]) -> bool:
        """Save a notebook; False if its file is not as it was when the model was read."""
        if not await self._files.is_as_it_was(self._path, model):
            return False
        await self._files.save(self._path, notebook)
        if self._saved is not None:
            self._saved(self._path, await self._files.hash(self._path))
        return True

    def _check_writable(self, model: Model) -> None:
        if model.get("writable") is False:
            raise self._unwritable("is read-only")
        self._check_valid(model)
        content = model["content"]
        if content.get("nbformat") != 4 or "orig_nbformat" in content["metadata"]:
            raise self._unwritable("is not of nbformat 4; save it in Jupyter first")

    def _check_valid(self, model: Model) -> None:
        if model.get("message") and (wrong := fault(model["content"])) is not None:
            raise self._unwritable(f"is not a valid notebook: {wrong}")

    def _unwritable(self, why: str) -> DocumentUnwritable:
        return DocumentUnwritable(f"{self._path} {why}.", path=self._path)


def _check_changed(before: dict[str, Any], after: dict[str, Any]) -> None:
    """Raise DocumentUnwritable if a changed cell is invalid. Saving does not check this."""
    as_they_were = {id(cell) for cell in before["cells"]}
    minor = min(after["nbformat_minor"], nbformat.v4.nbformat_minor)
    for cell in after["cells"]:
        if id(cell) not in as_they_were and (wrong := cell_fault(cell, minor)) is not None:
            raise DocumentUnwritable(f"A cell would not be valid: {wrong}.")


def _readable(content: dict[str, Any]) -> dict[str, Any]:
    """Return a notebook whose cells are complete, and have their names as `id`."""
    cells = [repaired(cell) for cell in content["cells"]]
    return {**content, "cells": with_names(cells, content["nbformat_minor"])}


def _storable(
    after: dict[str, Any], before: dict[str, Any], content: dict[str, Any]
) -> dict[str, Any]:
    """Return a changed notebook as its file holds it.

    Cells that did not change stay as they are in the file, except for what Jupyter needs to save
    them: their outputs, and from nbformat 4.5 on their ids.

    Parameters
    ----------
    before
        The notebook before the changes, as `_readable` returns it.
    content
        The same as it is in the file.
    """
    pairs = zip(before["cells"], content["cells"], strict=True)
    in_file = {id(cell): stored for cell, stored in pairs}
    cells = []
    for cell in after["cells"]:
        stored = in_file.get(id(cell), cell)
        if cell["cell_type"] == "code" and not _has_outputs(stored):
            stored = {**stored, "outputs": cell["outputs"]}
        if after["nbformat_minor"] >= CELL_IDS_SINCE:
            stored = {**stored, "id": cell["id"]}
        else:
            stored = {key: value for key, value in stored.items() if key != "id"}
        cells.append(stored)
    return {**after, "cells": cells}


def _has_outputs(cell: dict[str, Any]) -> bool:
    """Return whether Jupyter can save the outputs of a code cell."""
    outputs = cell.get("outputs")
    return outputs is not None and all(
        "text" in output for output in outputs if output["output_type"] == "stream"
    )


def _with_strings(cell: dict[str, Any]) -> dict[str, Any]:
    """Return a cell with source and stream texts as strings. Some managers read them as lists."""
    cell = {**cell, "source": joined(cell["source"])}
    if "outputs" in cell:
        cell["outputs"] = [
            {**output, "text": joined(output["text"])} if "text" in output else output
            for output in cell["outputs"]
        ]
    return cell


class _Files:
    """Calls the contents manager and translates its HTTPErrors into our errors."""

    def __init__(self, contents: Any) -> None:
        self._contents = contents
        parameters = inspect.signature(contents.get).parameters
        self._hashes = "require_hash" in parameters
        self._asked = {"require_hash": True} if self._hashes else {}

    async def get(self, path: str) -> Model:
        """Return the model of a notebook, with its content. Its cells have the ids in the file."""
        for _ in range(MAX_TRIES):
            model = await self._read(path)
            if not any(is_made_up(cell.get("id")) for cell in model["content"]["cells"]):
                return model
            text = await self._text(path)
            if text is None:
                return model
            if text.get("hash") == model.get("hash"):
                return _with_own_ids(model, text["content"])
        raise _unreadable(path, "others save it all the time")

    async def _text(self, path: str) -> Model | None:
        """Return the model of a notebook as text; None if the contents manager has none."""
        try:
            got = self._contents.get(path, type="file", format="text", **self._asked)
            text: Model = await ensure_async(got)
        except HTTPError:
            return None
        return text

    async def _unreadable(self, path: str) -> DocumentUnwritable:
        """Return the error for a notebook that Jupyter cannot read, with the place if possible."""
        text = await self._text(path)
        try:
            wrong = None if text is None else fault(json.loads(text["content"]))
        except ValueError:
            wrong = "it is not JSON"
        except RecursionError:
            wrong = "it is nested too deeply"
        return _unreadable(path, wrong)

    async def _read(self, path: str) -> Model:
        for delay in READ_DELAYS:
            try:
                return await self._get(path)
            except HTTPError as error:
                if error.status_code != HTTPStatus.BAD_REQUEST:
                    raise await self._refusal(path, error) from error
            await asyncio.sleep(delay)
        try:
            return await self._get(path)
        except HTTPError as error:
            raise await self._refusal(path, error) from error

    async def _get(self, path: str) -> Model:
        """Return the model of a notebook; HTTPError if the contents manager refuses."""
        try:
            if not self._contents.allow_hidden and await ensure_async(
                self._contents.is_hidden(path)
            ):
                raise _not_found(path)
            got = self._contents.get(path, type="notebook", content=True, **self._asked)
            return await ensure_async(got)
        except UnicodeError as error:  # Jupyter cannot sign a notebook with a lone surrogate
            raise _unreadable(path) from error
        except OSError as error:  # for example, the name is too long
            raise _not_found(path) from error
        except (LookupError, TypeError, AttributeError, RecursionError) as error:
            # Jupyter expects valid cells, not too deeply nested.
            raise await self._unreadable(path) from error

    async def is_as_it_was(self, path: str, model: Model) -> bool:
        """Return whether a notebook's file is unchanged since it was read."""
        try:
            got = self._contents.get(path, type="notebook", content=False, **self._asked)
            now: Model = await ensure_async(got)
        except HTTPError as error:
            raise await self._refusal(path, error) from error
        key = "hash" if self._hashes and model.get("hash") else "last_modified"
        return bool(now.get(key) == model.get(key))

    async def last_modified(self, path: str) -> datetime | None:
        """Return when a notebook's file was saved last; None if unknown."""
        modified = (await self._without_content(path)).get("last_modified")
        return modified if isinstance(modified, datetime) and modified.tzinfo is not None else None

    async def hash(self, path: str) -> str | None:
        """Return the current hash of a notebook's file; None if unknown."""
        hash = (await self._without_content(path)).get("hash")
        return hash if isinstance(hash, str) else None

    async def _without_content(self, path: str) -> Model:
        """Return the model of a notebook without its content; an empty one if that fails."""
        try:
            got = self._contents.get(path, type="notebook", content=False, **self._asked)
            model: Model = await ensure_async(got)
        except (HTTPError, OSError):
            return {}
        return model

    async def save(self, path: str, notebook: dict[str, Any]) -> None:
        """Save a notebook."""
        model = {"type": "notebook", "format": "json", "content": notebook}
        try:
            await ensure_async(self._contents.save(model, path))
        except HTTPError as error:
            raise DocumentUnwritable(
                f"{path} could not be saved: {_why(error)}.", path=path
            ) from error

    async def _refusal(self, path: str, error: HTTPError) -> AgentExecError:
        if error.status_code == HTTPStatus.NOT_FOUND:
            return _not_found(path)
        if await ensure_async(self._contents.dir_exists(path)):
            return NotebookNotFound(f"{path} is a folder, not a notebook.", path=path)
        if error.status_code == HTTPStatus.BAD_REQUEST:
            return await self._unreadable(path)
        return DocumentUnwritable(f"{path} could not be read: {_why(error)}.", path=path)


def _with_own_ids(model: Model, text: str) -> Model:
    """Return a notebook's model whose cells have the ids that the file's text gives them."""
    try:
        stored = json.loads(text)["cells"]
    except (ValueError, LookupError, TypeError, RecursionError):  # nbformat 3, or no JSON
        stored = []
    cells = [{key: cell[key] for key in cell if key != "id"} for cell in model["content"]["cells"]]
    if len(stored) == len(cells):
        for cell, as_stored in zip(cells, stored, strict=True):
            if "id" in as_stored:
                cell["id"] = as_stored["id"]
    return {**model, "content": {**model["content"], "cells": cells}}


def _not_found(path: str) -> NotebookNotFound:
    return NotebookNotFound(f"There is no notebook at {path!r}.", path=path)


def _unreadable(path: str, wrong: str | None = None) -> DocumentUnwritable:
    why = "" if wrong is None else f": {wrong}"
    message = f"{path} is not a notebook that this server can read{why}."
    return DocumentUnwritable(message, path=path)


def _why(error: HTTPError) -> str:
    if error.status_code == HTTPStatus.FORBIDDEN:
        return "permission denied"
    return f"the contents manager answers {error.status_code}"
