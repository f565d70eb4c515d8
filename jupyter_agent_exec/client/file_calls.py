"""What the client can ask of a session's files, as steps without I/O, like `calls`."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Final
from urllib.parse import quote

import msgspec

from ..errors import InvalidRequest
from ..models import SessionFile, SessionFileList
from .answers import check, read
from .errors import ConnectionLost, ServerUnreachable
from .retry import Backoff, persistently
from .routes import API, get, segment, with_query
from .steps import Call, Emit, Feed, Send, receive, send

_files = msgspec.json.Decoder(SessionFileList)
_file = msgspec.json.Decoder(SessionFile)

_PARTIAL: Final = 206


def files(session_id: str, path: str, recursive: bool) -> Feed[SessionFile]:
    """List what is in a session's folder, or in one below it, by path."""
    after: str | None = None
    route = f"/sessions/{segment(session_id)}/files"
    while True:
        query = with_query(route, path=path or None, recursive=recursive or None, after=after)
        page = yield from get(query, _files)
        for each in page.files:
            yield Emit(each)
        after = page.next_after
        if after is None:
            return


def upload(
    session_id: str, name: str, content: bytes | Path, etag: str | None
) -> Call[SessionFile]:
    """Upload a file; it is not sent again if the connection breaks."""
    request = Send("PUT", _route(session_id, name), headers=_if_match(etag), upload=content)
    return read((yield from send(request)), _file)


def download(session_id: str, name: str) -> Feed[bytes]:
    """Tell a file, piece by piece; a connection that breaks is made again, and goes on there."""
    path = _route(session_id, name)
    backoff = Backoff()
    told, etag = 0, ""
    while True:
        headers = ((b"Range", b"bytes=%d-" % told), (b"If-Range", etag.encode())) if told else ()
        try:
            reply = yield from send(Send("GET", path, headers=headers, streamed=True))
            check(reply)
            if told and reply.status != _PARTIAL:
                raise ChangedMeanwhile("The connection broke, and the file has changed since.")
            etag = reply.etag or ""
            while chunk := (yield from receive()):
                backoff.reset()
                told += len(chunk)
                yield Emit(chunk)
            return
        except ChangedMeanwhile:
            raise
        except ServerUnreachable as error:
            yield backoff.after(error)


class ChangedMeanwhile(ConnectionLost):
    """What was read of a file is no longer its beginning."""


def etag_of(session_id: str, name: str) -> Call[str]:
    """Return the ETag of a file as it is."""
    reply = yield from persistently(Send("HEAD", _route(session_id, name)))
    if reply.status == 404:  # a refusal of HEAD has no body: what is wrong is asked for
        reply = yield from persistently(Send("GET", _route(session_id, name)))
    check(reply)
    return reply.etag or ""


def delete(session_id: str, name: str, etag: str | None) -> Call[None]:
    """Delete a file, or an empty folder."""
    check((yield from send(Send("DELETE", _route(session_id, name), headers=_if_match(etag)))))


def what_to_upload(
    source: bytes | str | PathLike[str], name: str | None
) -> tuple[str, bytes | Path]:
    """Return the name under which something is uploaded, and where its bytes are."""
    if isinstance(source, bytes):
        if name is None:
            raise InvalidRequest("Bytes need a name.", field="name")
        return name, source
    path = Path(source)
    return unicodedata.normalize("NFC", path.name) if name is None else name, path


def where_to(name: str, to: str | PathLike[str]) -> Path:
    """Return the file that a download becomes: `to`, or one in that folder."""
    path = Path(to)
    return path / name.rpartition("/")[2] if path.is_dir() else path


@contextmanager
def beside(target: Path) -> Iterator[Path]:
    """Give a file to write to; it takes its place when all is there, and else is gone."""
    part = target.with_name(f".{target.name}.part")
    try:
        yield part
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def _route(session_id: str, name: str) -> str:
    if any(part in ("", ".", "..") for part in name.split("/")):  # they would change the address
        raise InvalidRequest(f"{name!r} is no path below the session's folder.", field="path")
    return f"{API}/sessions/{segment(session_id)}/files/{quote(name)}"


def _if_match(etag: str | None) -> tuple[tuple[bytes, bytes], ...]:
    return () if etag is None else ((b"If-Match", etag.encode("latin-1", "replace")),)
