"""The routes for approvals, for the pause, and for reviews."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from tornado import web

from ..auth.operations import requires
from ..models import (
    Approvals,
    Approve,
    Execution,
    Preview,
    Reject,
    Session,
    SetPause,
    SetPolicy,
    SetReview,
)
from ..sessions.handlers import SessionsBase
from ..types import TokenId
from .manager import Approvals as ApprovalDecisions
from .manager import Reviews


class ApprovalsBase(SessionsBase):
    """Base of the handlers below."""

    approvals: ApprovalDecisions
    proposing: Callable[[TokenId | None], Awaitable[list[Session]]]

    async def answer_approvals(self) -> None:
        """Answer with what goes on and waits of what the caller may read, policy and pause."""
        only = self.access.only(self.caller)
        proposing = await self.proposing(only)
        sessions = await self.manager.history.open_sessions(only=only)
        asking = self.approvals.asking(only=only)
        record, is_person = self.history.recorded, self.caller.token is None
        sinks = record.copies.status() if is_person else []
        await self.answer_large(
            [*asking, *self.approvals.pending(only=only)],
            lambda executions: Approvals(
                executions=executions[: len(asking)],
                pending=executions[len(asking) :],
                sessions=sessions,
                proposing=proposing,
                policy=self.approvals.policy,
                paused=self.approvals.rules.paused,
                needs_passphrase=self.unlocks.needed,
                sinks=[each for each in sinks if each.error is not None or each.is_stopping_code],
                broken=record.signatures.broken if is_person else None,
            ),
        )


class ApprovalsHandler(ApprovalsBase):
    """What waits for a user."""

    @web.authenticated
    @requires(
        "history:read",
        answers={200: Approvals},
        agents="the same of the sessions that it may read",
    )
    async def get(self) -> None:
        """List open sessions, executions that wait or run, and sessions with proposed edits."""
        await self.answer_approvals()


class PolicyHandler(ApprovalsBase):
    """The approval policy."""

    @web.authenticated
    @requires("decide", body=SetPolicy, answers={200: Approvals})
    async def put(self, body: SetPolicy) -> None:
        """Change the approval policy for executions that are accepted from now on."""
        await self.approvals.set_policy(body, self.caller)
        await self.answer_approvals()


class PauseHandler(ApprovalsBase):
    """All agents, paused."""

    @web.authenticated
    @requires("decide", body=SetPause, answers={200: Approvals}, without_passphrase=True)
    async def put(self, body: SetPause) -> None:
        """Pause or resume all agents. While paused, no agent's code is sent to a kernel."""
        if not body.paused:
            self.check_unlocked()
        await self.approvals.set_paused(body.paused, self.caller)
        await self.answer_approvals()


class PreviewHandler(ApprovalsBase):
    """What a trial of an execution that waits for approval showed."""

    @web.authenticated
    @requires("decide", answers={200: Preview})
    async def get(self, execution_id: str) -> None:
        """Look what the code would print and change, as far as a trial showed it."""
        self.answer(await self.approvals.preview(execution_id))


class ApproveHandler(ApprovalsBase):
    """An execution, approved."""

    @web.authenticated
    @requires("decide", body=Approve, answers={200: Execution})
    async def post(self, execution_id: str, body: Approve) -> None:
        """Approve a waiting execution, unchanged or with another source."""
        if body.source is not None:
            await self.authorize("exec")
        await self.answer_execution(await self.approvals.approve(execution_id, body, self.caller))


class RejectHandler(ApprovalsBase):
    """An execution, rejected."""

    @web.authenticated
    @requires("decide", body=Reject, answers={200: Execution})
    async def post(self, execution_id: str, body: Reject) -> None:
        """Reject a waiting execution. The agent gets the reason."""
        record = await self.approvals.reject(execution_id, body.reason, self.caller)
        await self.answer_execution(record)


class GrantHandler(ApprovalsBase):
    """What a user lets a session's agent do in its kernel without asking."""

    @web.authenticated
    @requires("decide", answers={200: Session}, without_passphrase=True)
    async def delete(self, session_id: str) -> None:
        """Withdraw the agent's grant in this kernel, for all of its sessions."""
        self.answer(await self.approvals.withdraw(session_id, self.caller))


class ReviewHandler(SessionsBase):
    """Users' review of an execution."""

    reviews: Reviews

    @web.authenticated
    @requires("decide", body=SetReview, answers={200: Execution})
    async def put(self, execution_id: str, body: SetReview) -> None:
        """Approve or flag a finished execution, comment on it, or withdraw the review."""
        await self.answer_execution(await self.reviews.record(execution_id, body, self.caller))


ROUTES: list[tuple[str, type[SessionsBase]]] = [
    ("/executions/{execution_id}/review", ReviewHandler),
    ("/approvals", ApprovalsHandler),
    ("/approvals/policy", PolicyHandler),
    ("/approvals/pause", PauseHandler),
    ("/executions/{execution_id}/preview", PreviewHandler),
    ("/executions/{execution_id}/approve", ApproveHandler),
    ("/executions/{execution_id}/reject", RejectHandler),
    ("/sessions/{session_id}/grant", GrantHandler),
]
