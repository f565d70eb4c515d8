"""Large payloads of a session, each in a file that is named as its entry names it."""

from __future__ import annotations

import binascii
import hmac
import json
import os
import secrets
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from ..records import BlobRef, Payload, new_salt
from ..storage.durability import make_folder, replace_file, sync_folder
from ..types import DIGEST, IMAGE_TYPES, JSON, Digest, Output
from .lines import Line

INLINE_BYTES: Final = 8192
"""A larger payload gets its own file. A larger value is moved out of its output."""

_BINARY: Final = ("image/", "audio/", "video/")
_STAND_INS: Final[dict[str, Any]] = {"text": "", "traceback": [], "metadata": {}}


class PackedOutputs(NamedTuple):
    """Outputs as the journal keeps them."""

    digest: Digest | None
    """Names the JSON array of outputs; None if there are none."""
    blobs: tuple[BlobRef, ...]
    payloads: tuple[Payload, ...]
    """All that `digest` and `blobs` name."""


def pack_outputs(outputs: Sequence[Output]) -> PackedOutputs:
    """Move large values and images out of `outputs`, leaving null and a reference for each.

    Secrets in them were replaced before.

    A value is an entry of the mimebundle, or of the output itself (a stream's text, a traceback).
    Equal large values become one blob. `unpack_outputs` returns equal outputs, for any JSON.
    """
    if not outputs:
        return PackedOutputs(None, (), ())
    refs: list[BlobRef] = []
    payloads: dict[tuple[bytes, bool], Payload] = {}
    kept: list[Output] = []
    for index, output in enumerate(outputs):
        kept.append(dict(output))
        for key, value in output.items():
            if key == "data" and isinstance(value, dict):
                kept[index][key] = bundle = dict(value)
                for mimetype, item in value.items():
                    if _take_out((index, key, mimetype), item, mimetype, refs, payloads):
                        bundle[mimetype] = None
            elif _take_out((index, key), value, None, refs, payloads):
                kept[index][key] = None
    whole = Payload.of(_json(kept), is_redacted=True)
    return PackedOutputs(whole.digest, tuple(refs), (*payloads.values(), whole))


def unpack_outputs(
    data: bytes, refs: Iterable[BlobRef], read: Callable[[Digest], bytes | None]
) -> list[Output]:
    """Undo `pack_outputs`: put the values that `refs` names back into the outputs.

    Parameters
    ----------
    data
        The payload, which is the JSON array of outputs.
    refs
        The places and the blobs of the values.
    read
        Returns a blob's bytes, or None if it is gone. Then the value is empty, and the entry of a
        mimebundle is left out, so that the output stays valid.
    """
    outputs: list[Output] = json.loads(data)
    for ref in refs:
        *way, last = ref.at
        place: Any = outputs
        for step in way:
            place = place[step]
        blob = read(ref.sha256)
        if blob is not None:
            place[last] = _value(blob, ref.encoding)
        elif len(way) > 1:
            del place[last]
        else:
            place[last] = _STAND_INS.get(str(last), "")
    return outputs


def _take_out(
    at: tuple[int | str, ...],
    value: JSON,
    mimetype: str | None,
    refs: list[BlobRef],
    payloads: dict[tuple[bytes, bool], Payload],
) -> bool:
    """Make a blob of `value` if it is large or an image. Return whether it did."""
    image = mimetype in IMAGE_TYPES
    if value is None or isinstance(value, (bool, int, float)):
        return False
    if not image and isinstance(value, str) and len(value) * 4 <= INLINE_BYTES:
        return False
    data, encoding = _blob(value, mimetype)
    if not image and len(data) <= INLINE_BYTES:
        return False
    if encoding == "json":
        mimetype = "application/json"
    elif mimetype is None or (encoding == "text" and _is_binary(mimetype)):
        mimetype = "text/plain"
    payload = payloads.get((data, image)) or Payload.of(data, as_file=image, is_redacted=True)
    payloads[data, image] = payload
    refs.append(
        BlobRef(at=at, sha256=payload.digest, bytes=len(data), encoding=encoding, mimetype=mimetype)
    )
    return True


def _blob(value: JSON, mimetype: str | None) -> tuple[bytes, Any]:
    """Return `value` as bytes, and the name of the encoding."""
    if isinstance(value, str):
        if mimetype is not None and _is_binary(mimetype):
            decoded = _decoded(value)
            if decoded is not None:
                return decoded, "base64"
        try:
            return value.encode("utf-8"), "text"
        except UnicodeEncodeError:
            pass  # a lone surrogate: JSON can escape it
    return _json(value), "json"


def _value(data: bytes, encoding: str) -> JSON:
    if encoding == "base64":
        return binascii.b2a_base64(data, newline=False).decode("ascii")
    if encoding == "text":
        return data.decode("utf-8")
    return json.loads(data)


def _is_binary(mimetype: str) -> bool:
    """Whether Jupyter writes data of this type as base64."""
    if mimetype == "image/svg+xml":
        return False
    return mimetype.startswith(_BINARY) or mimetype == "application/pdf"


def _decoded(text: str) -> bytes | None:
    """Decode `text` from base64, if encoding the result again gives the same text."""
    try:
        data = binascii.a2b_base64(text)
    except ValueError:
        return None
    return data if binascii.b2a_base64(data, newline=False) == text.encode() else None


def _json(value: JSON) -> bytes:
    """Return JSON from which `json.loads` makes an equal value, NaN and surrogates included."""
    try:
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode("ascii")


class BlobStore:
    """The files of one session's payloads. Thread-safe.

    Parameters
    ----------
    folder
        Made when the first blob is written; its parent must exist.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, digest: Digest) -> Path:
        """Return where the payload is, or would be."""
        return self.folder / digest

    def find(self, digest: Digest) -> bytes | None:
        """Return a payload's bytes, or None if it is not there."""
        if not DIGEST.fullmatch(digest):  # a forged journal may name a path
            return None
        try:
            return self.path(digest).read_bytes()
        except FileNotFoundError:
            return None

    def read(self, line: Line, digest: Digest) -> bytes | None:
        """Return a payload that a line names, wherever it stands; None if it is gone."""
        text = line.payloads.get(digest)
        return self.find(digest) if text is None else text.encode("utf-8")

    def text(self, line: Line, digest: Digest | None) -> str | None:
        """Return the text of a payload that a line names; None if it is gone, or there is none."""
        data = None if digest is None else self.read(line, digest)
        return None if data is None else data.decode("utf-8", "replace")

    def keep(self, payloads: Iterable[Payload]) -> list[Payload]:
        """Write large payloads to files, durable before this returns.

        Returns all payloads, of those in files only the names and salts.

        Raises
        ------
        OSError
            If one could not be written. Those that were written do no harm.
        """
        kept: list[Payload] = []
        written = False
        for payload in payloads:
            data = payload.data
            if data is not None and not _fits_on_a_line(data, as_file=payload.as_file):
                if not self.path(payload.digest).exists():
                    make_folder(self.folder)
                    replace_file(self.path(payload.digest), data)
                    written = True
                kept.append(replace(payload, data=None))
            else:
                kept.append(payload)
        if written:
            sync_folder(self.folder)
        return kept

    def new_text_spill(self, max_bytes: int) -> TextSpill:
        """Return a file for an execution's whole text that becomes a blob when it is finished."""
        return TextSpill(self.folder, max_bytes)

    def remove_temporary(self) -> None:
        """Remove unfinished files of a server that died."""
        for path in self.folder.glob(".*"):
            path.unlink(missing_ok=True)


def _fits_on_a_line(data: bytes, *, as_file: bool) -> bool:
    if as_file or len(data) > INLINE_BYTES:
        return False
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


_BUFFER_BYTES: Final = 1 << 16
_PIECE_BYTES: Final = 1 << 20
"""How many bytes are written at one time, at least and at most, but at the end."""

_FULL_BYTES: Final = 8 << 20
_MOST_BYTES: Final = 32 << 20
"""Text that waits for the disk: from the first on, the kernel should wait; beyond the second, the
rest of the text is only counted."""


class SpilledText(NamedTuple):
    """The stored text of an execution."""

    payload: Payload
    """Its name and its salt."""
    bytes: int
    """Length of the blob."""
    omitted_bytes: int
    """UTF-8 bytes over the cap, or that could not be written."""


class TextSpill:
    """A growing file for an execution's text. Thread-safe; a failing disk is never raised.

    A thread of its own writes it, from the first text to `finish` or `discard`.

    Parameters
    ----------
    folder
        The session's blobs; made if need be.
    max_bytes
        The cap; the text is cut at the end of a character.
    """

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self._folder = folder
        self._path: Path
        self._max_bytes = max_bytes
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._fd: int | None = None
        self._salt: str
        self._hash: hmac.HMAC
        self._buffer = bytearray()
        self._taken = 0
        self._written = 0
        self._omitted = 0
        self._full = False

    @property
    def is_full(self) -> bool:
        """Whether so much text waits for the disk that no more should come."""
        return len(self._buffer) >= _FULL_BYTES

    def write(self, text: str) -> None:
        """Add to the text, without waiting for the disk. Text over the cap is only counted."""
        data = text.encode("utf-8", "replace")
        with self._changed:
            room = min(self._max_bytes - self._taken, _MOST_BYTES - len(self._buffer))
            room = 0 if self._full else max(0, room)
            if len(data) > room:
                kept = data[:room].decode("utf-8", "ignore").encode("utf-8")
                self._omitted += len(data) - len(kept)
                self._full = True
                data = kept
            if not data:
                return
            self._taken += len(data)
            self._buffer += data
            if self._thread is None:
                self._path = self._folder / f".{secrets.token_hex(8)}"
                self._salt = new_salt()
                self._hash = hmac.new(self._salt.encode("ascii"), digestmod="sha256")
                self._thread = threading.Thread(target=self._work, name="text", daemon=True)
                self._thread.start()
            if len(self._buffer) >= _BUFFER_BYTES:
                self._changed.notify()

    def finish(self) -> SpilledText | None:
        """Make the text a blob, durable before this returns; None if nothing could be written."""
        self._end()
        if self._fd is None:
            return None
        digest = Digest(self._hash.hexdigest())
        try:
            os.fsync(self._fd)
            self._path.rename(self._folder / digest)
            sync_folder(self._folder)
        except OSError:
            self._drop()
            return None
        os.close(self._fd)
        self._fd = None
        payload = Payload(digest=digest, salt=self._salt, data=None)
        return SpilledText(payload, self._written, self._omitted)

    def discard(self) -> None:
        """Remove the file. Idempotent, and harmless after `finish`."""
        with self._changed:
            self._buffer.clear()
        self._end()
        if self._fd is not None:
            self._drop()

    def _end(self) -> None:
        with self._changed:
            self._full = True
            thread, self._thread = self._thread, None
            self._changed.notify()
        if thread is not None:
            thread.join()

    def _work(self) -> None:
        while True:
            with self._changed:
                while self._thread is not None and len(self._buffer) < _BUFFER_BYTES:
                    self._changed.wait()
                if not self._buffer:
                    return
                data = bytes(self._buffer[:_PIECE_BYTES])
                del self._buffer[:_PIECE_BYTES]
            try:
                self._append(data)
            except OSError:
                with self._changed:
                    self._full = True
                    self._omitted += len(data) + len(self._buffer)
                    self._buffer.clear()
            else:
                self._hash.update(data)
                self._written += len(data)

    def _append(self, data: bytes) -> None:
        if self._fd is None:
            make_folder(self._folder)
            self._fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[os.write(self._fd, rest) :]
        except OSError:
            os.ftruncate(self._fd, self._written)
            os.lseek(self._fd, self._written, os.SEEK_SET)
            raise

    def _drop(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
        try:
            self._path.unlink(missing_ok=True)
        except OSError:
            return  # a folder that cannot be written; the next start removes it
