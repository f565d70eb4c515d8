"""A session of the client that awaits."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, overload

import anyio

from .. import models
from ..errors import AgentExecError
from ..types import Verdict
from . import approval_calls, calls, looking_calls, notebook_calls
from .async_files import AsyncFiles
from .drivers import AsyncDriver
from .errors import ClientError, ServerUnreachable
from .events import Event
from .requests import Place, cell_of, execute_request, steps_request
from .result import Result
from .steps import Feed


class AsyncSession(AsyncFiles):
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
        revises: str | None = None,
        values: Mapping[str, str] | None = None,
        timeout: float | None = None,
        queue_timeout: float | None = None,
        max_output_bytes: int | None = None,
        idempotency_key: str | None = None,
        on_input: Callable[[models.Input], Awaitable[str]] | None = None,
        raise_on_error: bool = False,
    ) -> Result:
        """Run `source` once and wait until it has finished, as `Session.run` does.

        Cancelling the task ends the waiting, not the execution.
        """
        request = execute_request(
            source, timeout, queue_timeout, max_output_bytes, placement, revises, values
        )
        run = calls.run(self.info.id, request, idempotency_key, until_input=on_input is not None)
        result = await self._driver.run(run)
        while on_input is not None and result.input is not None:
            value = await on_input(result.input)
            result = await self._driver.run(calls.answer(result, value))
        return result.raise_on_error() if raise_on_error else result

    async def run_steps(
        self,
        steps: Iterable[str | models.Step],
        *,
        stop_on_error: bool = True,
        timeout: float | None = None,
        idempotency_key: str | None = None,
    ) -> list[Result]:
        """Run several sources, one after the other, as `Session.run_steps` does."""
        request = steps_request(steps, stop_on_error=stop_on_error, timeout=timeout)
        return await self._driver.run(calls.run_steps(self.id, request, idempotency_key))

    async def submit_steps(
        self,
        steps: Iterable[str | models.Step],
        *,
        stop_on_error: bool = True,
        timeout: float | None = None,
        idempotency_key: str | None = None,
    ) -> list[Result]:
        """Have several sources accepted without waiting, as `Session.submit_steps` does."""
        request = steps_request(steps, stop_on_error=stop_on_error, timeout=timeout)
        return await self._driver.run(calls.submit_steps(self.id, request, idempotency_key))

    async def run_cell(
        self,
        cell_id: str,
        *,
        source_sha256: str | None = None,
        values: Mapping[str, str] | None = None,
        timeout: float | None = None,
        queue_timeout: float | None = None,
        max_output_bytes: int | None = None,
        idempotency_key: str | None = None,
        raise_on_error: bool = False,
    ) -> Result:
        """Run a cell of the session's notebook where it stands, as `Session.run_cell` does."""
        return await self.run(
            None,
            placement=cell_of(cell_id, source_sha256),
            values=values,
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
        revises: str | None = None,
        values: Mapping[str, str] | None = None,
        timeout: float | None = None,
        queue_timeout: float | None = None,
        max_output_bytes: int | None = None,
        idempotency_key: str | None = None,
    ) -> AsyncIterator[Event]:
        """Run `source` once and give its events, as `Session.stream` does."""
        request = execute_request(
            source, timeout, queue_timeout, max_output_bytes, placement, revises, values
        )
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

    async def variables(
        self, match: str | None = None, *, limit: int | None = None
    ) -> models.VariableList:
        """List the variables, as `Session.variables` does."""
        return await self._driver.run(looking_calls.variables(self.id, match, limit))

    async def complete(self, code: str, cursor_pos: int | None = None) -> models.Completions:
        """Ask what may follow at a place in code, as `Session.complete` does."""
        asked = models.Complete(code=code, cursor_pos=cursor_pos)
        return await self._driver.run(looking_calls.complete(self.id, asked))

    async def inspect(
        self, code: str, cursor_pos: int | None = None, *, detail_level: Literal[0, 1] = 0
    ) -> models.Inspection:
        """Ask for documentation, as `Session.inspect` does."""
        asked = models.Inspect(code=code, cursor_pos=cursor_pos, detail_level=detail_level)
        return await self._driver.run(looking_calls.inspect(self.id, asked))

    async def packages(
        self, match: str | None = None, *, limit: int | None = None
    ) -> models.PackageList:
        """List what code can import, as `Session.packages` does."""
        return await self._driver.run(looking_calls.packages(self.id, match, limit))

    def executions(self) -> AsyncIterator[Result]:
        """Give the session's executions in order."""
        return self._driver.feed(calls.executions(self.id))

    async def grant_approval(self, minutes: float) -> models.Session:
        """Let all run for so long, as `Session.grant_approval` does."""
        request = models.GrantApproval(minutes=minutes)
        self.info = await self._driver.run(approval_calls.grant(self.id, request))
        return self.info

    async def review(
        self, verdict: Verdict | None, *, comment: str | None = None
    ) -> models.Session:
        """Say what to think of what the session has run, as `Session.review` does."""
        request = models.SetReview(verdict=verdict, comment=comment)
        self.info = await self._driver.run(calls.review_session(self.id, request))
        return self.info

    async def interrupt(self) -> None:
        """Interrupt what runs, as `Session.interrupt` does."""
        await self._driver.run(calls.interrupt(self.id))

    async def restart(self) -> None:
        """Get a fresh kernel; variables are gone."""
        self.info = await self._driver.run(calls.restart(self.id))

    async def close(self) -> None:
        """Close the session and shut its scratch kernel down. A person's stays, and the record."""
        await self._driver.run(calls.close_session(self.id))

    async def guide(self) -> str:
        """Return what a language model should know, as `Session.guide` does."""
        return await self._driver.run(calls.guide(self.id))

    @overload
    async def export(self, path: None = None, *, clean: bool = False) -> dict[str, Any]: ...

    @overload
    async def export(self, path: str | PathLike[str], *, clean: bool = False) -> Path: ...

    async def export(
        self, path: str | PathLike[str] | None = None, *, clean: bool = False
    ) -> dict[str, Any] | Path:
        """Return the session as an nbformat 4.5 notebook, or write it to `path` and return that.

        `clean` is for git, nbdime, jupytext and papermill: indented, with ids of cells that lead to
        the record and no other metadata of ours.
        """
        feed = calls.export(self.id, clean=clean)
        if path is not None:
            return await self._download(feed, path)
        return calls.notebook(b"".join([chunk async for chunk in self._driver.feed(feed)]))

    @overload
    async def journal(self, path: None = None) -> bytes: ...

    @overload
    async def journal(self, path: str | PathLike[str]) -> Path: ...

    async def journal(self, path: str | PathLike[str] | None = None) -> bytes | Path:
        """Return the raw record, or write it to `path` and return that."""
        if path is not None:
            return await self._download(calls.journal(self.id), path)
        feed = self._driver.feed(calls.journal(self.id))
        return b"".join([chunk async for chunk in feed])

    async def _download(self, feed: Feed[bytes], path: str | PathLike[str]) -> Path:
        async with await anyio.open_file(path, "wb") as file:
            async for chunk in self._driver.feed(feed):
                await file.write(chunk)
        return Path(path)
