"""The key that signs: an Ed25519 key in a file, which is made when it is needed first."""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from ..journal.heads import key_id, signed_bytes
from ..records import timestamp
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
