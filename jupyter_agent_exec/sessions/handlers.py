"""The routes of agent sessions and of their kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any, Literal

import msgspec
from tornado import web

from ..auth.handler import AgentExecHandler
from ..auth.operations import requires
from ..errors import InvalidRequest
from ..models import (
    CloseSession,
    Execution,
    Guide,
    InterruptKernel,
    NotebookTarget,
    OpenSession,
    PackageList,
    PackagesQuery,
    Placement,
    RestartKernel,
    Restoration,
    Restore,
    ServerStatus,
    Session,
    SessionList,
    SessionsQuery,
    VariableList,
    VariablesQuery,
    json_pieces,
)
from ..records import ExecutionRecord
from ..text.guide import guide
from ..text.inert import LARGE_HTML
from ..text.model_text import output_size
from ..types import FINAL_STATUSES
from . import answers
from .kernel_inspection import KernelInspection
from .manager import AgentSessions
from .restores import Restores
from .session_history import SessionHistory

LARGE_BYTES = 1 << 18
"""An answer with outputs of at least this size is encoded in a thread and sent in pieces."""

MAX_KEY_LENGTH = 200


class SessionsBase(AgentExecHandler):
    """Base of the handlers below."""

    manager: AgentSessions

    @property
    def history(self) -> SessionHistory:
        """The sessions and executions, open or ended."""
        return self.manager.history

    @property
    def idempotency_key(self) -> str | None:
        """The request's idempotency key; None without one."""
        key = self.request.headers.get("Idempotency-Key")
        if key is not None and not 0 < len(key) <= MAX_KEY_LENGTH:
            raise InvalidRequest(
                f"Idempotency-Key: 1 to {MAX_KEY_LENGTH} characters.", field="Idempotency-Key"
            )
        return key

    async def authorize_cells(
        self, session_id: str, *placements: Placement | Literal["end", "none"]
    ) -> None:
        """Check that a person may write to a session's notebook. A token's scopes decide that."""
        live = self.history.open_session(session_id)
        in_notebook = live is not None and live.path is not None
        has_cells = in_notebook and any(each != "none" for each in placements)
        if has_cells and self.caller.grants is None:
            await self.authorize("edit:notebook")

    async def answer_execution(
        self, record: ExecutionRecord, *, asked: bool = False, inert: bool = False
    ) -> None:
        """Answer with an execution: 201 or 202 if this request submitted it."""
        self.check_token()
        if asked:
            self.set_status(201 if record.status in FINAL_STATUSES else 202)
            location = f"{self.public_path}{answers.NAMESPACE}/executions/{record.id}"
            self.set_header("Location", location)
        await self.answer_large([record], lambda executions: executions[0], inert=inert)

    async def answer_large(
        self,
        records: Sequence[ExecutionRecord],
        whole: Callable[[list[Execution]], Any],
        *,
        inert: bool = False,
    ) -> None:
        """Answer with what `whole` returns for executions, without blocking the event loop."""

        def model() -> Any:
            return whole(
                [answers.execution(record, self.public_path, inert=inert) for record in records]
            )

        outputs = (output for record in records for output in record.outputs)
        large = LARGE_HTML if inert else LARGE_BYTES
        if output_size(outputs, most=large) < large:
            self.write(msgspec.json.encode(model()))
            return
        for piece in json_pieces(await self.history.in_thread(model)):
            await self.send(piece)

    async def send_notebook(self, session_id: str, pieces: Iterable[str]) -> None:
        """Answer with the text of a session's notebook, an iterable that blocks."""
        self.set_header("Content-Type", "application/x-ipynb+json")
        self.set_header("Content-Disposition", f'attachment; filename="{session_id}.ipynb"')
        await self.send_pieces(_in_chunks(pieces))

    async def send_pieces(self, pieces: Iterable[bytes]) -> None:
        """Send the pieces of an iterable that blocks."""
        iterator = iter(pieces)
        while (piece := await self.history.in_thread(lambda: next(iterator, None))) is not None:
            await self.send(piece)


def _in_chunks(pieces: Iterable[str]) -> Iterable[bytes]:
    """Join small pieces, so that each chunk costs one hop between threads."""
    iterator = iter(pieces)
    while batch := "".join(islice(iterator, 200)):
        yield batch.encode()


class SessionsHandler(SessionsBase):
    """All agent sessions."""

    @web.authenticated
    @requires(
        "history:read",
        query=SessionsQuery,
        answers={200: SessionList},
        agents="the sessions that it may read",
    )
    async def get(self, query: SessionsQuery) -> None:
        """List sessions: the open ones first, then the closed, each the newest first."""
        self.answer(await self.history.sessions(query, only=self.access.only(self.caller)))

    @web.authenticated
    @requires(
        "look",
        body=OpenSession,
        answers={201: Session, 200: Session},
        agents="a session with a target within its scopes",
        checks_target=True,
    )
    async def post(self, body: OpenSession) -> None:
        """Open a session; 200 with the one that its client has open."""
        if isinstance(body.target, NotebookTarget) and self.caller.grants is None:
            await self.authorize("edit:notebook")
        record, new = await self.manager.open(body, self.caller)
        location = f"{self.public_path}{answers.NAMESPACE}/sessions/{record.id}"
        self.answer(record, 201 if new else 200, location=location)


class SessionHandler(SessionsBase):
    """One session."""

    @web.authenticated
    @requires("history:read", answers={200: Session})
    async def get(self, session_id: str) -> None:
        """Look at a session."""
        self.answer(await self.history.session(session_id))


class CloseHandler(SessionsBase):
    """The end of a session."""

    @web.authenticated
    @requires("stop", body=CloseSession, answers={200: Session})
    async def post(self, session_id: str, body: CloseSession) -> None:
        """Close a session: what runs is interrupted, its kernel is shut down."""
        self.answer(await self.manager.close(session_id, self.caller))


class InterruptHandler(SessionsBase):
    """A session's kernel, interrupted."""

    @web.authenticated
    @requires("stop", body=InterruptKernel, answers={200: Session})
    async def post(self, session_id: str, body: InterruptKernel) -> None:
        """Interrupt what runs in a session's kernel."""
        self.answer(await self.manager.interrupt(session_id, self.caller, queued=body.queued))


class RestartHandler(SessionsBase):
    """A session's kernel, restarted."""

    @web.authenticated
    @requires("exec", body=RestartKernel, answers={200: Session})
    async def post(self, session_id: str, body: RestartKernel) -> None:
        """Give a session a fresh kernel, without the previous variables."""
        self.answer(await self.manager.restart(session_id, self.caller))


class StatusHandler(SessionsBase):
    """The state of the extension."""

    @web.authenticated
    @requires(
        "history:read",
        answers={200: ServerStatus},
        agents="the numbers of the sessions that it may read",
    )
    async def get(self) -> None:
        """Answer with the state of the extension."""
        only, is_person = self.access.only(self.caller), self.caller.token is None
        self.answer(await self.manager.status(only=only, with_sinks=is_person))


class RestoreHandler(SessionsBase):
    """A session whose kernel ended, restored."""

    restores: Restores

    @web.authenticated
    @requires("exec", body=Restore, answers={200: Restoration, 201: Restoration, 202: Restoration})
    async def post(self, session_id: str, body: Restore) -> None:
        """Run again what made the state of its last kernel; 202 while it goes on."""
        with self.manager.holding(self.caller, body.wait):
            told = await self.restores.restore(session_id, body, self.caller)
        self.check_token()
        location = f"{self.public_path}{answers.NAMESPACE}/sessions/{told.session_id}"
        ran = any(cell.execution_id is not None for cell in told.cells)
        status = 202 if told.status == "running" else 201 if ran else 200
        self.answer(told, status, location=location)


class GuideHandler(SessionsBase):
    """How to work in a session."""

    default_timeout: float

    @web.authenticated
    @requires("history:read", answers={200: Guide})
    async def get(self, session_id: str) -> None:
        """Read the guide for language models."""
        session = await self.history.session(session_id)
        text = guide(session, default_timeout=self.default_timeout)
        self.answer(Guide(session_id=session.id, text=text))


class InspectionBase(SessionsBase):
    """Base of the handlers below."""

    inspection: KernelInspection


class VariablesHandler(InspectionBase):
    """The variables in a session's kernel."""

    @web.authenticated
    @requires("look", query=VariablesQuery, answers={200: VariableList})
    async def get(self, session_id: str, query: VariablesQuery) -> None:
        """List the variables of the kernel's user, by name."""
        self.answer(await self.inspection.variables(session_id, query))


class PackagesHandler(InspectionBase):
    """The packages of a session's kernel."""

    @web.authenticated
    @requires("look", query=PackagesQuery, answers={200: PackageList})
    async def get(self, session_id: str, query: PackagesQuery) -> None:
        """List the distributions that code in the kernel can import, by name."""
        self.answer(await self.inspection.packages(session_id, query))


ROUTES: list[tuple[str, type[SessionsBase]]] = [
    ("/status", StatusHandler),
    ("/sessions", SessionsHandler),
    ("/sessions/{session_id}", SessionHandler),
    ("/sessions/{session_id}/close", CloseHandler),
    ("/sessions/{session_id}/interrupt", InterruptHandler),
    ("/sessions/{session_id}/restart", RestartHandler),
    ("/sessions/{session_id}/restore", RestoreHandler),
    ("/sessions/{session_id}/guide", GuideHandler),
    ("/sessions/{session_id}/variables", VariablesHandler),
    ("/sessions/{session_id}/packages", PackagesHandler),
]
