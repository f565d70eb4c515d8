"""Defines, to the byte, what is signed. The code that signs and `verify` share it.

It uses only the standard library and `chain`. A signature is an object whose other fields are
signed by Ed25519, as canonical bytes: `format`, `chain` (the id of a session, or the name of a
ledger), `length`, `head`, `at` and `key`, the SHA-256 of the public key in DER. `public_key` and
`signature`, in base64, are not signed. The signature of an export also has `cells`, the id and the
digest of each cell in order, and `metadata`, the digest of the notebook's metadata.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from .chain import canonical

HEAD: Final = "jupyter-agent-exec/head/1"
"""The `format` of the signature of a head."""
EXPORT: Final = "jupyter-agent-exec/export/1"
"""The `format` of the signature of an exported notebook."""
PRIVATE_KEY: Final = "signing-key.pem"
"""The file in the history's folder that holds the private key, unless a key was handed in."""


def chain_name(journal: Path) -> str:
    """Return what names a chain in signatures, from the path of its file."""
    return journal.parent.name if journal.name == "journal.jsonl" else journal.stem


def journal_in(folder: Path, session_id: str) -> Path:
    """Return the path of a session's journal in a history."""
    return folder / "sessions" / session_id / "journal.jsonl"


def signatures_path(journal: Path) -> Path:
    """Return the file beside a journal or ledger with its last signature by each key."""
    return journal.with_suffix(".signatures")


def key_id(public_key: str) -> str:
    """Return the SHA-256 of a public key in DER, from its base64.

    Raises
    ------
    ValueError
        If it is not base64.
    """
    return hashlib.sha256(base64.b64decode(public_key, validate=True)).hexdigest()


def signed_bytes(statement: Mapping[str, Any]) -> bytes:
    """Return the bytes that are signed."""
    return canonical({name: statement[name] for name in statement if name not in _UNSIGNED})


_UNSIGNED: Final = ("public_key", "signature")


def recorded(cell: Mapping[str, Any]) -> dict[str, Any]:
    """Return what came from the record in a notebook's cell, by name, without empty parts.

    It is the same however a tool writes the notebook: with texts as lists of lines or as one text,
    with null or without a field, with 1 or 1.0.
    """
    metadata = cell.get("metadata")
    fields = {name: cell.get(name) for name in ("id", "cell_type", "execution_count")}
    fields["source"] = _joined(cell.get("source"))
    fields["outputs"] = _outputs(cell.get("outputs"))
    fields["agent_exec"] = metadata.get("agent_exec") if isinstance(metadata, dict) else None
    normal: dict[str, Any] = _normal(fields)
    return normal


def cell_digest(cell: Mapping[str, Any]) -> str:
    """Return the digest of what came from the record in a notebook's cell."""
    return _digest(recorded(cell))


def metadata_digest(metadata: Mapping[str, Any]) -> str:
    """Return the digest of what came from the record in a notebook's metadata."""
    about = {name: value for name, value in metadata["agent_exec"].items() if name != "signature"}
    return _digest({"agent_exec": about, "widgets": metadata.get("widgets")})


def _digest(value: Any) -> str:
    return hashlib.sha256(canonical(_normal(value))).hexdigest()


def _outputs(outputs: Any) -> Any:
    if not isinstance(outputs, list) or not all(isinstance(output, dict) for output in outputs):
        return outputs
    return [
        {
            **output,
            "text": _joined(output.get("text")),
            "data": {
                mimetype: value if mimetype.endswith("json") else _joined(value)
                for mimetype, value in (output.get("data") or {}).items()
            },
        }
        for output in outputs
    ]


def _joined(value: Any) -> Any:
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return "".join(value)
    return value


def _normal(value: Any) -> Any:
    """Return a value without empty parts, and as strict JSON holds it in any language."""
    if isinstance(value, dict):
        named = {_normal(name): _normal(item) for name, item in value.items()}
        return {name: item for name, item in named.items() if item not in (None, {}, [])}
    if isinstance(value, list):
        return [_normal(item) for item in value]
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, float):
        return int(value) if value.is_integer() else value if value - value == 0 else None
    return value
