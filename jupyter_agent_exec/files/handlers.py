"""The routes of a session's files."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote

from tornado import web

from ..auth.handler import error_in
from ..auth.operations import requires
from ..errors import AgentExecError, InvalidRequest, PayloadTooLarge, RangeNotSatisfiable
from ..kernels.folder import decoded
from ..models import SessionFile, SessionFileList
from ..sessions.answers import NAMESPACE
from ..sessions.handlers import SessionsBase
from .file import Conditions, FilesQuery, OpenFile, matches, missing, span_of
from .manager import FileRequest, SessionFiles
from .upload import Upload

DISCARDED_BYTES: Final = 64_000_000
"""Bytes of a refused body to read and discard before the response, because a client does not read
while it sends. If there are more, the response closes the connection."""

PIECE_BYTES: Final = 1 << 20
"""Bytes of a body to collect before they are written to the disk."""

NO_LIMIT: Final = 1 << 62
"""Body limit for tornado, which would disconnect without a response. The handler enforces ours."""

_RAW_PATH: Final = re.compile(rf"/{NAMESPACE}/sessions/[^/]+/files/(?P<path>.+)\Z", re.DOTALL)


class FilesBase(SessionsBase):
    """Base of the handlers below."""

    files: SessionFiles


class OneFileBase(FilesBase):
    """Base of handlers that answer with a file's content."""

    def describe(self, file: OpenFile) -> bool:
        """Set the headers of a file. Return False if the client already has the file."""
        plain = re.sub(r"[^\w.-]", "_", file.name, flags=re.ASCII)
        named = f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(file.name, safe='')}"
        self.set_header("Content-Type", file.mimetype)
        self.set_header("Content-Length", str(file.bytes))
        self.set_header("Content-Disposition", named)
        self.set_header("Content-Security-Policy", "sandbox; default-src 'none'")
        self.set_header("X-Content-Type-Options", "nosniff")
        self.set_header("Cache-Control", "private, no-cache")
        self.set_header("Accept-Ranges", "bytes")
        self.set_header("ETag", file.etag)
        if not self.check_etag_header():
            return True
        self.set_status(304)
        self.clear_header("Content-Length")
        return False

    def compute_etag(self) -> None:
        """Keep the file's ETag. Tornado would compute one from the response."""


class FilesHandler(FilesBase):
    """The files of a session."""

    @web.authenticated
    @requires("files", query=FilesQuery, answers={200: SessionFileList})
    async def get(self, session_id: str, query: FilesQuery) -> None:
        """List the files in a session's folder, by path."""
        self.answer(await self.files.list(session_id, query))


@web.stream_request_body
class FileHandler(OneFileBase):
    """One file of a session.

    The body arrives in pieces. So `prepare` authenticates and authorizes the caller before the
    first piece.
    """

    upload: Upload | None = None
    _closes = False
    """Whether the connection is closed, because the response came before the whole body."""
    refusal: AgentExecError | None = None
    """The error to send after the body, because a client does not read while it sends."""

    async def prepare(self) -> None:  # type: ignore[override]
        """Authenticate the caller, and begin an upload if the file may be written."""
        self._gathered = bytearray()
        self._discarded = 0
        self._has_all_come = False
        self.request.connection.set_max_body_size(NO_LIMIT)  # type: ignore[union-attr]
        try:
            await super().prepare()
            if self.request.method == "PUT":
                await self._begin()
        except AgentExecError as refusal:
            if not self._is_body_to_come():
                self._closes = True
                raise
            self._refuse(refusal)

    async def data_received(self, chunk: bytes) -> None:
        """Receive the next piece of a body."""
        if self.upload is None or self.refusal is not None:
            self._discard(chunk)
            return
        self._gathered += chunk
        if len(self._gathered) >= PIECE_BYTES:
            try:
                await self._take_gathered(self.upload)
            except AgentExecError as refusal:
                self._refuse(refusal)
                await self.files.drop(self.upload)

    def on_connection_close(self) -> None:
        """Remove an incomplete upload."""
        super().on_connection_close()
        if self.upload is not None and not self._has_all_come:
            self.files.drop_soon(self.upload)

    def on_finish(self) -> None:
        """Remove an upload that was refused at the end."""
        super().on_finish()
        if self.upload is not None:
            self.files.drop_soon(self.upload)

    @web.authenticated
    @requires("files", answers={200: "*/*", 206: "*/*"}, headers=("Range", "If-Range"))
    async def get(self, session_id: str, path: str) -> None:
        """Read a file, or a range of it. Its content is untrusted."""
        file = await self.files.open(session_id, self.file_path)
        try:
            if not self.describe(file):
                return
            span = span_of(self._range(file), file.bytes)
            if span is not None:
                self.set_status(206)
                self.set_header("Content-Range", f"bytes {span.start}-{span.end - 1}/{file.bytes}")
                self.set_header("Content-Length", str(span.end - span.start))
            await self.send_pieces(file.pieces(span))
        finally:
            file.close()

    @web.authenticated
    @requires("files", answers={200: "*/*"})
    async def head(self, session_id: str, path: str) -> None:
        """Answer with the headers of a file."""
        file = await self.files.open(session_id, self.file_path)
        file.close()
        self.describe(file)

    @web.authenticated
    @requires(
        "files",
        body="application/octet-stream",
        answers={201: SessionFile, 200: SessionFile},
        headers=("If-Match", "If-None-Match"),
    )
    async def put(self, session_id: str, path: str) -> None:
        """Upload a file. It replaces only the session's own file, or the one in `If-Match`."""
        assert self.upload is not None
        self._has_all_come = True
        try:
            await self._take_gathered(self.upload)
            self.check_token()
            uploaded = await self.files.finish(self._file_request, self.upload)
        finally:
            await self.files.drop(self.upload)
        self.set_header("ETag", uploaded.etag)
        location = self.public(self.request.path) if uploaded.is_new else None
        self.answer(uploaded.file, 201 if uploaded.is_new else 200, location=location)

    @web.authenticated
    @requires("files", answers={204: None}, headers=("If-Match",))
    async def delete(self, session_id: str, path: str) -> None:
        """Delete a file as the session left it or named by `If-Match`, or an empty folder."""
        await self.files.delete(self._file_request)
        self.set_status(204)
        self.clear_header("Content-Type")

    @property
    def file_path(self) -> str:
        """The file's path, decoded from the URL."""
        found = _RAW_PATH.search(self.request.path)
        assert found is not None
        try:
            return decoded(found["path"])
        except InvalidRequest:
            if self.request.method in ("GET", "HEAD"):
                raise missing(found["path"]) from None
            raise

    @property
    def _file_request(self) -> FileRequest:
        headers, session_id = self.request.headers, self.path_kwargs["session_id"]
        conditions = Conditions(headers.get("If-Match"), headers.get("If-None-Match"))
        return FileRequest(session_id, self.file_path, conditions, self.caller)

    async def _begin(self) -> None:
        said = self.request.headers.get("Content-Length", "")
        declared_bytes = int(said) if said.isdecimal() else None
        self.upload = await self.files.begin(self._file_request, declared_bytes)

    def _refuse(self, refusal: AgentExecError) -> None:
        """Store an error until the body has arrived. The rest of the body is discarded."""
        self.refusal = refusal
        self.current_user = None

    def _is_body_to_come(self) -> bool:
        """Return whether to wait for a body: the client sends one, and it is not too large."""
        headers = self.request.headers
        waits_for_us = headers.get("Expect", "").lower() == "100-continue"
        if waits_for_us or self.request.method in ("GET", "HEAD"):
            return False
        said = headers.get("Content-Length", "")
        if said.isdecimal():
            return 0 < int(said) <= DISCARDED_BYTES
        return "Transfer-Encoding" in headers

    async def _take_gathered(self, upload: Upload) -> None:
        gathered, self._gathered = bytes(self._gathered), bytearray()
        await self.files.take(upload, gathered)

    def _discard(self, chunk: bytes) -> None:
        self._discarded += len(chunk)
        if self._discarded > DISCARDED_BYTES:
            self.refusal = self.refusal or PayloadTooLarge("There is no body here.", limit_bytes=0)
            self.send_error()

    def _range(self, file: OpenFile) -> str | None:
        """Return the `Range` header; None if its `If-Range` names another version of the file."""
        version = self.request.headers.get("If-Range")
        if version is not None and not matches(version, file.etag):
            return None
        return self.request.headers.get("Range")

    def send_error(self, status_code: int = 500, **kwargs: object) -> None:
        """Answer with the stored error, if there is one."""
        if self.refusal is not None:
            kwargs["exc_info"] = (type(self.refusal), self.refusal, None)
        super().send_error(status_code, **kwargs)

    def write_error(self, status_code: int, **kwargs: object) -> None:
        """Write the body of an error. For an invalid range, add the file's size."""
        error = error_in(kwargs)
        if isinstance(error, RangeNotSatisfiable):
            self.set_header("Content-Range", f"bytes */{error.detail['bytes']}")
        if self._closes:
            self.set_header("Connection", "close")
        super().write_error(status_code, **kwargs)


ROUTES: list[tuple[str, type[FilesBase]]] = [
    ("/sessions/{session_id}/files", FilesHandler),
    ("/sessions/{session_id}/files/{path}", FileHandler),
]
"""Paths under the namespace, and their handlers."""
