"""The routes by which the page looks through the history, and agents learn how to work."""

from __future__ import annotations

from tornado import web

from ..auth.handler import requires
from ..guide import guide
from ..models import Guide, ImageList, JournalEventList
from .answers import recorded_image
from .handlers import SessionsBase
from .queries import EventsQuery, ImagesQuery


class EventsHandler(SessionsBase):
    """What is between a session's executions."""

    @web.authenticated
    @requires("history:read", query=EventsQuery, answers={200: JournalEventList})
    async def get(self, session_id: str, query: EventsQuery) -> None:
        """List the entries of a session that are no part of an execution's cell, in order."""
        self.answer(await self.manager.finding.events(session_id, query))


class ImagesHandler(SessionsBase):
    """The images of the history."""

    @web.authenticated
    @requires(
        "history:read",
        query=ImagesQuery,
        answers={200: ImageList},
        agents="images of the sessions that it may read",
    )
    async def get(self, query: ImagesQuery) -> None:
        """List images of executions: of one session in order, else the newest first."""
        found, next_after = await self.manager.finding.images(
            query, only=self.access.only(self.caller)
        )
        images = [recorded_image(pictured, self.base_url) for pictured in found]
        self.answer(ImageList(images=images, next_after=next_after))


class GuideHandler(SessionsBase):
    """How to work in a session."""

    default_timeout: float

    @web.authenticated
    @requires("history:read", answers={200: Guide})
    async def get(self, session_id: str) -> None:
        """Read what a language model should know before it works in a session."""
        session = await self.manager.session(session_id)
        text = guide(session, default_timeout=self.default_timeout)
        self.answer(Guide(session_id=session.id, text=text))


ROUTES: list[tuple[str, type[SessionsBase]]] = [
    ("/sessions/{session_id}/events", EventsHandler),
    ("/sessions/{session_id}/guide", GuideHandler),
    ("/images", ImagesHandler),
]
