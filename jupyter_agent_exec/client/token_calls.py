"""What people can ask of agent tokens, as steps without I/O; nothing here is asked twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from ..models import Caps, MintedToken, MintToken, Token, TokenList
from ..types import ApprovalMode
from .answers import read
from .routes import API, get, segment, send_model
from .steps import Call, Send, send

SCOPES: Final = ("exec:scratch", "files")
"""Of a token when nothing else is said: to run code and to move files, apart from people's own."""

_minted = msgspec.json.Decoder(MintedToken)
_token = msgspec.json.Decoder(Token)
_tokens = msgspec.json.Decoder(TokenList)


def mint(
    label: str,
    scopes: Sequence[str],
    *,
    expires_in: float | None,
    approval: ApprovalMode | None,
    caps: Caps | None,
) -> Call[MintedToken]:
    """Mint a token."""
    request = MintToken(
        label=label, scopes=list(scopes), approval=approval, caps=Caps() if caps is None else caps
    )
    if expires_in is not None:
        request = msgspec.structs.replace(request, expires_in=expires_in)
    return read((yield from send(send_model("POST", "/tokens", request))), _minted)


def tokens() -> Call[list[Token]]:
    """List tokens, the newest first."""
    return (yield from get("/tokens", _tokens)).tokens


def revoke(token_id: str) -> Call[Token]:
    """Revoke a token."""
    path = f"{API}/tokens/{segment(token_id)}"
    return read((yield from send(Send("DELETE", path))), _token)
