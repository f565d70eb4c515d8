"""What a request shows to say who sends it. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import unquote_plus

AGENT_PREFIX: Final = "jaex_"
"""How agent tokens begin, so that none is ever taken for a credential of Jupyter's own."""

_IN_HEADER: Final = re.compile(rf"\s*(?:\S+\s+)?(?P<token>{AGENT_PREFIX}.*?)\s*", re.DOTALL)
_ANYWHERE: Final = re.compile(rf"{AGENT_PREFIX}(?P<id>t_[0-9A-Z]{{26}})_\w*")


def shown_token(headers: Mapping[str, str]) -> str | None:
    """Return the agent token in a request's `Authorization` header, whatever its scheme.

    Such a request is not for Jupyter's identity provider, which gives out cookies that can do
    anything.
    """
    found = _IN_HEADER.fullmatch(headers.get("Authorization", ""))
    return None if found is None else found["token"]


def is_misplaced(uri: str, arguments: Mapping[str, Sequence[bytes]]) -> bool:
    """Tell whether an agent token stands in a request's address, or in a form.

    Parameters
    ----------
    uri
        The request's, with its query.
    arguments
        Of its query and of a body that is a form.
    """
    prefix = AGENT_PREFIX.encode()
    as_credential = any(token.strip().startswith(prefix) for token in arguments.get("token", ()))
    return as_credential or tokens_in(uri) != []


def tokens_in(uri: str) -> list[str]:
    """Return the ids of the agent tokens that stand somewhere in an address."""
    return [found["id"] for found in _ANYWHERE.finditer(unquote_plus(uri))]


def without_tokens(uri: str) -> str:
    """Return an address as it may stand in a log."""
    if not tokens_in(uri):
        return uri
    return _ANYWHERE.sub(f"{AGENT_PREFIX}[secret]", unquote_plus(uri))
