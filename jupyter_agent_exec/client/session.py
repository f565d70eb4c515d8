"""An agent session: the code, the notebook, the kernel and the files that are worked with in it."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing, contextmanager, suppress
from inspect import isawaitable
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal, overload
from urllib.parse import quote
from uuid import uuid4

import msgspec
from msgspec.structs import replace

from .. import models
from ..errors import AgentExecError, InputNotAsked, InvalidRequest, SessionClosed
from ..types import FINAL_STATUSES, Digest, SessionId, Verdict
from .connection import Backoff, Connection, Request, json_request
from .errors import ClientError, ConnectionLost, ServerUnreachable
from .events import Event, follow
from .replies import Reply, check, read
from .requests import (
    API,
    Place,
    cell_of,
    contents_path,
    execute_request,
    header_value,
    segment,
    steps_request,
    with_query,
)
from .result import Result

WAIT_SECONDS: Final = 30.0
"""How long one request waits for an execution; then another one does."""

FIRST_WAIT_SECONDS: Final = 5.0
"""How long the request that brings the code waits, before the user reads that they must decide."""

ANSWER_SECONDS: Final = 30.0
"""Seconds that the server may take in addition."""

_PARTIAL: Final = 206

_execution = msgspec.json.Decoder(models.Execution)
_steps = msgspec.json.Decoder(models.Steps)
_executions = msgspec.json.Decoder(models.ExecutionList)
_session = msgspec.json.Decoder(models.Session)
_guide = msgspec.json.Decoder(models.Guide)
_notebook: msgspec.json.Decoder[dict[str, Any]] = msgspec.json.Decoder(dict[str, Any])
_cells = msgspec.json.Decoder(models.NotebookCells)
_edited = msgspec.json.Decoder(models.NotebookEdited)
_variables = msgspec.json.Decoder(models.VariableList)
_packages = msgspec.json.Decoder(models.PackageList)
_completions = msgspec.json.Decoder(models.Completions)
_inspection = msgspec.json.Decoder(models.Inspection)
_files = msgspec.json.Decoder(models.SessionFileList)
_file = msgspec.json.Decoder(models.SessionFile)


class AsyncSession:
    """An agent session; an async context manager that closes it at the end.

    Parameters
    ----------
    connection
        The client's connection.
    info
        The session as the server answered it.
    """

    def __init__(self, connection: Connection, info: models.Session) -> None:
        self._connection = connection
        self.info = info
        """The session as it was when this object was made or the kernel restarted."""

    @property
    def id(self) -> str:
        """The session's id."""
        return self.info.id

    @property
    def _path(self) -> str:
        return f"/sessions/{segment(self.info.id)}"

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
        on_input: Callable[[models.Input], str | Awaitable[str]] | None = None,
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
        request = json_request(
            "POST",
            f"{self._path}/executions",
            replace(execute, wait=wait),
            headers=((b"Idempotency-Key", header_value(key or uuid4().hex)),),
            read_timeout=wait + ANSWER_SECONDS,
        )
        return read(await self._connection.send_persistently(request), _execution)

    async def _answer(
        self, execution: models.Execution, asked: models.Input, value: str
    ) -> models.Execution:
        """Answer an open input request; wait until the code ends or asks again."""
        with suppress(InputNotAsked):
            await give_input(self._connection, execution.id, value, asked.asked_at)
        current = await get_execution(self._connection, execution.id)
        return await finished(self._connection, current, until_input=True)

    async def run_steps(
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
        accepted = await self._accept(request, idempotency_key, FIRST_WAIT_SECONDS)
        return [Result(await finished(self._connection, each)) for each in accepted]

    async def submit_steps(
        self,
        steps: Iterable[str | models.Step],
        *,
        stop_on_error: bool = True,
        timeout: float | None = None,
        idempotency_key: str | None = None,
    ) -> list[Result]:
        """Submit several sources, and return their executions without waiting for their end.

        `AgentExecClient.wait` waits for one, `AgentExecClient.cancel` takes it back. Parameters and
        errors are those of `run_steps`.
        """
        request = steps_request(steps, stop_on_error=stop_on_error, timeout=timeout)
        return [Result(each) for each in await self._accept(request, idempotency_key, 0.0)]

    async def _accept(
        self, steps: models.RunSteps, key: str | None, wait: float
    ) -> list[models.Execution]:
        request = json_request(
            "POST",
            f"{self._path}/steps",
            replace(steps, wait=wait),
            headers=((b"Idempotency-Key", header_value(key or uuid4().hex)),),
            read_timeout=wait + ANSWER_SECONDS,
        )
        return read(await self._connection.send_persistently(request), _steps).executions

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
        """Run a cell of the session's notebook in its place, like a user.

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
    ) -> AsyncGenerator[Event, None]:
        """Run `source` once and yield its events as they happen. The last one is `Finished`.

        It is sent when the first event is asked for. Whoever stops listening does not stop the
        execution. Parameters and errors are those of `run`.
        """
        request = execute_request(
            source, timeout, queue_timeout, max_output_bytes, placement, revises, values
        )
        return self._stream(request, idempotency_key)

    async def _stream(
        self, execute: models.Execute, key: str | None
    ) -> AsyncGenerator[Event, None]:
        accepted = await self._execute(execute, key, 0.0)
        async with aclosing(follow(self._connection, accepted.id)) as events:
            async for event in events:
                yield event

    async def cells(
        self, *, outputs: bool = True, text_limit: int | None = None
    ) -> models.NotebookCells:
        """Read the session's notebook as it is now, as `AgentExecClient.cells` does."""
        path = await self._notebook_path()
        return await read_cells(self._connection, path, outputs, text_limit)

    async def edit(
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
        request = models.EditNotebook(
            session_id=SessionId(self.id),
            edits=list(edits),
            hash=None if hash is None else Digest(hash),
        )
        path = _cells_path(await self._notebook_path())
        return await self._connection.send_model("PATCH", path, request, _edited)

    async def _notebook_path(self) -> str:
        """Return where the session's notebook is now: it may have been renamed meanwhile."""
        info = await get_session(self._connection, self.id)
        if info.path is None:
            raise InvalidRequest(
                "This session has no notebook: open one with notebook=.", field="session_id"
            )
        return info.path

    async def variables(
        self, match: str | None = None, *, limit: int | None = None
    ) -> models.VariableList:
        """List the variables in the kernel by name, also while code runs there.

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
        path = with_query(f"{self._path}/variables", match=match, limit=limit)
        return await self._connection.get(path, _variables)

    async def complete(self, code: str, cursor_pos: int | None = None) -> models.Completions:
        """Return completions at a position in code, by default at its end.

        Parameters
        ----------
        cursor_pos
            Code points from the start of the code.

        Raises
        ------
        KernelBusy
            Code runs, and the kernel can answer nothing meanwhile; ``detail`` says whose.
        """
        request = json_request(
            "POST", f"{self._path}/complete", models.Complete(code=code, cursor_pos=cursor_pos)
        )
        return read(await self._connection.send_persistently(request), _completions)

    async def inspect(
        self, code: str, cursor_pos: int | None = None, *, detail_level: Literal[0, 1] = 0
    ) -> models.Inspection:
        """Return the documentation of the object at a position in code, by default at its end.

        Parameters
        ----------
        detail_level
            1 adds the source, where the kernel has it.
        cursor_pos, Raises
            As for `complete`.
        """
        request = json_request(
            "POST",
            f"{self._path}/inspect",
            models.Inspect(code=code, cursor_pos=cursor_pos, detail_level=detail_level),
        )
        return read(await self._connection.send_persistently(request), _inspection)

    async def packages(
        self, match: str | None = None, *, limit: int | None = None
    ) -> models.PackageList:
        """List what code in the kernel can import: distributions, with the names of their modules.

        Parameters and errors are those of `variables`.
        """
        path = with_query(f"{self._path}/packages", match=match, limit=limit)
        return await self._connection.get(path, _packages)

    async def executions(self) -> AsyncGenerator[Result, None]:
        """Give the session's executions in order."""
        after: int | None = None
        while True:
            path = with_query(f"{self._path}/executions", after=after)
            page = await self._connection.get(path, _executions)
            for each in page.executions:
                yield Result(each)
            after = page.next_after
            if after is None:
                return

    async def grant_approval(self, minutes: float) -> models.Session:
        """Approve all executions of the session for some time, as a person; 0 ends that."""
        request = models.GrantApproval(minutes=minutes)
        self.info = await self._connection.send_model(
            "PUT", f"{self._path}/approval", request, _session
        )
        return self.info

    async def review(
        self, verdict: Verdict | None, *, comment: str | None = None
    ) -> models.Session:
        """Review all executions of the session so far, as a person.

        Parameters are those of `AgentExecClient.review`.
        """
        request = models.SetReview(verdict=verdict, comment=comment)
        self.info = await self._connection.send_model(
            "PUT", f"{self._path}/review", request, _session
        )
        return self.info

    async def interrupt(self) -> None:
        """Interrupt what runs; in a person's kernel only what this session runs or has waiting."""
        await self._connection.act(f"{self._path}/interrupt")

    async def restart(self) -> None:
        """Get a fresh kernel, without the previous variables.

        Raises
        ------
        KernelNotOwned
            It is a person's kernel: only they restart it.
        """
        await self._connection.act(f"{self._path}/restart")
        self.info = await get_session(self._connection, self.id)

    async def close(self) -> None:
        """Close the session and shut its scratch kernel down. A person's stays, and the record."""
        with suppress(SessionClosed):  # somebody else was first
            await self._connection.act_persistently(f"{self._path}/close")

    async def guide(self) -> str:
        """Return the guide for a language model that works in this session.

        It is Markdown for a system message: how the kernel keeps its state, what statuses mean and
        what to do then, whose kernel it is.
        """
        return (await self._connection.get(f"{self._path}/guide", _guide)).text

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
        route = with_query(f"{self._path}/notebook", clean=clean or None)
        if path is not None:
            return await self._save(self._connection.pieces(route), Path(path))
        content = b"".join([piece async for piece in self._connection.pieces(route)])
        return read(Reply(200, content), _notebook)

    @overload
    async def journal(self, path: None = None) -> bytes: ...

    @overload
    async def journal(self, path: str | PathLike[str]) -> Path: ...

    async def journal(self, path: str | PathLike[str] | None = None) -> bytes | Path:
        """Return the raw record, or write it to `path` and return that."""
        pieces = self._connection.pieces(f"{self._path}/journal")
        if path is not None:
            return await self._save(pieces, Path(path))
        return b"".join([piece async for piece in pieces])

    # -- files -------------------------------------------------------------------------------------

    async def files(
        self, path: str = "", *, recursive: bool = False
    ) -> AsyncGenerator[models.SessionFile, None]:
        """Yield the files in the session's folder, by path.

        Parameters
        ----------
        path
            Of a folder in it.
        recursive
            Give what is in the folders there too.
        """
        after: str | None = None
        while True:
            query = with_query(
                f"{self._path}/files", path=path or None, recursive=recursive or None, after=after
            )
            page = await self._connection.get(query, _files)
            for each in page.files:
                yield each
            after = page.next_after
            if after is None:
                return

    async def upload(
        self,
        source: bytes | str | PathLike[str],
        name: str | None = None,
        *,
        etag: str | None = None,
    ) -> models.SessionFile:
        """Upload a file to the session's folder.

        Parameters
        ----------
        source
            A file's path, or bytes.
        name
            Its path there, with slashes; the file's own name when None.
        etag
            Of the file that it replaces, as `file_etag` told it. What the session left there
            itself is replaced without.

        Raises
        ------
        FileNotOwned
            A file is there that is not as the session left it.
        PreconditionFailed
            The file that is there is not the one with this ETag.
        """
        name, content = _to_upload(source, name)
        headers = _if_match(etag)
        request = Request("PUT", self._file_path(name), headers=headers, upload=content)
        return read(await self._connection.send(request), _file)

    @overload
    async def download(self, name: str, to: None = None) -> bytes: ...

    @overload
    async def download(self, name: str, to: str | PathLike[str]) -> Path: ...

    async def download(self, name: str, to: str | PathLike[str] | None = None) -> bytes | Path:
        """Return a file of the session's folder, or write it to `to` and return that path.

        If the connection breaks, it goes on from there, unless the file has changed.

        Parameters
        ----------
        name
            Its path there.
        to
            A file, or a folder for one of that name.
        """
        pieces = self._pieces_of(name)
        if to is None:
            return b"".join([piece async for piece in pieces])
        target = _download_target(name, to)
        with _beside(target) as part:
            await self._save(pieces, part)
        return target

    async def _pieces_of(self, name: str) -> AsyncGenerator[bytes, None]:
        """Yield a file's content. After a lost connection, reconnect and continue."""
        path = self._file_path(name)
        backoff = Backoff()
        taken, etag = 0, ""
        while True:
            headers = (
                ((b"Range", b"bytes=%d-" % taken), (b"If-Range", etag.encode())) if taken else ()
            )
            request = Request("GET", path, headers=headers)
            try:
                async with self._connection.download(request) as download:
                    if taken and download.status != _PARTIAL:
                        raise _FileChanged("The connection broke, and the file has changed since.")
                    etag = download.etag or ""
                    async for piece in download.pieces:
                        backoff.reset()
                        taken += len(piece)
                        yield piece
                    return
            except _FileChanged:
                raise
            except ServerUnreachable as error:
                pause = backoff.after(error)
            await self._connection.sleep(pause)

    async def _save(self, pieces: AsyncGenerator[bytes, None], target: Path) -> Path:
        async with aclosing(pieces):
            with await self._connection.in_thread(lambda: target.open("wb")) as file:
                async for piece in pieces:
                    await self._connection.in_thread(file.write, piece)
        return target

    async def file_etag(self, name: str) -> str:
        """Return the current ETag of a file, which is needed to replace it."""
        path = self._file_path(name)
        reply = await self._connection.send_persistently(Request("HEAD", path))
        if reply.status == 404:  # an answer to HEAD has no body with a message
            reply = await self._connection.send_persistently(Request("GET", path))
        check(reply)
        return reply.etag or ""

    async def delete_file(self, name: str, *, etag: str | None = None) -> None:
        """Delete a file of the session's folder, or an empty folder.

        Parameters and errors are those of `upload`.
        """
        request = Request("DELETE", self._file_path(name), headers=_if_match(etag))
        check(await self._connection.send(request))

    def _file_path(self, name: str) -> str:
        if any(part in ("", ".", "..") for part in name.split("/")):  # they would change the path
            raise InvalidRequest(f"{name!r} is no path below the session's folder.", field="path")
        return f"{API}{self._path}/files/{quote(name)}"


# -- for the client --------------------------------------------------------------------------------


async def get_session(connection: Connection, session_id: str) -> models.Session:
    """Return a session as it is."""
    return await connection.get(f"/sessions/{segment(session_id)}", _session)


async def get_execution(connection: Connection, execution_id: str) -> models.Execution:
    """Return an execution as it is."""
    return await connection.get(f"/executions/{segment(execution_id)}", _execution)


async def give_input(
    connection: Connection, execution_id: str, value: str, asked_at: str | None
) -> models.Execution:
    """Answer the input request of an execution."""
    path = f"/executions/{segment(execution_id)}/input"
    request = models.GiveInput(value=value, asked_at=asked_at)
    return await connection.send_model("POST", path, request, _execution)


async def read_cells(
    connection: Connection, path: str, outputs: bool, text_limit: int | None
) -> models.NotebookCells:
    """Read the notebook at a contents path."""
    query = with_query(_cells_path(path), outputs=outputs and None, text_limit=text_limit)
    return await connection.get(query, _cells)


async def finished(
    connection: Connection, current: models.Execution, *, until_input: bool = False
) -> models.Execution:
    """Wait until an execution has finished, however long that takes.

    Parameters
    ----------
    until_input
        Wait no longer when its code asks for input.
    """
    is_printed = False
    while current.status not in FINAL_STATUSES:
        is_printed = is_printed or print_needed_decision(current) is not None
        asked = current.input
        if until_input and asked is not None:
            break
        path = with_query(
            f"/executions/{current.id}",
            wait=f"{WAIT_SECONDS:g}",
            asked_at=None if asked is None else asked.asked_at,
        )
        current = await connection.get(path, _execution, WAIT_SECONDS + ANSWER_SECONDS)
    return current


def print_needed_decision(current: models.Execution) -> str | None:
    """Print on standard error what the user must decide first; return that, or None for nothing.

    Nothing else would show why a program stands still, perhaps for hours.
    """
    who = None if current.waiting_for is None else current.waiting_for.who
    if current.status == "awaiting_approval":
        needs = f"your approval: see JupyterLab, or `jupyter agent-exec approve {current.id}`"
    elif who == "approval":
        needs = "your approval of code before it: see JupyterLab, or `jupyter agent-exec pending`"
    elif who == "pause":
        needs = "you to let agents go on: see JupyterLab, or `jupyter agent-exec resume`"
    else:
        return None
    sys.stderr.write(f"jupyter-agent-exec: execution {current.id} waits for {needs}.\n")
    sys.stderr.flush()
    return needs


class _FileChanged(ConnectionLost):
    """The file has changed while it was read."""


def _cells_path(path: str) -> str:
    return f"/notebooks/{contents_path(path)}/cells"


def _to_upload(source: bytes | str | PathLike[str], name: str | None) -> tuple[str, bytes | Path]:
    """Return the name under which something is uploaded, and where its bytes are."""
    if isinstance(source, bytes):
        if name is None:
            raise InvalidRequest("Bytes need a name.", field="name")
        return name, source
    path = Path(source)
    return unicodedata.normalize("NFC", path.name) if name is None else name, path


def _download_target(name: str, to: str | PathLike[str]) -> Path:
    """Return the file that a download becomes: `to`, or one in that folder."""
    path = Path(to)
    return path / name.rpartition("/")[2] if path.is_dir() else path


@contextmanager
def _beside(target: Path) -> Iterator[Path]:
    """Give a file to write to; it replaces the target when it is complete, and else is removed."""
    part = target.with_name(f".{target.name}.part")
    try:
        yield part
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def _if_match(etag: str | None) -> tuple[tuple[bytes, bytes], ...]:
    return () if etag is None else ((b"If-Match", etag.encode("latin-1", "replace")),)
