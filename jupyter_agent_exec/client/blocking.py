"""The client that blocks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import overload

import httpx2

from .. import models
from ..types import ApprovalMode, Digest, Verdict
from . import approval_calls, calls, notebook_calls
from .drivers import SyncDriver
from .events import Event
from .preload import Preloadable
from .requests import session_request, session_target
from .result import Result
from .servers import named, running
from .sync_session import Session
from .token_methods import TokenMethods


class AgentExecClient(TokenMethods):
    """Run code in a person's Jupyter, in the open.

    A context manager that closes its connections at the end; it may be used without. Threads may
    share one.

    Parameters
    ----------
    url
        The Jupyter server's base URL, or one with ``?token=`` as Jupyter prints it. When None,
        that of the environment variable ``JUPYTER_AGENT_EXEC_URL``; else the newest server that
        runs here and answers.
    token
        The credential, an agent token or the server's own; ``JUPYTER_AGENT_EXEC_TOKEN`` when None.
        That of a server that runs here is found.
    transport
        What sends, such as ``httpx2.HTTPTransport(proxy=…)``.

    Raises
    ------
    ValueError
        `url` is not an address that a Jupyter server could have.

    Examples
    --------
    >>> with AgentExecClient() as client, client.open_session(agent="analyst") as session:
    ...     print(session.run("1 + 1").text)
    2
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        given = named(url, token)
        self._driver = SyncDriver(
            lambda: calls.connect(given, [] if given else running()), transport
        )

    def __enter__(self) -> AgentExecClient:
        return self.connect()

    def __exit__(self, *_: object) -> None:
        self.close()

    def connect(self) -> AgentExecClient:
        """Find the server, as the first call does otherwise, and return this client.

        Raises
        ------
        NoServerFound
            None was named, and none of those that run here answers.
        """
        self._driver.connect()
        return self

    def close(self) -> None:
        """Close the connections. Sessions stay open."""
        self._driver.close()

    @property
    def address(self) -> str | None:
        """The address of the server; None before there is one."""
        return self._driver.address

    def status(self) -> models.ServerStatus:
        """Ask how the extension is doing."""
        return self._driver.run(calls.status())

    def open_session(
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
    ) -> Session:
        """Open a session: in a notebook, in a kernel that runs, else in a scratch kernel.

        Parameters
        ----------
        agent
            Who asks: a name, or an Agent with version and model too.
        notebook
            Contents path of a person's notebook: code runs in its kernel, cells go into it.
        create
            Make an empty notebook if there is none.
        kernel_id
            Of a kernel that runs, such as a console's: code runs in it, without a document.
        kernel_name
            A kernelspec, to start for a scratch kernel, or for a notebook without a kernel; the
            server's default, or what the notebook says, when None.
        cwd
            Contents path of the folder in which a scratch kernel starts; the server's root when
            None.
        env
            Environment variables of a scratch kernel; the server has a list of the names it allows.
        isolated
            Keep a scratch kernel apart from the server, its network and files; `cwd` is then all
            that it may write, or None for a folder of its own that goes with the session.
        title
            What the session is for, in words.
        client_id
            The same id with the same target gets the same open session, however often it is asked.
        timeout
            Seconds each execution may run; the server's default when None.
        max_output_bytes
            UTF-8 bytes of output that are kept with a cell; the server's default when None.
        restart_if_interrupt_ignored
            Replace the kernel when code goes on after an interrupt and the grace time.
        init_source
            Code that runs first in each of the session's kernels.
        preload
            What is there before that, in kernels of Python: modules by name (``"pandas as pd"``),
            functions, or what `function` makes of one with requirements and imports.
        allow_stdin
            Whether code may ask for input while it runs; see `Session.run`.

        Raises
        ------
        InvalidRequest
            What is given does not go together, such as `notebook` and `kernel_id`.
        AgentExecError
            The server refuses; see `jupyter_agent_exec.errors`.
        ServerUnreachable
            There is no connection.
        """
        request = session_request(
            agent,
            session_target(
                notebook=notebook,
                kernel_id=kernel_id,
                kernel_name=kernel_name,
                create=create,
                cwd=cwd,
                env=env,
                isolated=isolated,
            ),
            models.Limits(
                timeout=timeout,
                max_output_bytes=max_output_bytes,
                restart_if_interrupt_ignored=restart_if_interrupt_ignored,
            ),
            title=title,
            client_id=client_id,
            init_source=init_source,
            preload=preload,
            allow_stdin=allow_stdin,
        )
        return Session(self._driver, self._driver.run(calls.open_session(request)))

    def session(self, session_id: str) -> Session:
        """Return the session with this id, to look at it or to go on in it."""
        return Session(self._driver, self._driver.run(calls.session(session_id)))

    def sessions(
        self,
        *,
        status: str | None = None,
        agent: str | None = None,
        target: str | None = None,
        since: str | None = None,
        until: str | None = None,
        unreviewed: bool | None = None,
    ) -> Iterator[Session]:
        """Give sessions: the open ones first, then the closed, each the newest first.

        Parameters
        ----------
        status, agent, target, since, until, unreviewed
            Only those of which all of this is true, as `GET /sessions` has it; None is any.
        """
        found = calls.sessions(
            status=status,
            agent=agent,
            target=target,
            since=since,
            until=until,
            unreviewed=unreviewed,
        )
        return (Session(self._driver, info) for info in self._driver.feed(found))

    def execution(self, execution_id: str) -> Result:
        """Look at an execution, any number of times."""
        return self._driver.run(calls.execution(execution_id))

    def wait(self, execution_id: str) -> Result:
        """Wait until an execution has finished."""
        return self._driver.run(calls.wait(execution_id))

    def follow(self, execution_id: str) -> Iterator[Event]:
        """Give the events of an execution: those that were, and those to come."""
        return self._driver.feed(calls.follow(execution_id))

    def cancel(self, execution_id: str) -> None:
        """Take back an execution that waits, or interrupt it if it runs.

        Raises
        ------
        AlreadyFinished
            There is nothing left to cancel.
        """
        self._driver.run(calls.cancel(execution_id))

    def give_input(self, execution_id: str, value: str, *, asked_at: str | None = None) -> Result:
        """Answer what the code of an execution asks for.

        Parameters
        ----------
        asked_at
            Of the input that is answered: refused if the code asks for another by now.

        Raises
        ------
        InputNotAsked
            It asks for nothing now, or somebody else was first.
        """
        return self._driver.run(calls.give_input(execution_id, value, asked_at))

    def approvals(self) -> models.Approvals:
        """Return what asks for approval now, the policy, and whether agents are paused."""
        return self._driver.run(approval_calls.approvals())

    def approve(
        self, execution_id: str, source_sha256: str, *, source: str | None = None
    ) -> Result:
        """Let, for a person, an execution run that asks for approval.

        Parameters
        ----------
        execution_id
            The execution.
        source_sha256
            Of the source that was looked at: another one is not approved.
        source
            What to run instead.

        Raises
        ------
        AlreadyDecided
            It does not ask, or no more.
        ApprovalChanged
            It asks for another source, or another life of the kernel, than was looked at.
        """
        request = models.Approve(source_sha256=Digest(source_sha256), source=source)
        return self._driver.run(approval_calls.decide(execution_id, request))

    def reject(self, execution_id: str, reason: str | None = None) -> Result:
        """Do not let, for a person, an execution run; the agent reads the reason.

        Raises
        ------
        AlreadyDecided
            It does not ask, or no more.
        """
        request = models.Reject(reason=reason)
        return self._driver.run(approval_calls.decide(execution_id, request))

    def set_policy(
        self,
        *,
        scratch: ApprovalMode | None = None,
        notebook: ApprovalMode | None = None,
        kernel: ApprovalMode | None = None,
    ) -> models.Approvals:
        """Say, for a person, what agents must ask for from now on, by the kind of target."""
        policy = models.SetPolicy(scratch=scratch, notebook=notebook, kernel=kernel)
        return self._driver.run(approval_calls.rule(policy))

    def unlock(self, passphrase: str) -> str:
        """Prove that a person decides, on a server that asks for its passphrase.

        What this client decides from now on is taken, for some minutes and until it is closed.
        A decision before that raises PassphraseRequired.

        Returns
        -------
        str
            When it ends, in RFC 3339.

        Raises
        ------
        PassphraseWrong
            It is another one.
        TooManyRequests
            Too many wrong ones were sent; ``detail["retry_after"]`` says for how long.
        NotFound
            The server has no passphrase.
        """
        return self._driver.run(approval_calls.unlock(passphrase))

    def pause(self) -> models.Approvals:
        """Send, for a person, nothing more of any agent to a kernel; what runs goes on."""
        return self._driver.run(approval_calls.rule(models.SetPause(paused=True)))

    def resume(self) -> models.Approvals:
        """End a pause."""
        return self._driver.run(approval_calls.rule(models.SetPause(paused=False)))

    def review(
        self, execution_id: str, verdict: Verdict | None, *, comment: str | None = None
    ) -> Result:
        """Say, for a person, what to think of an execution that has finished.

        Parameters
        ----------
        execution_id
            The execution.
        verdict
            ``"approved"`` or ``"flagged"``; None for a comment alone, or without a comment to take
            back what was said.
        comment
            What else there is to say.

        Raises
        ------
        NotFinished
            It waits or runs.
        """
        request = models.SetReview(verdict=verdict, comment=comment)
        return self._driver.run(calls.review_execution(execution_id, request))

    @overload
    def text(
        self, execution_id: str, offset: int = 0, limit: int | None = None, grep: None = None
    ) -> models.Text: ...

    @overload
    def text(
        self, execution_id: str, offset: int = 0, limit: int | None = None, *, grep: str
    ) -> models.TextMatches: ...

    def text(
        self,
        execution_id: str,
        offset: int = 0,
        limit: int | None = None,
        grep: str | None = None,
    ) -> models.Text | models.TextMatches:
        """Read an execution's whole text, also what its cell leaves out.

        Parameters
        ----------
        execution_id
            The execution.
        offset
            Byte of the UTF-8 text from which to read.
        limit
            Bytes to read at most; the server's default when None.
        grep
            A pattern: return the lines that match it instead.
        """
        if grep is not None:
            return self._driver.run(calls.grep(execution_id, grep, offset))
        return self._driver.run(calls.text(execution_id, offset, limit))

    def notebooks(self) -> list[models.OpenNotebook]:
        """List the notebooks that have a kernel, or are open in a tab or a live document."""
        return self._driver.run(notebook_calls.notebooks())

    def cells(
        self, path: str, *, outputs: bool = True, text_limit: int | None = None
    ) -> models.NotebookCells:
        """Read a notebook as it is now, unsaved edits included.

        Parameters
        ----------
        path
            Its contents path.
        outputs
            Whether to tell what the cells' outputs say.
        text_limit
            Characters of each cell's output at most; the server's default when None.

        Raises
        ------
        NotebookNotFound
            There is none.
        """
        return self._driver.run(notebook_calls.cells(path, outputs, text_limit))

    def search(
        self,
        q: str = "",
        *,
        agent: str | None = None,
        target: str | None = None,
        status: str | None = None,
        session_id: str | None = None,
        since: str | None = None,
        until: str | None = None,
        has_image: bool | None = None,
        review: str | None = None,
        limit: int | None = None,
    ) -> Iterator[models.SearchHit]:
        """Search sources, text outputs and errors, the newest first.

        Parameters
        ----------
        q
            Words; empty for all executions that pass the filters.
        agent, target, status, session_id, since, until, has_image, review
            Only those of which all of this is true, as `GET /search` has it; None is any.
        limit
            How many to give at most; all when None.
        """
        found = calls.search(
            q,
            limit,
            agent=agent,
            target=target,
            status=status,
            session_id=session_id,
            since=since,
            until=until,
            has_image=has_image,
            review=review,
        )
        return self._driver.feed(found)
