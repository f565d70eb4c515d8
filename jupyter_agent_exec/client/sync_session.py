"""A session of the client that blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, overload

from .. import models
from ..errors import AgentExecError
from ..types import Verdict
from . import approval_calls, calls, looking_calls, notebook_calls
from .drivers import SyncDriver
from .errors import ClientError, ServerUnreachable
from .events import Event
from .requests import Place, cell_of, execute_request, steps_request
from .result import Result
from .steps import Feed
from .sync_files import SyncFiles


class Session(SyncFiles):
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
        revises: str | None = None,
        values: Mapping[str, str] | None = None,
        timeout: float | None = None,
        queue_timeout: float | None = None,
        max_output_bytes: int | None = None,
        idempotency_key: str | None = None,
        on_input: Callable[[models.Input], str] | None = None,
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
        revises
            Id of the session's execution of which this is a new version; whoever approves it is
            shown the difference. None is the last one, if that was rejected.
        values
            Expressions of Python to evaluate after it, by the names under which `Result.values`
            tells what they came to. None of them fails the execution.
        timeout
            Seconds it may run; the session's limit when None.
        queue_timeout
            Seconds it may wait for its turn; the session's limit when None.
        max_output_bytes
            UTF-8 bytes of output that are kept with its cell.
        idempotency_key
            The same key with the same source gets the same execution, however often it is asked.
        on_input
            Called with what the code asks for, in a session that allows that; returns the answer.
            Without it, the code waits until somebody answers in JupyterLab.
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
        request = execute_request(
            source, timeout, queue_timeout, max_output_bytes, placement, revises, values
        )
        run = calls.run(self.info.id, request, idempotency_key, until_input=on_input is not None)
        result = self._driver.run(run)
        while on_input is not None and result.input is not None:
            value = on_input(result.input)
            result = self._driver.run(calls.answer(result, value))
        return result.raise_on_error() if raise_on_error else result

    def run_steps(
        self,
        steps: Iterable[str | models.Step],
        *,
        stop_on_error: bool = True,
        timeout: float | None = None,
        idempotency_key: str | None = None,
    ) -> list[Result]:
        """Run several sources, one after the other, and wait until all have finished.

        Each is an execution of its own, and nothing else of the session gets in between. All are
        accepted, or none.

        Parameters
        ----------
        steps
            Sources; or `Step`, which has a timeout, a placement and values of its own.
        stop_on_error
            Cancel what comes after a step that ends with another status than ``ok``.
        timeout
            Seconds each may run that says nothing else; the session's limit when None.
        idempotency_key
            The same key with the same steps gets the same executions, however often it is asked.

        Raises
        ------
        AgentExecError
            The server refuses; nothing was run.
        """
        request = steps_request(steps, stop_on_error=stop_on_error, timeout=timeout)
        return self._driver.run(calls.run_steps(self.id, request, idempotency_key))

    def submit_steps(
        self,
        steps: Iterable[str | models.Step],
        *,
        stop_on_error: bool = True,
        timeout: float | None = None,
        idempotency_key: str | None = None,
    ) -> list[Result]:
        """Have several sources accepted, and return how they stand, without waiting for their end.

        `AgentExecClient.wait` waits for one, `AgentExecClient.cancel` takes it back. Parameters and
        errors are those of `run_steps`.
        """
        request = steps_request(steps, stop_on_error=stop_on_error, timeout=timeout)
        return self._driver.run(calls.submit_steps(self.id, request, idempotency_key))

    def run_cell(
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
        """Run a cell of the session's notebook where it stands, as a person would.

        Parameters
        ----------
        cell_id
            The cell, as `cells` tells it.
        source_sha256
            Of the source that was read: refused if the cell has another by now.
        values, timeout, queue_timeout, max_output_bytes, idempotency_key, raise_on_error
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
    ) -> Iterator[Event]:
        """Run `source` once and give its events as they happen; the last is `Finished`.

        It is sent when the first event is asked for. Whoever stops listening does not stop the
        execution. Parameters and errors are those of `run`.
        """
        request = execute_request(
            source, timeout, queue_timeout, max_output_bytes, placement, revises, values
        )
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

    def variables(
        self, match: str | None = None, *, limit: int | None = None
    ) -> models.VariableList:
        """List the variables of the kernel's user by name, also while code runs there.

        Parameters
        ----------
        match
            Only those with this in their names, in whatever case.
        limit
            How many at most, up to 500.

        Raises
        ------
        KernelBusy
            Code runs, and the kernel can answer nothing meanwhile; ``detail`` says whose.
        LanguageNotSupported
            The kernel is not one of Python.
        """
        return self._driver.run(looking_calls.variables(self.id, match, limit))

    def complete(self, code: str, cursor_pos: int | None = None) -> models.Completions:
        """Ask what may follow at a place in code, by default at its end.

        Parameters
        ----------
        cursor_pos
            Code points from the start of the code.

        Raises
        ------
        KernelBusy
            Code runs, and the kernel can answer nothing meanwhile; ``detail`` says whose.
        """
        asked = models.Complete(code=code, cursor_pos=cursor_pos)
        return self._driver.run(looking_calls.complete(self.id, asked))

    def inspect(
        self, code: str, cursor_pos: int | None = None, *, detail_level: Literal[0, 1] = 0
    ) -> models.Inspection:
        """Ask for the documentation of what stands at a place in code, by default at its end.

        Parameters
        ----------
        detail_level
            1 adds the source, where the kernel has it.
        cursor_pos, Raises
            As for `complete`.
        """
        asked = models.Inspect(code=code, cursor_pos=cursor_pos, detail_level=detail_level)
        return self._driver.run(looking_calls.inspect(self.id, asked))

    def packages(self, match: str | None = None, *, limit: int | None = None) -> models.PackageList:
        """List what code in the kernel can import: distributions, with the names of their modules.

        Parameters and errors are those of `variables`.
        """
        return self._driver.run(looking_calls.packages(self.id, match, limit))

    def executions(self) -> Iterator[Result]:
        """Give the session's executions in order."""
        return self._driver.feed(calls.executions(self.id))

    def grant_approval(self, minutes: float) -> models.Session:
        """Let, for a person, all that the session asks for run for so long; 0 ends that."""
        request = models.GrantApproval(minutes=minutes)
        self.info = self._driver.run(approval_calls.grant(self.id, request))
        return self.info

    def review(self, verdict: Verdict | None, *, comment: str | None = None) -> models.Session:
        """Say, for a person, what to think of all that the session has run so far.

        Parameters are those of `AgentExecClient.review`.
        """
        request = models.SetReview(verdict=verdict, comment=comment)
        self.info = self._driver.run(calls.review_session(self.id, request))
        return self.info

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

    def guide(self) -> str:
        """Return what a language model should know before it works in this session.

        It is Markdown for a system message: how the kernel keeps its state, what statuses mean and
        what to do then, whose kernel it is.
        """
        return self._driver.run(calls.guide(self.id))

    @overload
    def export(self, path: None = None, *, clean: bool = False) -> dict[str, Any]: ...

    @overload
    def export(self, path: str | PathLike[str], *, clean: bool = False) -> Path: ...

    def export(
        self, path: str | PathLike[str] | None = None, *, clean: bool = False
    ) -> dict[str, Any] | Path:
        """Return the session as an nbformat 4.5 notebook, or write it to `path` and return that.

        `clean` is for git, nbdime, jupytext and papermill: indented, with ids of cells that lead to
        the record and no other metadata of ours.
        """
        feed = calls.export(self.id, clean=clean)
        if path is not None:
            return self._download(feed, path)
        chunks = self._driver.feed(feed)
        return calls.notebook(b"".join(chunks))

    @overload
    def journal(self, path: None = None) -> bytes: ...

    @overload
    def journal(self, path: str | PathLike[str]) -> Path: ...

    def journal(self, path: str | PathLike[str] | None = None) -> bytes | Path:
        """Return the raw record, or write it to `path` and return that."""
        if path is not None:
            return self._download(calls.journal(self.id), path)
        chunks = self._driver.feed(calls.journal(self.id))
        return b"".join(chunks)

    def _download(self, feed: Feed[bytes], path: str | PathLike[str]) -> Path:
        target = Path(path)
        chunks = self._driver.feed(feed)
        with target.open("wb") as file:
            file.writelines(chunks)
        return target
