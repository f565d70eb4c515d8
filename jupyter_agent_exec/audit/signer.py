"""Signs the heads of a history's chains, in a thread: at intervals, and when a session has ended.

A signature is written beside the chain's file, after the head was kept beside the key. The journals
of sessions are signed before the ledger that lists them, so a signed part of a ledger lists no open
session without a signature.
"""

from __future__ import annotations

import base64
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import msgspec
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from msgspec.structs import replace

from ..errors import InvalidRequest
from ..journal.chain import hash_on
from ..journal.heads import EXPORT, HEAD, chain_name, key_id, signatures_path, signed_bytes
from ..journal.history import History
from ..journal.journal import end_of, signatures_of
from ..journal.ledger import is_held, ledger_paths, sessions_in
from ..journal.lines import ledger_entries
from ..journal.notebook import Sign
from ..journal.signatures import Signatures
from ..models import AcceptBreak, Chain, HeadSignature, RecordBreak
from ..records import SERVER, BreakAccepted, By, timestamp
from ..records import SigningKey as KeyEntry
from ..storage.durability import replace_file, sync_folder
from ..types import Digest, SessionId
from .kept_heads import KeptHeads, KeptLedger, break_of


class SigningKey:
    """An Ed25519 key.

    Parameters
    ----------
    path
        A PEM file with the private key, not encrypted.

    Raises
    ------
    OSError
        If it cannot be read.
    ValueError
        If it holds no such key.
    """

    def __init__(self, path: Path) -> None:
        try:
            key = load_pem_private_key(path.read_bytes(), password=None)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            key = None
        if not isinstance(key, Ed25519PrivateKey):
            raise ValueError(f"{path} holds no Ed25519 private key in PEM without a password.")
        self._key = key
        der = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        self.public_key = base64.b64encode(der).decode("ascii")
        """In DER, in base64."""
        self.id = Digest(key_id(self.public_key))
        """SHA-256 of the public key."""

    @classmethod
    def made(cls, path: Path) -> SigningKey:
        """Return the key in a file; make it, readable only for the owner, if there is no file."""
        if not path.exists():
            pem = Ed25519PrivateKey.generate().private_bytes(
                Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
            )
            temporary = path.with_name(f"{path.name}-{os.getpid()}")
            replace_file(temporary, pem)
            with suppress(FileExistsError):  # another server has just made one
                os.link(temporary, path)
            temporary.unlink()
            sync_folder(path.parent)
        return cls(path)

    def sign(self, statement: Mapping[str, Any]) -> dict[str, Any]:
        """Return a statement with its time, the key and the signature."""
        signed = {**statement, "at": timestamp(), "key": self.id, "public_key": self.public_key}
        signature = self._key.sign(signed_bytes(signed))
        return {**signed, "signature": base64.b64encode(signature).decode("ascii")}


_STOP_TIMEOUT: Final = 5.0
"""Seconds that a stopping server waits for the last signatures."""


class Signer(Signatures):
    """Signs the heads of a history, as long as it continues what was signed before.

    No execution waits for it; after an error it tries again.

    Parameters
    ----------
    history
        The history.
    load_key
        Returns the key; called in the thread.
    heads
        The file of the heads that were signed last.
    interval
        Seconds between two signatures of a chain that grows.
    told
        Called when it has stopped to sign because the record is broken, or signs again.
    """

    def __init__(
        self,
        history: History,
        load_key: Callable[[], SigningKey],
        heads: Path,
        interval: float,
        told: Callable[[], None],
        log: logging.Logger,
    ) -> None:
        self._history = history
        self._load_key = load_key
        self._kept = KeptHeads(heads, history.folder)
        self._interval = interval
        self._told = told
        self._log = log
        self._key: SigningKey | None = None
        self._named_in: Path | None = None
        self._broken: RecordBreak | None = None
        self._signed: dict[Path, Chain] = {}
        self._ended: list[tuple[Path, Chain]] = []
        self._gone: list[SessionId] = []
        self._wake = threading.Event()
        self._stopping = False
        self._lock = threading.Lock()
        self._warned: set[str] = set()
        self._thread = threading.Thread(target=self._run, name="agent-exec-signer", daemon=True)

    def start(self) -> None:
        """Begin to sign."""
        self._thread.start()

    def stop(self) -> None:
        """Sign what is left, once the history is closed, and end the thread; bounded."""
        self._stopping = True
        self._wake.set()
        if self._thread.ident is not None:
            self._thread.join(_STOP_TIMEOUT)

    @property
    def of_exports(self) -> Sign | None:
        """Signs what exports say; None if nothing is signed."""
        key = self._key if self._broken is None else None
        return None if key is None else lambda told: key.sign({"format": EXPORT, **told})

    @property
    def broken(self) -> RecordBreak | None:
        """Why nothing is signed any more, until a person accepts it; None while it is."""
        return self._broken

    def changed(self, journal: Path, end: Chain) -> None:
        """Note the end of a session's journal, as the ledger lists it now; cheap."""
        self._ended.append((journal, end))
        self._wake.set()

    @contextmanager
    def going(self, sessions: Iterable[SessionId]) -> Iterator[None]:
        """Note sessions while something is erased from them, or they are removed."""
        noted = list(sessions)
        with self._lock:
            self._kept.keep(going=noted)
            self._gone = [each for each in self._gone if each not in noted]
        yield
        with self._lock:
            self._gone += noted

    def accept(self, wanted: AcceptBreak, by: By) -> None:
        """Sign on, although the record does not continue what was signed; a person wants it."""
        with self._lock:
            own = self._history.heads()[0][0].path
            broken = self._look(own)
            if broken is None or broken.name != wanted.name:
                name = "not broken" if broken is None else f"broken in another way: {broken.name}"
                raise InvalidRequest(f"The record is {name}.", field="name")
            found = tuple(broken.found)
            entry = BreakAccepted(at=timestamp(), by=by, name=broken.name, found=found)
            self._history.note(entry)
            self._kept.take(own)
        self.sign()

    def _run(self) -> None:
        due = 0.0
        while True:
            is_last = self._stopping
            is_due = is_last or time.monotonic() >= due
            if is_due:
                due = time.monotonic() + self._interval
            self._round(everything=is_due)
            if is_last:
                return
            self._wake.wait(max(0.0, due - time.monotonic()))
            self._wake.clear()

    def sign(self) -> None:
        """Sign all that has grown now, if that is possible."""
        self._round(everything=True)

    def _round(self, *, everything: bool) -> None:
        """Sign the sessions that have ended, or all that has grown."""
        with self._lock:
            try:
                key = self._named_key()
                if everything or not self._signed:
                    self._sign_written(key)
                elif self._broken is None and self._ended:
                    self._sign_ended(key)
            except Exception as error:  # whatever it is, the thread goes on and tries again
                self._warn(f"The heads of the record cannot be signed: {error}")

    def _warn(self, message: str) -> None:
        """Log a message once."""
        if message not in self._warned:
            self._warned.add(message)
            self._log.warning("%s", message)

    def _look(self, own: Path) -> RecordBreak | None:
        """Return the break of the record, if there is one, and tell of it; see `KeptHeads`."""
        broken = break_of(self._kept.breaks(own))
        if broken is None or self._broken is None or broken.name != self._broken.name:
            was_broken, self._broken = self._broken is not None, broken
            if broken is not None:
                self._log.error(
                    "Nothing is signed any more: the record does not continue what was signed. "
                    "%s If you know why, run: jupyter agent-exec accept-break %s",
                    " ".join(broken.found),
                    broken.name,
                )
            if broken is not None or was_broken:
                self._told()
        return self._broken

    def _sign_written(self, key: SigningKey) -> None:
        """Sign what this server writes, the ledger last, and what dead servers left."""
        owes, ended, gone = self._history.owes, list(self._ended), list(self._gone)
        (ledger, ledger_end), *journals = self._history.heads()  # lists what had ended before
        if self._look(ledger.path) is not None:
            return
        name, ends = ledger.path.stem, {_session(each.path): end for each, end in journals}
        if self._kept.is_empty:
            self._log.info("No heads are kept yet: the history is taken as it is")
            self._kept.take(ledger.path)
        if owes:
            ends = {**self._kept.of(name).sessions, **_ends(ended), **ends}
        kept = KeptLedger(end=ledger_end, sessions=ends)
        self._kept.keep({name: kept}, gone=[] if owes else gone)
        for journal, end in journals:
            journal.signature = self._sign(key, journal.path, end) or journal.signature
        for path, end in dict(ended).items():
            self._sign(key, path, end, is_ended=True)
        ledger.signature = self._sign(key, ledger.path, ledger_end) or ledger.signature
        if not owes:
            del self._ended[: len(ended)], self._gone[: len(gone)]
            for path, _ in ended:
                self._signed.pop(path, None)
        for path in ledger_paths(self._history.folder):
            if path == ledger.path or path in self._signed:  # nobody writes one after its sessions
                continue
            if not is_held(path) and all(sessions_in(path).values()):
                end = end_of(path)
                self._kept.keep({path.stem: KeptLedger(end=end)})
                self._sign(key, path, end)

    def _sign_ended(self, key: SigningKey) -> None:
        """Sign the journals of sessions that have ended or were amended."""
        ended, name = list(self._ended), self._history.heads()[0][0].path.stem
        kept = self._kept.of(name)
        self._kept.keep({name: replace(kept, sessions={**kept.sessions, **_ends(ended)})})
        for path, end in dict(ended).items():
            self._sign(key, path, end, is_ended=True)

    def _named_key(self) -> SigningKey:
        """Return the key; the ledger names it."""
        key = self._key or self._load_key()
        heads = self._history.heads()
        if not heads or self._named_in != heads[0][0].path:
            entry = KeyEntry(at=timestamp(), by=SERVER, key=key.id, public_key=key.public_key)
            known = [
                each.key
                for journal, _ in heads[:1]
                for each in ledger_entries(journal.path)
                if isinstance(each, KeyEntry)
            ]
            if known[-1:] != [key.id]:
                self._history.note(entry)
            self._named_in = self._history.heads()[0][0].path
        self._key = key
        return key

    def _sign(
        self, key: SigningKey, path: Path, end: Chain, *, is_ended: bool = False
    ) -> HeadSignature | None:
        """Sign the head of a chain, if it is not signed yet; None if it is not signed now."""
        if not end.length or self._signed.get(path) == end or not path.is_file():
            return None
        try:
            kept = signatures_of(path)
        except msgspec.MsgspecError:
            self._warn(f"The signatures of {path} cannot be read, so it is not signed now")
            return None
        if is_ended and not all(_is_continued(path, each) for each in kept):
            self._warn(f"{path} is not what was signed before, so it is not signed now")
            return None
        head = {"format": HEAD, "chain": chain_name(path), "length": end.length, "head": end.head}
        signature = msgspec.convert(key.sign(head), HeadSignature)
        others = [each for each in kept if each.key != key.id]
        replace_file(signatures_path(path), msgspec.json.encode([*others, signature]))
        self._signed[path] = end
        return signature


def _session(journal: Path) -> SessionId:
    return SessionId(journal.parent.name)


def _ends(ended: Iterable[tuple[Path, Chain]]) -> dict[SessionId, Chain]:
    return {_session(path): end for path, end in ended}


def _is_continued(path: Path, signature: HeadSignature) -> bool:
    """Return whether a chain still has a head that was signed."""
    with path.open("rb") as file:
        return any(
            n == signature.length and signature.head.encode("ascii") == hash_on(line)
            for n, line in enumerate(file, 1)
        )
