"""The routes by which people say what they think of what agents ran."""

from __future__ import annotations

from tornado import web

from ..auth.handler import requires
from ..models import Execution, Session, SetReview
from ..sessions.handlers import SessionsBase
from .reviews import Reviews


class ReviewsBase(SessionsBase):
    """Base of the handlers below."""

    reviews: Reviews


class ExecutionReviewHandler(ReviewsBase):
    """What people think of an execution."""

    @web.authenticated
    @requires("decide", body=SetReview, answers={200: Execution})
    async def put(self, execution_id: str, body: SetReview) -> None:
        """Approve or flag an execution that has finished, or comment on it, or take that back."""
        await self.answer_execution(
            await self.reviews.of_execution(execution_id, body, self.caller)
        )


class SessionReviewHandler(ReviewsBase):
    """What people think of a session."""

    @web.authenticated
    @requires("decide", body=SetReview, answers={200: Session})
    async def put(self, session_id: str, body: SetReview) -> None:
        """Approve or flag all that a session has run, or comment on it, or take that back."""
        self.answer(await self.reviews.of_session(session_id, body, self.caller))


ROUTES: list[tuple[str, type[ReviewsBase]]] = [
    ("/executions/{execution_id}/review", ExecutionReviewHandler),
    ("/sessions/{session_id}/review", SessionReviewHandler),
]
