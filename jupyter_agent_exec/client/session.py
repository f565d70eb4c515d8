"""An agent session: run code, edit its notebook, manage its kernel and its files."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing, suppress
from inspect import isawaitable
from os import PathLike
from pathlib import Path
from typing import Any, Final, Literal, TypeVar, Unpack, overload
from uuid import uuid4

from msgspec.structs import replace

from .. import models
from ..errors import AgentExecError, InputNotAsked, InvalidRequest, SessionClosed
from ..types import CellId, Digest, ExecutionId, ProposedEditId, SessionId
from .calls import (
    ANSWER_SECONDS,
    WAIT_SECONDS,
    cells_path,
    finished,
    get_execution,
    get_session,
    give_input,
    read_cells,
)
from .connection import Connection
from .errors import ClientError, ServerUnreachable
from .events import Event, follow
from .replies import decoded
from .requests import (
    ExecuteOptions,
    Source,
    execute_request,
    header_value,
    segment,
    steps_request,
)
from .result import Result
from .session_files import Progress, SessionFiles, joined, save

T = TypeVar("T")

FIRST_WAIT_SECONDS: Final = 5.0
"""How long the first request waits. After that, the client prints that a user must decide."""

SHARE_SECONDS: Final = 300.0
"""How long the answer to a shared export may take: a kernel starts, and all cells run."""


class AsyncSession(SessionFiles):
    """An agent session. As an async context manager, it closes the session at the end.

    Parameters
    ----------
    connection
        The client's connection.
    info
        The server's model of the session.
    """

    def __init__(self, connection: Connection, info: models.Session) -> None:
        self._connection = connection
        self.info = info
        """The server's model of the session, from the last request that returned it."""

    @property
    def id(self) -> str:
        """The session's id."""
        return self.info.id

    @property
    def _path(self) -> str:
        """Its path below `API`."""
        return f"/sessions/{segment(self.info.id)}"

    async def __aenter__(self) -> AsyncSession:
        return self

    async def __aexit__(self, _: object, error: BaseException | None, traceback: object) -> None:
        if error is None:
            await self.close()
        elif not isinstance(error, ServerUnreachable):
            # Do not hide the exception of the block.
            with suppress(ClientError, AgentExecError):
                await self.close()

    def __repr__(self) -> str:
        return f"<AsyncSession {self.id} of {self.info.agent.name!r}>"

    async def run(
        self,
        source: Source | None,
        *,
        idempotency_key: str | None = None,
        on_input: Callable[[models.Input], str | Awaitable[str]] | None = None,
        raise_on_error: bool = False,
        **options: Unpack[ExecuteOptions],
    ) -> Result:
        """Run `source` once and wait until it has finished, without a time limit.

        If the connection breaks, the client tries to reconnect for half a minute. Code that was
        sent never runs twice.

        Parameters
        ----------
        source
            Code in the kernel's language, or the path (`pathlib.Path`) of a file with code; None
            for the source of the cell that `placement` names.
        placement
            The place of the execution's cell in the notebook: ``"end"``, ``"none"``, or a
            `Placement` after a cell, before a cell, or in place of one. A `Placement` needs a
            session with a notebook.
        revises
            Id of the session's execution that this one is a new version of. A user who approves it
            sees the difference. None is the last execution, if that was rejected.
        values
            Python expressions to evaluate after the code. The keys name their values in
            `Result.values`. An expression that fails does not fail the execution.
        claim
            What the agent says about the code: its purpose, and the ids of its trace and tool call.
            It is shown to the user and recorded.
        trial
            Run it in a sealed copy of the kernel, which sees its variables and changes nothing. It
            needs no approval and gets no cell. For Python's kernels on Linux.
        timeout
            Seconds it may run; the session's limit when None.
        queue_timeout
            Seconds it may wait for its turn; the session's limit when None.
        max_output_bytes
            UTF-8 bytes of output kept with its cell.
        idempotency_key
            Repeated requests with the same key and source return the same execution.
        on_input
            Called with each input request of the code, if the session allows input; returns the
            answer. Without it, the code waits until somebody answers in JupyterLab.
        raise_on_error
            Raise unless the status is ``ok``.

        Raises
        ------
        OSError
            The file cannot be read; no code was run.
        ExecutionFailed
            `raise_on_error` is set and the status is not ``ok``. The error has the result.
        AgentExecError
            The server refused the request; no code was run.
        ServerUnreachable
            The connection broke and could not be restored. An accepted execution continues.
        """
        request = execute_request(source, options)
        execution = await self._execute(request, idempotency_key, FIRST_WAIT_SECONDS)
        until_input = on_input is not None
        execution = await finished(self._connection, execution, until_input=until_input)
        while on_input is not None and execution.input is not None:
            value = on_input(execution.input)
            if isawaitable(value):
                value = await value
            execution = await self._answer(execution, execution.input, value)
        result = Result(execution)
        return result.raise_on_error() if raise_on_error else result

    async def _execute(
        self, execute: models.Execute, key: str | None, wait: float
    ) -> models.Execution:
        return await self._submit("executions", execute, key, wait, models.Execution)

    async def _submit(
        self,
        to: str,
        request: models.Execute | models.RunSteps,
        key: str | None,
        wait: float,
        answer: type[T],
    ) -> T:
        """Send code that never runs twice, and return the answer, which is held for `wait`."""
        return await self._connection.post(
            f"{self._path}/{to}",
            replace(request, wait=wait),
            answer,
            repeated=True,
            headers={"Idempotency-Key": header_value(key or uuid4().hex)},
            read_timeout=wait + ANSWER_SECONDS,
        )

    async def _answer(
        self, execution: models.Execution, asked: models.Input, value: str
    ) -> models.Execution:
        """Answer an input request, and wait until the code ends or requests input again."""
        with suppress(InputNotAsked):
            await give_input(self._connection, execution.id, value, asked.asked_at)
        current = await get_execution(self._connection, execution.id)
        return await finished(self._connection, current, until_input=True)

    async def run_steps(
        self,
        steps: Iterable[Source | models.Step],
        *,
        stop_on_error: bool = True,
        timeout: float | None = None,
        idempotency_key: str | None = None,
    ) -> list[Result]:
        """Run several sources in order, and wait until all have finished.

        Each source is an execution. No other execution of the session runs in between. The server
        accepts all sources or none.

        Parameters
        ----------
        steps
            Sources, as for `run`, or `Step` objects with their own timeout, placement and values.
        stop_on_error
            If a step ends with any status but ``ok``, cancel the steps after it.
        timeout
            Seconds that a step without its own timeout may run; the session's limit when None.
        idempotency_key
            Repeated requests with the same key and steps return the same executions.

        Raises
        ------
        AgentExecError
            The server refused the request; no code was run.
        """
        request = steps_request(steps, stop_on_error=stop_on_error, timeout=timeout)
        accepted = await self._accept(request, idempotency_key, FIRST_WAIT_SECONDS)
        return [Result(await finished(self._connection, each)) for each in accepted]

    async def submit_steps(
        self,
        steps: Iterable[Source | models.Step],
        *,
        stop_on_error: bool = True,
        timeout: float | None = None,
        idempotency_key: str | None = None,
    ) -> list[Result]:
        """Submit several sources, and return their executions without waiting for their end.

        `AgentExecClient.wait` waits for an execution, and `AgentExecClient.cancel` cancels it.
        Parameters and errors are those of `run_steps`.
        """
        request = steps_request(steps, stop_on_error=stop_on_error, timeout=timeout)
        return [Result(each) for each in await self._accept(request, idempotency_key, 0.0)]

    async def _accept(
        self, steps: models.RunSteps, key: str | None, wait: float
    ) -> list[models.Execution]:
        return (await self._submit("steps", steps, key, wait, models.Steps)).executions

    async def run_cell(
        self,
        cell_id: str,
        *,
        source_sha256: str | None = None,
        idempotency_key: str | None = None,
        raise_on_error: bool = False,
        **options: Unpack[ExecuteOptions],
    ) -> Result:
        """Run an existing cell of the session's notebook, as a user does.

        Parameters
        ----------
        cell_id
            Id of the cell; `cells` lists the ids.
        source_sha256
            Hash of the source that was read. Refused if the cell's source has changed since.
        values, timeout, queue_timeout, max_output_bytes, idempotency_key, raise_on_error
            As for `run`.

        Raises
        ------
        CellNotFound
            There is no such cell; ``detail["cell_ids"]`` lists the notebook's cells.
        DocumentChanged
            The cell's source has changed; ``detail`` has its current source.
        """
        if options.get("placement") is not None:
            raise InvalidRequest(
                "placement: run_cell runs the cell where it is.", field="placement"
            )
        sha256 = None if source_sha256 is None else Digest(source_sha256)
        options["placement"] = models.Placement(cell=CellId(cell_id), source_sha256=sha256)
        return await self.run(
            None, idempotency_key=idempotency_key, raise_on_error=raise_on_error, **options
        )

    def stream(
        self,
        source: Source | None,
        *,
        idempotency_key: str | None = None,
        **options: Unpack[ExecuteOptions],
    ) -> AsyncGenerator[Event, None]:
        """Run `source` once and yield its events as they happen. The last one is `Finished`.

        The code is sent when the iteration starts. If you stop the iteration, the execution
        continues. Parameters and errors are those of `run`.
        """
        request = execute_request(source, options)
        return self._stream(request, idempotency_key)

    async def _stream(
        self, execute: models.Execute, key: str | None
    ) -> AsyncGenerator[Event, None]:
        accepted = await self._execute(execute, key, 0.0)
        async with aclosing(follow(self._connection, accepted.id)) as events:
            async for event in events:
                yield event

    async def cells(
        self, *, outputs: bool = True, text_limit: int | None = None, proposed: bool = False
    ) -> models.NotebookCells:
        """Read the current state of the session's notebook; see `AgentExecClient.cells`.

        Parameters
        ----------
        proposed
            Read it as it would be if the user kept the edits that the session has proposed.
        """
        path, by = await self._notebook_path(), self.id if proposed else None
        return await read_cells(self._connection, path, outputs, text_limit, by)

    async def edit(
        self,
        edits: Sequence[models.Edit],
        *,
        hash: str | None = None,
        purpose: str | None = None,
    ) -> models.NotebookEdited:
        """Edit the cells of the session's notebook, or propose that to the user.

        If the answer has a `proposal_id`, the notebook is unchanged until the user keeps the edits,
        cell by cell. The next answers of the session have `decided_edits`; see also `proposals`.

        Either all edits are applied, in order, or none. If the connection breaks, the edits are not
        sent again. Call `cells` to see whether they were applied.

        Parameters
        ----------
        edits
            `InsertCell`, `ReplaceCell`, `MoveCell`, `DeleteCell`, `SplitCell`, `ClearOutputs`.
        hash
            Hash of the notebook, as returned by `cells`. Refused if its cells have changed since.
        purpose
            Why you edit them. It is recorded, and shown to the user who decides.

        Raises
        ------
        DocumentChanged
            The notebook or a cell has changed since it was read; ``detail`` has its current state.
        CellNotFound
            An edit names a cell that does not exist.
        DocumentUnwritable
            The file is read-only, or is not a notebook of a known format.
        """
        request = models.EditNotebook(
            session_id=SessionId(self.id),
            edits=list(edits),
            hash=None if hash is None else Digest(hash),
            purpose=purpose,
        )
        path = cells_path(await self._notebook_path())
        return await self._connection.patch(path, request, models.NotebookEdited)

    async def proposals(self) -> list[models.Proposal]:
        """Return the edits that the session has proposed, and what became of each."""
        connection = self._connection
        listed = await connection.get("/proposals", models.ProposalList, session_id=self.id)
        return listed.proposals

    async def keep_edits(self, ids: Sequence[str] | None = None) -> list[models.Proposal]:
        """Make proposed edits in the notebook, as a user; those that do not fit are obsolete.

        Parameters
        ----------
        ids
            Ids of the edits; all that are open when None.
        """
        return await self._decide_edits("keep", models.KeepEdits(ids=_ids(ids)))

    async def reject_edits(
        self, ids: Sequence[str] | None = None, *, reason: str | None = None
    ) -> list[models.Proposal]:
        """Reject proposed edits, as a user.

        Parameters
        ----------
        ids
            Ids of the edits; all that are open when None.
        reason
            What the agent reads.
        """
        return await self._decide_edits("reject", models.RejectEdits(ids=_ids(ids), reason=reason))

    async def undo_edits(self, ids: Sequence[str] | None = None) -> list[models.Proposal]:
        """Undo the decisions about kept or rejected edits, as a user: they are open again.

        Kept ones are taken out of the notebook. An edit stays kept if its cell is not as the agent
        left it.

        Parameters
        ----------
        ids
            Ids of the edits; all that were kept or rejected when None.
        """
        return await self._decide_edits("undo", models.DecideEdits(ids=_ids(ids)))

    async def _decide_edits(
        self, what: Literal["keep", "reject", "undo"], request: models.DecideEdits
    ) -> list[models.Proposal]:
        path = f"{self._path}/proposals/{what}"
        return (await self._connection.post(path, request, models.ProposalList)).proposals

    async def _notebook_path(self) -> str:
        """Return the current path of the session's notebook, which may have been renamed."""
        info = await get_session(self._connection, self.id)
        if info.path is None:
            raise InvalidRequest(
                "This session has no notebook: open one with notebook=.", field="session_id"
            )
        return info.path

    async def variables(
        self, match: str | None = None, *, limit: int | None = None
    ) -> models.VariableList:
        """List the variables in the kernel, sorted by name. Works also while code runs.

        Parameters
        ----------
        match
            Only variables whose names contain this text, in any case.
        limit
            Maximum number of variables, up to 500.

        Raises
        ------
        KernelBusy
            The kernel runs code and cannot answer meanwhile; ``detail`` names what runs.
        LanguageNotSupported
            The kernel is not a Python kernel.
        """
        path = f"{self._path}/variables"
        return await self._connection.get(path, models.VariableList, match=match, limit=limit)

    async def packages(
        self, match: str | None = None, *, limit: int | None = None
    ) -> models.PackageList:
        """List the distributions that code in the kernel can import, with their module names.

        Parameters and errors are those of `variables`.
        """
        path = f"{self._path}/packages"
        return await self._connection.get(path, models.PackageList, match=match, limit=limit)

    async def executions(self) -> AsyncGenerator[Result, None]:
        """Yield the session's executions in order."""
        async for page in self._connection.pages(f"{self._path}/executions", models.ExecutionList):
            for each in page.executions:
                yield Result(each)

    async def withdraw_grant(self) -> models.Session:
        """Withdraw the agent's grant in the session's kernel, as a user."""
        self.info = await self._connection.delete(f"{self._path}/grant", models.Session)
        return self.info

    async def interrupt(self, *, queued: bool = False) -> None:
        """Interrupt the kernel. In a user's kernel, interrupt only this session's executions.

        Parameters
        ----------
        queued
            Also cancel the session's executions that wait. In a user's kernel, they always are.
        """
        request = models.InterruptKernel(queued=queued)
        self.info = await self._connection.post(f"{self._path}/interrupt", request, models.Session)

    async def restart(self) -> None:
        """Restart the kernel. All variables are lost.

        Raises
        ------
        KernelNotOwned
            It is a user's kernel, which only the user may restart.
        """
        path = f"{self._path}/restart"
        self.info = await self._connection.post(path, models.RestartKernel(), models.Session)

    async def close(self) -> None:
        """Close the session and shut down its scratch kernel. A user's kernel keeps running."""
        with suppress(SessionClosed):  # it has been closed already
            path, request = f"{self._path}/close", models.CloseSession()
            await self._connection.post(path, request, models.Session, repeated=True)

    async def guide(self) -> str:
        """Return the guide for a language model that works in this session.

        It is Markdown for a system message. It explains how the kernel keeps its state, the meaning
        of each status and how to react, and whose kernel it is.
        """
        return (await self._connection.get(f"{self._path}/guide", models.Guide)).text

    @overload
    async def export(
        self, path: None = None, *, clean: bool = False, share: bool = False
    ) -> dict[str, Any]: ...

    @overload
    async def export(
        self,
        path: str | PathLike[str],
        *,
        clean: bool = False,
        share: bool = False,
        progress: Progress | None = None,
    ) -> Path: ...

    async def export(
        self,
        path: str | PathLike[str] | None = None,
        *,
        clean: bool = False,
        share: bool = False,
        progress: Progress | None = None,
    ) -> dict[str, Any] | Path:
        """Return the session as an nbformat 4.5 notebook, or write it to `path` and return that.

        `clean` is for git, nbdime, jupytext and papermill. The notebook is then indented, and has
        no metadata of this extension, only cell ids that lead to the record.

        `share` is for somebody who does not have the record: the purposes are headings, what
        failed is folded, and the cells of the session's notebook that it needs stand before it. The
        server runs all cells in a trial, in an empty kernel, and the notebook says how that ended.

        `progress` is called with the number of bytes each time that some were written.
        """
        address, connection = f"{self._path}/notebook", self._connection
        if share:
            asked = models.ShareSession()
            pieces = connection.pieces(f"{address}/share", asked, read_timeout=SHARE_SECONDS)
        else:
            pieces = connection.pieces(address, clean=clean or None)
        if path is not None:
            return await save(connection, pieces, path, progress)
        return decoded(await joined(pieces), dict[str, Any])

    async def restore(
        self,
        *,
        leave_out: Iterable[str] = (),
        dry_run: bool = False,
        wait: float = WAIT_SECONDS,
    ) -> models.Restoration:
        """Run again what ran in the session's last kernel, in order, but not what was stopped.

        Code that raised an error runs again too. A new failure stops the rest.

        If the session is closed, it runs in a new one: see `session_id` of the answer.

        Parameters
        ----------
        leave_out
            Ids of executions that do not run again.
        dry_run
            Only return what would run.
        wait
            Seconds to wait until all has run.
        """
        request = models.Restore(
            leave_out=[ExecutionId(id) for id in leave_out], dry_run=dry_run, wait=wait
        )
        path, timeout = f"{self._path}/restore", wait + ANSWER_SECONDS
        return await self._connection.post(path, request, models.Restoration, read_timeout=timeout)

    async def requirements(self) -> str:
        """Return what was installed where the session's code ran last, as a `requirements.txt`.

        A comment says so if the record does not know it.
        """
        return (await joined(self._connection.pieces(f"{self._path}/requirements"))).decode()

    @overload
    async def journal(self, path: None = None) -> bytes: ...

    @overload
    async def journal(
        self, path: str | PathLike[str], *, progress: Progress | None = None
    ) -> Path: ...

    async def journal(
        self,
        path: str | PathLike[str] | None = None,
        *,
        progress: Progress | None = None,
    ) -> bytes | Path:
        """Return the raw record, or write it to `path` and return that.

        `progress` is that of `export`.
        """
        pieces = self._connection.pieces(f"{self._path}/journal")
        if path is not None:
            return await save(self._connection, pieces, path, progress)
        return await joined(pieces)


def _ids(ids: Sequence[str] | None) -> list[ProposedEditId] | None:
    return None if ids is None else [ProposedEditId(id) for id in ids]
