"""Signs the heads of a history's chains, in a thread: at intervals, and when a session has ended.

A signature is written beside the chain's file. The journals of sessions are signed before the
ledger that lists them, so a signed part of a ledger lists no open session without a signature.
"""

from __future__ import annotations

import base64
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
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

from ..journal.heads import EXPORT, HEAD, chain_name, key_id, signatures_path, signed_bytes
from ..journal.history import History
from ..journal.journal import end_of, signatures_of
from ..journal.ledger import is_held, ledger_paths, sessions_in
from ..journal.lines import ledger_entries
from ..models import Chain, HeadSignature
from ..records import SERVER, timestamp
from ..records import SigningKey as KeyEntry
from ..storage.durability import replace_file, sync_folder
from ..types import Digest


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


class Signer:
    """Signs the heads of a history. Nothing waits for it; after an error it tries again.

    Parameters
    ----------
    history
        The history.
    load_key
        Returns the key; called in the thread.
    interval
        Seconds between two signatures of a chain that grows.
    """

    def __init__(
        self,
        history: History,
        load_key: Callable[[], SigningKey],
        interval: float,
        log: logging.Logger,
    ) -> None:
        self._history = history
        self._load_key = load_key
        self._interval = interval
        self._log = log
        self._key: SigningKey | None = None
        self._named_in: Path | None = None
        self._signed: dict[Path, Chain] = {}
        self._ended: dict[Path, Chain] = {}
        self._wake = threading.Event()
        self._stopping = False
        self._lock = threading.Lock()
        self._warned: set[str] = set()
        self._thread = threading.Thread(target=self._run, name="agent-exec-signer", daemon=True)

    def start(self) -> None:
        """Begin to sign."""
        self._history.ended.append(self._session_ended)
        self._history.sign = self._sign_export
        self._thread.start()

    def stop(self) -> None:
        """Sign what is left, once the history is closed, and end the thread; bounded."""
        self._stopping = True
        self._wake.set()
        if self._thread.ident is not None:
            self._thread.join(_STOP_TIMEOUT)

    def _session_ended(self, path: Path, end: Chain) -> None:
        self._ended[path] = end
        self._wake.set()

    def _sign_export(self, statement: Mapping[str, Any]) -> dict[str, Any] | None:
        return None if self._key is None else self._key.sign({"format": EXPORT, **statement})

    def _run(self) -> None:
        due = 0.0
        while True:
            is_last = self._stopping
            is_due = is_last or time.monotonic() >= due
            if is_due:
                due = time.monotonic() + self._interval
            self.sign(everything=is_due)
            if is_last:
                return
            self._wake.wait(max(0.0, due - time.monotonic()))
            self._wake.clear()

    def sign(self, *, everything: bool = True) -> None:
        """Sign the sessions that have ended, or all that has grown."""
        with self._lock:
            try:
                key = self._named_key()
                if everything:
                    self._sign_written(key)
                else:
                    self._sign_ended(key)
            except Exception as error:  # whatever it is, the thread goes on and tries again
                self._warn(f"The heads of the record cannot be signed: {error}")

    def _warn(self, message: str) -> None:
        """Log a message once."""
        if message not in self._warned:
            self._warned.add(message)
            self._log.warning("%s", message)

    def _sign_written(self, key: SigningKey) -> None:
        """Sign what this server writes, the ledger last, and what dead servers left."""
        (ledger, ledger_end), *journals = self._history.heads()
        for journal, end in journals:
            journal.signature = self._sign(key, journal.path, end) or journal.signature
        self._sign_ended(key)
        ledger.signature = self._sign(key, ledger.path, ledger_end) or ledger.signature
        for path in ledger_paths(self._history.folder):
            if path == ledger.path or path in self._signed:  # nobody writes one after its sessions
                continue
            if not is_held(path) and all(sessions_in(path).values()):
                self._sign(key, path, end_of(path))

    def _sign_ended(self, key: SigningKey) -> None:
        """Sign the journals of sessions that have ended or were amended."""
        while self._ended:
            path, end = self._ended.popitem()
            self._signed.pop(path, None)  # an amendment read it from the disk: compare it again
            try:
                self._sign(key, path, end)
            except BaseException:
                self._ended.setdefault(path, end)
                raise

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

    def _sign(self, key: SigningKey, path: Path, end: Chain) -> HeadSignature | None:
        """Sign the head of a chain, if it is not signed yet; None if it is not signed now."""
        if not end.length or self._signed.get(path) == end or not path.is_file():
            return None
        try:
            kept = signatures_of(path)
        except msgspec.MsgspecError:
            self._warn(f"The signatures of {path} cannot be read, so it is not signed now")
            return None
        if path not in self._signed and not all(_is_continued(path, each) for each in kept):
            self._warn(f"{path} is not what was signed before, so it is not signed now")
            return None
        head = {"format": HEAD, "chain": chain_name(path), "length": end.length, "head": end.head}
        signature = msgspec.convert(key.sign(head), HeadSignature)
        others = [each for each in kept if each.key != key.id]
        replace_file(signatures_path(path), msgspec.json.encode([*others, signature]))
        self._signed[path] = end
        return signature


def _is_continued(path: Path, signature: HeadSignature) -> bool:
    """Return whether a chain still has a head that was signed."""
    with path.open("rb") as file:
        return any(
            n == signature.length and signature.head.encode("ascii") == line[9:73]
            for n, line in enumerate(file, 1)
        )
