"""A session of the client that awaits."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, overload

import anyio

from .. import models
from ..errors import AgentExecError
from . import calls, notebook_calls
from .drivers import AsyncDriver
from .errors import ClientError, ServerUnreachable
from .events import Event
from .requests import Place, cell_of, execute_request
from .result import Result


class AsyncSession:
    """An agent session; an async context manager that closes it at the end.

    Parameters
    ----------
    driver
        The client's connection.
    info
        The session as the server answered it.
    """

    def __init__(self, driver: AsyncDriver, info: models.Session) -> None:
        self._driver = driver
        self.info = info
        """The session as it was when this object was made or the kernel restarted."""

    @property
    def id(self) -> str:
        """The session's id."""
        return self.info.id

    async def __aenter__(self) -> AsyncSession:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            await self.close()
        elif not isinstance(error, ServerUnreachable):
            # What went wrong in the block is what its reader needs to see.
            with suppress(ClientError, AgentExecError):
                await self.close()

    def __repr__(self) -> str:
        return f"<AsyncSession {self.id} of {self.info.agent.name!r}>"

    async def run(
        self,
        source: str | None,
        *,
        placement: Place = "end",
        timeout: float | None = None,  # noqa: ASYNC109 - the server keeps it
        queue_timeout: float | None = None,
        max_output_bytes: int | None = None,
        idempotency_key: str | None = None,
        raise_on_error: bool = False,
    ) -> Result:
        """Run `source` once and wait until it has finished, as `Session.run` does.

        Cancelling the task ends the waiting, not the execution.
        """
        request = execute_request(source, timeout, queue_timeout, max_output_bytes, placement)
        result = await self._driver.run(calls.run(self.info.id, request, idempotency_key))
        return result.raise_on_error() if raise_on_error else result

    async def run_cell(
        self,
        cell_id: str,
        *,
        source_sha256: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - the server keeps it
        queue_timeout: float | None = None,
        max_output_bytes: int | None = None,
        idempotency_key: str | None = None,
        raise_on_error: bool = False,
    ) -> Result:
        """Run a cell of the session's notebook where it stands, as `Session.run_cell` does."""
        return await self.run(
            None,
            placement=cell_of(cell_id, source_sha256),
            timeout=timeout,
            queue_timeout=queue_timeout,
            max_output_bytes=max_output_bytes,
            idempotency_key=idempotency_key,
            raise_on_error=raise_on_error,
        )

    def stream(
        self,
        source: str | None,
        *,
        placement: Place = "end",
        timeout: float | None = None,
        queue_timeout: float | None = None,
        max_output_bytes: int | None = None,
        idempotency_key: str | None = None,
    ) -> AsyncIterator[Event]:
        """Run `source` once and give its events, as `Session.stream` does."""
        request = execute_request(source, timeout, queue_timeout, max_output_bytes, placement)
        return self._driver.feed(calls.stream(self.id, request, idempotency_key))

    async def cells(
        self, *, outputs: bool = True, text_limit: int | None = None
    ) -> models.NotebookCells:
        """Read the session's notebook as it is now, as `AsyncAgentExecClient.cells` does."""
        return await self._driver.run(notebook_calls.session_cells(self.id, outputs, text_limit))

    async def edit(
        self, edits: Sequence[models.Edit], *, hash: str | None = None
    ) -> models.NotebookEdited:
        """Change the cells of the session's notebook, as `Session.edit` does."""
        return await self._driver.run(notebook_calls.edit(self.id, edits, hash))

    def executions(self) -> AsyncIterator[Result]:
        """Give the session's executions in order."""
        return self._driver.feed(calls.executions(self.id))

    async def interrupt(self) -> None:
        """Interrupt what runs, as `Session.interrupt` does."""
        await self._driver.run(calls.interrupt(self.id))

    async def restart(self) -> None:
        """Get a fresh kernel; variables are gone."""
        self.info = await self._driver.run(calls.restart(self.id))

    async def close(self) -> None:
        """Close the session and shut its scratch kernel down. A person's stays, and the record."""
        await self._driver.run(calls.close_session(self.id))

    @overload
    async def export(self, path: None = None) -> dict[str, Any]: ...

    @overload
    async def export(self, path: str | PathLike[str]) -> Path: ...

    async def export(self, path: str | PathLike[str] | None = None) -> dict[str, Any] | Path:
        """Return the session as an nbformat 4.5 notebook, or write it to `path` and return that."""
        if path is not None:
            return await self._download("notebook", path)
        feed = self._driver.feed(calls.download(self.id, "notebook"))
        return calls.notebook(b"".join([chunk async for chunk in feed]))

    @overload
    async def journal(self, path: None = None) -> bytes: ...

    @overload
    async def journal(self, path: str | PathLike[str]) -> Path: ...

    async def journal(self, path: str | PathLike[str] | None = None) -> bytes | Path:
        """Return the raw record, or write it to `path` and return that."""
        if path is not None:
            return await self._download("journal", path)
        feed = self._driver.feed(calls.download(self.id, "journal"))
        return b"".join([chunk async for chunk in feed])

    async def _download(
        self, what: Literal["notebook", "journal"], path: str | PathLike[str]
    ) -> Path:
        async with await anyio.open_file(path, "wb") as file:
            async for chunk in self._driver.feed(calls.download(self.id, what)):
                await file.write(chunk)
        return Path(path)
