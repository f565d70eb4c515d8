"""The client: find a server, open sessions, read the history, and send a user's decisions."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from typing import Final, Unpack
from uuid import uuid4

import httpx2
from msgspec.structs import replace

from .. import models
from ..types import ApprovalMode, Digest, EditMode, GrantSpan, Verdict
from .calls import finished, get_execution, get_session, give_input, read_cells
from .connection import Connection
from .events import Event, follow
from .requests import (
    ErasureOptions,
    Preloadable,
    SearchFilters,
    SessionFilters,
    require_finite,
    segment,
    session_target,
    to_preload,
)
from .result import Result
from .session import AsyncSession

OPENING_SECONDS: Final = 120.0
"""Seconds within which the server must open a session, including the start of its kernel."""

SCOPES: Final = ("exec:scratch", "files")
"""Default scopes of a token: run code in scratch kernels, and use their files."""


class AsyncAgentExecClient:
    """Run code in a user's Jupyter, where the user can see it.

    As an async context manager, the client closes its connections at the end. Other use is possible
    too. Tasks of one event loop may share a client.

    Parameters
    ----------
    url
        The Jupyter server's base URL, or a URL with ``?token=`` as Jupyter prints it. When None,
        the environment variable ``JUPYTER_AGENT_EXEC_URL``; if it is not set, the newest server on
        this machine that answers.
    token
        An agent token or the server's own token. When None, the one in `url`, else the environment
        variable ``JUPYTER_AGENT_EXEC_TOKEN``, else the token of a server on this machine.
    transport
        The transport that sends requests, such as ``httpx2.AsyncHTTPTransport(proxy=…)``.

    Raises
    ------
    InvalidAddress
        `url` is not a valid address of a Jupyter server, or has another token than `token`.

    Examples
    --------
    >>> async with AsyncAgentExecClient() as client:
    ...     async with await client.open_session(agent="analyst") as session:
    ...         print((await session.run("1 + 1")).text)
    2
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self._connection = Connection(url, token, transport)

    @classmethod
    def over(cls, connection: Connection) -> AsyncAgentExecClient:
        """Return a client that uses `connection`."""
        client = cls.__new__(cls)
        client._connection = connection
        return client

    async def __aenter__(self) -> AsyncAgentExecClient:
        return await self.connect()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def connect(self) -> AsyncAgentExecClient:
        """Find the server, and return this client. Otherwise, the first request finds it.

        Raises
        ------
        NoServerFound
            No server was given, and no server on this machine answers.
        """
        await self._connection.connect()
        return self

    async def close(self) -> None:
        """Close the connections. Sessions stay open."""
        await self._connection.close()

    @property
    def address(self) -> str | None:
        """The address of the server; None until a server was found."""
        return self._connection.address

    async def status(self) -> models.ServerStatus:
        """Return the state of the extension."""
        return await self._connection.get("/status", models.ServerStatus)

    async def open_session(
        self,
        agent: str | models.Agent = "python-client",
        *,
        notebook: str | None = None,
        create: bool = False,
        kernel_id: str | None = None,
        kernel_name: str | None = None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        isolated: bool = False,
        title: str | None = None,
        client_id: str | None = None,
        timeout: float | None = None,
        max_output_bytes: int | None = None,
        restart_if_interrupt_ignored: bool | None = None,
        init_source: str | None = None,
        preload: Iterable[Preloadable] = (),
        allow_stdin: bool = False,
    ) -> AsyncSession:
        """Open a session in a notebook, in a running kernel, or else in a scratch kernel.

        Parameters
        ----------
        agent
            The agent's name, or an `Agent` with its version and model too.
        notebook
            Contents path of a user's notebook. Code runs in its kernel, and each execution becomes
            a cell.
        create
            Create an empty notebook if none exists at the path.
        kernel_id
            Id of a running kernel, such as a console's. Code runs in it, without a document.
        kernel_name
            Kernelspec to start for a scratch kernel or for a notebook without a kernel. When None,
            the server's default or the notebook's own.
        cwd
            Contents path of the folder in which a scratch kernel starts; the server's root folder
            when None.
        env
            Environment variables of a scratch kernel. The server's configuration lists the allowed
            names.
        isolated
            Isolate a scratch kernel from the server, its network and its files. The kernel can then
            write only to `cwd`. When `cwd` is None, it gets a folder of its own, which is deleted
            when the session closes.
        title
            Purpose of the session, in words.
        client_id
            Identifies the client. The same id and target return the client's open session.
        timeout
            Seconds each execution may run; the server's default when None.
        max_output_bytes
            UTF-8 bytes of output that are kept with a cell; the server's default when None.
        restart_if_interrupt_ignored
            Replace the kernel if code still runs after an interrupt and the grace time.
        init_source
            Code that runs first in each of the session's kernels.
        preload
            Modules and functions to load before that, in Python kernels only: modules by name
            (``"pandas as pd"``), functions, or results of `function`, which adds requirements and
            imports.
        allow_stdin
            Whether running code may request input; see `Session.run`.

        Raises
        ------
        InvalidRequest
            Some arguments cannot be combined, such as `notebook` and `kernel_id`.
        AgentExecError
            The server refused the request; see `jupyter_agent_exec.errors`.
        ServerUnreachable
            There is no connection to the server.
        """
        require_finite("limits.timeout", timeout)
        request = models.OpenSession(
            agent=models.Agent(name=agent) if isinstance(agent, str) else agent,
            target=session_target(
                notebook=notebook,
                kernel_id=kernel_id,
                kernel_name=kernel_name,
                create=create,
                cwd=cwd,
                env=env,
                isolated=isolated,
            ),
            title=title,
            # With a client id, the server opens only one session, even if the request is repeated.
            client_id=f"once-{uuid4().hex}" if client_id is None else client_id,
            limits=models.Limits(
                timeout=timeout,
                max_output_bytes=max_output_bytes,
                restart_if_interrupt_ignored=restart_if_interrupt_ignored,
            ),
            init_source=init_source,
            preload=to_preload(preload),
            allow_stdin=allow_stdin,
        )
        info = await self._connection.post(
            "/sessions", request, models.Session, repeated=True, read_timeout=OPENING_SECONDS
        )
        return AsyncSession(self._connection, info)

    async def session(self, session_id: str) -> AsyncSession:
        """Return the session with this id, to inspect or continue it."""
        return AsyncSession(self._connection, await get_session(self._connection, session_id))

    async def sessions(
        self, **filters: Unpack[SessionFilters]
    ) -> AsyncGenerator[AsyncSession, None]:
        """Yield sessions: first the open ones, then the closed ones, each newest first.

        Parameters
        ----------
        status, agent, target, since, until, unreviewed
            Filters, as in `GET /sessions`. A session must pass all of them; None matches any.
        """
        seen: set[str] = set()
        async for page in self._connection.pages("/sessions", models.SessionList, **filters):
            for info in page.sessions:
                if info.id not in seen:  # a session closed after the last page would come twice
                    seen.add(info.id)
                    yield AsyncSession(self._connection, info)

    async def execution(self, execution_id: str) -> Result:
        """Return the current state of an execution."""
        return Result(await get_execution(self._connection, execution_id))

    async def wait(self, execution_id: str) -> Result:
        """Wait until an execution has finished."""
        return Result(
            await finished(self._connection, await get_execution(self._connection, execution_id))
        )

    def follow(self, execution_id: str) -> AsyncGenerator[Event, None]:
        """Yield all events of an execution, past and future."""
        return follow(self._connection, execution_id)

    async def cancel(self, execution_id: str) -> None:
        """Cancel a waiting execution, or interrupt a running one.

        Raises
        ------
        AlreadyFinished
            The execution has finished.
        """
        path = f"/executions/{segment(execution_id)}/cancel"
        await self._connection.post(path, models.Cancel(), models.Execution, repeated=True)

    async def give_input(
        self, execution_id: str, value: str, *, asked_at: str | None = None
    ) -> Result:
        """Answer the input request of an execution.

        Parameters
        ----------
        asked_at
            The `asked_at` of the input request to answer. Refused if the code has made another
            request since.

        Raises
        ------
        InputNotAsked
            The code requests no input now, or somebody else has answered.
        """
        return Result(await give_input(self._connection, execution_id, value, asked_at))

    async def approvals(self) -> models.Approvals:
        """Return the waiting executions, the policy, and whether agents are paused."""
        return await self._connection.get("/approvals", models.Approvals)

    async def proposals(self, path: str | None = None) -> list[models.Proposal]:
        """Return the proposed edits that are open: of one notebook, or of all.

        Parameters
        ----------
        path
            Contents path of the notebook; None for all.
        """
        return (await self._connection.get("/proposals", models.ProposalList, path=path)).proposals

    async def approve(
        self,
        execution_id: str,
        source_sha256: str,
        *,
        source: str | None = None,
        grant: GrantSpan | None = None,
    ) -> Result:
        """Approve a waiting execution, as a user.

        Parameters
        ----------
        execution_id
            The execution.
        source_sha256
            Hash of the source that the user saw. Another source is not approved.
        source
            A source to run instead.
        grant
            Let the agent run more code in this kernel without asking: until the kernel restarts
            (``"restart"``), or for an hour at most (``"hour"``).

        Raises
        ------
        AlreadyDecided
            The execution does not wait for approval, or no longer.
        ApprovalChanged
            The source or the kernel is not the one that the user saw.
        """
        request = models.Approve(source_sha256=Digest(source_sha256), source=source, grant=grant)
        path = f"/executions/{segment(execution_id)}/approve"
        return Result(await self._connection.post(path, request, models.Execution))

    async def reject(self, execution_id: str, reason: str | None = None) -> Result:
        """Reject a waiting execution, as a user. The agent gets the reason.

        Raises
        ------
        AlreadyDecided
            The execution does not wait for approval, or no longer.
        """
        request = models.Reject(reason=reason)
        path = f"/executions/{segment(execution_id)}/reject"
        return Result(await self._connection.post(path, request, models.Execution))

    async def set_policy(
        self,
        *,
        scratch: ApprovalMode | None = None,
        notebook: ApprovalMode | None = None,
        kernel: ApprovalMode | None = None,
        edits: EditMode | None = None,
    ) -> models.Approvals:
        """Change the approval policy as a user: for each kind of target, and for edits."""
        policy = models.SetPolicy(scratch=scratch, notebook=notebook, kernel=kernel, edits=edits)
        return await self._connection.put("/approvals/policy", policy, models.Approvals)

    async def unlock(self, passphrase: str) -> str:
        """Unlock decisions with the passphrase, on a server that requires one.

        This client can then decide for some minutes, until it is closed. A decision without it
        raises `PassphraseRequired`.

        Returns
        -------
        str
            The time at which the unlock ends, in RFC 3339.

        Raises
        ------
        PassphraseWrong
            The passphrase is wrong.
        TooManyRequests
            Too many wrong passphrases were sent. Try again after ``detail["retry_after"]`` seconds.
        NotFound
            The server has no passphrase.
        """
        request = models.Unlock(passphrase=passphrase)
        unlocked = await self._connection.post("/unlock", request, models.Unlocked)
        self._connection.show_unlock(unlocked.unlock)
        return unlocked.expires_at

    async def pause(self) -> models.Approvals:
        """Pause all agents, as a user. Running code continues."""
        pause = models.SetPause(paused=True)
        return await self._connection.put("/approvals/pause", pause, models.Approvals)

    async def resume(self) -> models.Approvals:
        """End a pause."""
        pause = models.SetPause(paused=False)
        return await self._connection.put("/approvals/pause", pause, models.Approvals)

    async def review(
        self, execution_id: str, verdict: Verdict | None, *, comment: str | None = None
    ) -> Result:
        """Review a finished execution, as a user.

        Parameters
        ----------
        execution_id
            The execution.
        verdict
            ``"approved"`` or ``"flagged"``; None for only a comment. None without a comment removes
            the review.
        comment
            The user's comment.

        Raises
        ------
        NotFinished
            The execution waits or runs.
        """
        request = models.SetReview(verdict=verdict, comment=comment)
        path = f"/executions/{segment(execution_id)}/review"
        return Result(await self._connection.put(path, request, models.Execution))

    async def erase(self, **what: Unpack[ErasureOptions]) -> models.Erasure:
        """Erase from the record of closed sessions, as a user. Name one thing to erase.

        Parameters
        ----------
        execution_id, session_id
            An execution, or a session.
        agent
            All sessions of agents with this name.
        username
            All sessions of a user, and what the user did in others.
        text
            All that contains this text.
        reason
            Why; it is recorded.
        dry_run
            Only tell what would go.
        """
        return await self._connection.post("/erasures", models.Erase(**what), models.Erasure)

    async def accept_break(self, name: str) -> models.ServerStatus:
        """Have the record signed on although it does not continue what was signed, as a user.

        Parameters
        ----------
        name
            The break's name, as `status` tells it.
        """
        request = models.AcceptBreak(name=name)
        return await self._connection.post("/accepted-breaks", request, models.ServerStatus)

    async def retain(self, *, dry_run: bool = False) -> models.Retention:
        """Remove what the server's rules of retention let go, as a user.

        Parameters
        ----------
        dry_run
            Only tell what would go.
        """
        request = models.Retain(dry_run=dry_run)
        return await self._connection.post("/retention", request, models.Retention)

    async def text(
        self, execution_id: str, offset: int = 0, limit: int | None = None, match: str | None = None
    ) -> models.Text:
        """Read an execution's complete text, including text that its cell leaves out.

        Parameters
        ----------
        execution_id
            The execution.
        offset
            Byte in the UTF-8 text at which to start.
        limit
            Maximum number of bytes; the server's default when None.
        match
            Read only the lines that contain this text, ignoring case. Each follows its own offset
            and a colon.
        """
        path = f"/executions/{segment(execution_id)}/text"
        return await self._connection.get(
            path, models.Text, offset=offset, limit=limit, match=match
        )

    async def notebooks(self) -> list[models.OpenNotebook]:
        """List the notebooks that have a kernel, or are open in a tab or a live document."""
        return (await self._connection.get("/notebooks", models.OpenNotebookList)).notebooks

    async def cells(
        self, path: str, *, outputs: bool = True, text_limit: int | None = None
    ) -> models.NotebookCells:
        """Read the current state of a notebook, including unsaved edits.

        Parameters
        ----------
        path
            Its contents path.
        outputs
            Whether to include the text of the cells' outputs.
        text_limit
            Maximum characters of each cell's output text; the server's default when None.

        Raises
        ------
        NotebookNotFound
            There is no notebook at the path.
        """
        return await read_cells(self._connection, path, outputs, text_limit)

    async def search(
        self, q: str = "", *, limit: int | None = None, **filters: Unpack[SearchFilters]
    ) -> AsyncGenerator[models.SearchHit, None]:
        """Search sources, text outputs, errors and purposes, newest first.

        Parameters
        ----------
        q
            Words; empty for all executions that pass the filters.
        agent, target, status, session_id, since, until, has_image, review
            Filters, as in `GET /search`. An execution must pass all of them; None matches any.
        limit
            Maximum number of results; all when None.
        """
        size = None if limit is None else min(limit, 100)
        pages = self._connection.pages("/search", models.SearchResults, q=q, limit=size, **filters)
        found = 0
        async for page in pages:
            for hit in page.hits:
                found += 1
                yield hit
                if found == limit:
                    return

    # -- agent tokens ------------------------------------------------------------------------------

    async def mint_token(
        self,
        label: str,
        scopes: Sequence[str] = SCOPES,
        *,
        expires_in: float | None = None,
        approval: ApprovalMode | None = None,
        edits: EditMode | None = None,
        caps: models.Caps | None = None,
    ) -> models.MintedToken:
        """Create an agent token. This needs a user's own credential.

        Parameters
        ----------
        label
            Name of the token for users.
        scopes
            Scopes of the token.
        expires_in
            Lifetime in seconds; the server's default, 8 hours, when None.
        approval
            Which executions need a user's approval; the server's policy when None.
        edits
            ``"apply"`` or ``"propose"`` for its edits of notebooks; the server's policy when None.
        caps
            Limits of the token.

        Returns
        -------
        MintedToken
            The token with its secret, which is shown only here.
        """
        request = models.MintToken(
            label=label,
            scopes=list(scopes),
            approval=approval,
            edits=edits,
            caps=models.Caps() if caps is None else caps,
        )
        if expires_in is not None:
            request = replace(request, expires_in=expires_in)
        return await self._connection.post("/tokens", request, models.MintedToken)

    async def tokens(self) -> list[models.Token]:
        """List agent tokens without their secrets, newest first."""
        return (await self._connection.get("/tokens", models.TokenList)).tokens

    async def extend_token(self, token_id: str, scopes: Sequence[str]) -> models.Token:
        """Give a valid agent token more scopes. This needs a user's own credential.

        Raises
        ------
        Forbidden
            The user has not got these rights.
        NotFound
            There is no such token, or it has ended.
        """
        request = models.ExtendToken(scopes=list(scopes))
        path = f"/tokens/{segment(token_id)}/scopes"
        return await self._connection.post(path, request, models.Token)

    async def revoke_token(self, token_id: str) -> models.Token:
        """Revoke a token: its sessions are closed, and running code is interrupted.

        Raises
        ------
        NotFound
            There is no such token.
        """
        return await self._connection.delete(f"/tokens/{segment(token_id)}", models.Token)
