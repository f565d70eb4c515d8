"""The routes of the history: search it, read its payloads, export it."""

from __future__ import annotations

from tornado import web

from ..auth.operations import requires
from ..models import (
    PIECE_BYTES,
    AcceptBreak,
    Erase,
    Erasure,
    EventsQuery,
    ExportQuery,
    ImageList,
    JournalEventList,
    Retain,
    Retention,
    SearchQuery,
    SearchResults,
    ServerStatus,
)
from .answers import recorded_image
from .handlers import SessionsBase


class NotebookHandler(SessionsBase):
    """A session as a notebook."""

    @web.authenticated
    @requires("history:read", query=ExportQuery, answers={200: "application/x-ipynb+json"})
    async def get(self, session_id: str, query: ExportQuery) -> None:
        """Export a session as a notebook."""
        pieces = await self.history.notebook(session_id, clean=query.clean)
        await self.send_notebook(session_id, pieces)


class RequirementsHandler(SessionsBase):
    """The packages of a session's record."""

    @web.authenticated
    @requires("history:read", answers={200: "text/plain"})
    async def get(self, session_id: str) -> None:
        """Read what was installed where a session's code ran, as a requirements.txt."""
        text = await self.history.requirements(session_id)
        self.set_header("Content-Type", "text/plain; charset=UTF-8")
        self.write(text)


class JournalHandler(SessionsBase):
    """The raw record of a session."""

    @web.authenticated
    @requires("history:read", answers={200: "application/jsonl"})
    async def get(self, session_id: str) -> None:
        """Read a session's journal as it is on disk."""
        path = await self.history.read(self.history.recorded.journal_path, session_id)
        self.set_header("Content-Type", "application/jsonl")
        self.set_header("Content-Disposition", f'attachment; filename="{session_id}.jsonl"')
        with path.open("rb") as file:
            await self.send_pieces(iter(lambda: file.read(PIECE_BYTES), b""))


class BlobHandler(SessionsBase):
    """A large payload."""

    @web.authenticated
    @requires("history:read", answers={200: "*/*"})
    async def get(self, digest: str) -> None:
        """Read a payload. Its content is untrusted."""
        path, mimetype, size = await self.history.read(self.history.recorded.blob, digest)
        self.set_header("Content-Type", mimetype)
        self.set_header("Content-Length", str(size))
        self.set_header("Content-Disposition", f'attachment; filename="{digest[:16]}"')
        self.set_header("Content-Security-Policy", "sandbox; default-src 'none'")
        self.set_header("Cache-Control", "private, max-age=31536000, immutable")
        with path.open("rb") as file:
            await self.send_pieces(iter(lambda: file.read(PIECE_BYTES), b""))


class SearchHandler(SessionsBase):
    """The history, searched."""

    @web.authenticated
    @requires(
        "history:read",
        query=SearchQuery,
        answers={200: SearchResults},
        agents="executions of the sessions that it may read",
    )
    async def get(self, query: SearchQuery) -> None:
        """Search sources, text outputs, errors and purposes of all executions."""
        only = self.access.only(self.caller)
        search = self.history.recorded.search
        self.answer(await self.history.read(search, query, token=only))


class ErasuresHandler(SessionsBase):
    """What users erase from the record."""

    @web.authenticated
    @requires("decide", body=Erase, answers={200: Erasure}, without_passphrase=True)
    async def post(self, body: Erase) -> None:
        """Erase payloads of closed sessions from the record, or tell what would go."""
        if not body.dry_run:
            self.check_unlocked()
        erase = self.history.recorded.erase
        self.answer(await self.history.read(erase, body, self.caller.by()))


class RetentionHandler(SessionsBase):
    """What the operator's rules let go."""

    @web.authenticated
    @requires("decide", body=Retain, answers={200: Retention}, without_passphrase=True)
    async def post(self, body: Retain) -> None:
        """Remove the sessions that the rules of retention let go, or tell which would go."""
        if not body.dry_run:
            self.check_unlocked()
        retain = self.history.recorded.retain
        self.answer(await self.history.read(retain, body, self.caller.by()))


class AcceptedBreaksHandler(SessionsBase):
    """What users accept of a record that is broken."""

    @web.authenticated
    @requires("decide", body=AcceptBreak, answers={200: ServerStatus})
    async def post(self, body: AcceptBreak) -> None:
        """Sign the record on, although it does not continue what was signed."""
        accept = self.history.recorded.signatures.accept
        await self.history.read(accept, body, self.caller.by())
        self.answer(await self.manager.status(with_sinks=True))


class EventsHandler(SessionsBase):
    """The events of a session outside of its executions."""

    @web.authenticated
    @requires("history:read", query=EventsQuery, answers={200: JournalEventList})
    async def get(self, session_id: str, query: EventsQuery) -> None:
        """List the entries of a session that are no part of an execution's cell, in order."""
        self.answer(await self.history.events(session_id, query))


class ImagesHandler(SessionsBase):
    """The images of the history."""

    @web.authenticated
    @requires(
        "history:read",
        query=SearchQuery,
        answers={200: ImageList},
        agents="images of the sessions that it may read",
    )
    async def get(self, query: SearchQuery) -> None:
        """List images of executions: of one session in order, else the newest first."""
        images = self.history.recorded.images
        page = await self.history.read(images, query, token=self.access.only(self.caller))
        shown = [recorded_image(pictured, self.public_path) for pictured in page.images]
        self.answer(ImageList(images=shown, next_after=page.next_after))


ROUTES: list[tuple[str, type[SessionsBase]]] = [
    ("/sessions/{session_id}/notebook", NotebookHandler),
    ("/sessions/{session_id}/requirements", RequirementsHandler),
    ("/sessions/{session_id}/journal", JournalHandler),
    ("/sessions/{session_id}/events", EventsHandler),
    ("/blobs/{digest}", BlobHandler),
    ("/search", SearchHandler),
    ("/erasures", ErasuresHandler),
    ("/retention", RetentionHandler),
    ("/accepted-breaks", AcceptedBreaksHandler),
    ("/images", ImagesHandler),
]
