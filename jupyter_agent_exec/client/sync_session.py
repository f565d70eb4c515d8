"""A session of the client that blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, overload

from .. import models
from ..errors import AgentExecError
from . import calls, notebook_calls
from .drivers import SyncDriver
from .errors import ClientError, ServerUnreachable
from .events import Event
from .requests import Place, cell_of, execute_request
from .result import Result


class Session:
    """An agent session; a context manager that closes it at the end.

    Parameters
    ----------
    driver
        The client's connection.
    info
        The session as the server answered it.
    """

    def __init__(self, driver: SyncDriver, info: models.Session) -> None:
        self._driver = driver
        self.info = info
        """The session as it was when this object was made or the kernel restarted."""

    @property
    def id(self) -> str:
        """The session's id."""
        return self.info.id

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()
        elif not isinstance(error, ServerUnreachable):
            # What went wrong in the block is what its reader needs to see.
            with suppress(ClientError, AgentExecError):
                self.close()

    def __repr__(self) -> str:
        return f"<Session {self.id} of {self.info.agent.name!r}>"

    def run(
        self,
        source: str | None,
        *,
        placement: Place = "end",
        timeout: float | None = None,
        queue_timeout: float | None = None,
        max_output_bytes: int | None = None,
        idempotency_key: str | None = None,
        raise_on_error: bool = False,
    ) -> Result:
        """Run `source` once and wait until it has finished, however long that takes.

        A connection that breaks is made again, for half a minute, and what was sent is never run
        twice.

        Parameters
        ----------
        source
            Code in the kernel's language; None for that of the cell which `placement` names.
        placement
            Where in its notebook the cell goes: ``"end"``, ``"none"``, or a `Placement` after or
            before a cell, or in place of one. A `Placement` needs a session with a notebook.
        timeout
            Seconds it may run; the session's limit when None.
        queue_timeout
            Seconds it may wait for its turn; the session's limit when None.
        max_output_bytes
            UTF-8 bytes of output that are kept with its cell.
        idempotency_key
            The same key with the same source gets the same execution, however often it is asked.
        raise_on_error
            Raise unless the status is ``ok``.

        Raises
        ------
        ExecutionFailed
            `raise_on_error`, and the code did not run to its end; it carries the result.
        AgentExecError
            The server refuses; nothing was run.
        ServerUnreachable
            The connection broke and did not come back; what was accepted goes on.
        """
        request = execute_request(source, timeout, queue_timeout, max_output_bytes, placement)
        result = self._driver.run(calls.run(self.info.id, request, idempotency_key))
        return result.raise_on_error() if raise_on_error else result

    def run_cell(
        self,
        cell_id: str,
        *,
        source_sha256: str | None = None,
        timeout: float | None = None,
        queue_timeout: float | None = None,
        max_output_bytes: int | None = None,
        idempotency_key: str | None = None,
        raise_on_error: bool = False,
    ) -> Result:
        """Run a cell of the session's notebook where it stands, as a person would.

        Parameters
        ----------
        cell_id
            The cell, as `cells` tells it.
        source_sha256
            Of the source that was read: refused if the cell has another by now.
        timeout, queue_timeout, max_output_bytes, idempotency_key, raise_on_error
            As for `run`.

        Raises
        ------
        CellNotFound
            There is no such cell; ``detail["cell_ids"]`` has those that there are.
        DocumentChanged
            Somebody changed its source meanwhile; ``detail`` has what it is now.
        """
        return self.run(
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
    ) -> Iterator[Event]:
        """Run `source` once and give its events as they happen; the last is `Finished`.

        It is sent when the first event is asked for. Whoever stops listening does not stop the
        execution. Parameters and errors are those of `run`.
        """
        request = execute_request(source, timeout, queue_timeout, max_output_bytes, placement)
        return self._driver.feed(calls.stream(self.id, request, idempotency_key))

    def cells(self, *, outputs: bool = True, text_limit: int | None = None) -> models.NotebookCells:
        """Read the session's notebook as it is now, as `AgentExecClient.cells` does."""
        return self._driver.run(notebook_calls.session_cells(self.id, outputs, text_limit))

    def edit(
        self, edits: Sequence[models.Edit], *, hash: str | None = None
    ) -> models.NotebookEdited:
        """Change the cells of the session's notebook: all of the edits, in order, or none.

        If the connection breaks they are not sent again; `cells` tells whether they were made.

        Parameters
        ----------
        edits
            `InsertCell`, `ReplaceCell`, `MoveCell`, `DeleteCell`, `SplitCell`, `ClearOutputs`.
        hash
            Of the notebook, as `cells` told it: refused if its cells have changed since.

        Raises
        ------
        DocumentChanged
            The notebook or a cell is not as it was when it was read; ``detail`` has what it is now.
        CellNotFound
            An edit names a cell that is not there.
        DocumentUnwritable
            A read-only file, or one that is not a notebook of a known format.
        """
        return self._driver.run(notebook_calls.edit(self.id, edits, hash))

    def executions(self) -> Iterator[Result]:
        """Give the session's executions in order."""
        return self._driver.feed(calls.executions(self.id))

    def interrupt(self) -> None:
        """Interrupt what runs; in a person's kernel only what this session runs or has waiting."""
        self._driver.run(calls.interrupt(self.id))

    def restart(self) -> None:
        """Get a fresh kernel; variables are gone.

        Raises
        ------
        KernelNotOwned
            It is a person's kernel: only they restart it.
        """
        self.info = self._driver.run(calls.restart(self.id))

    def close(self) -> None:
        """Close the session and shut its scratch kernel down. A person's stays, and the record."""
        self._driver.run(calls.close_session(self.id))

    @overload
    def export(self, path: None = None) -> dict[str, Any]: ...

    @overload
    def export(self, path: str | PathLike[str]) -> Path: ...

    def export(self, path: str | PathLike[str] | None = None) -> dict[str, Any] | Path:
        """Return the session as an nbformat 4.5 notebook, or write it to `path` and return that."""
        if path is not None:
            return self._download("notebook", path)
        chunks = self._driver.feed(calls.download(self.id, "notebook"))
        return calls.notebook(b"".join(chunks))

    @overload
    def journal(self, path: None = None) -> bytes: ...

    @overload
    def journal(self, path: str | PathLike[str]) -> Path: ...

    def journal(self, path: str | PathLike[str] | None = None) -> bytes | Path:
        """Return the raw record, or write it to `path` and return that."""
        if path is not None:
            return self._download("journal", path)
        chunks = self._driver.feed(calls.download(self.id, "journal"))
        return b"".join(chunks)

    def _download(self, what: Literal["notebook", "journal"], path: str | PathLike[str]) -> Path:
        target = Path(path)
        chunks = self._driver.feed(calls.download(self.id, what))
        with target.open("wb") as file:
            file.writelines(chunks)
        return target
