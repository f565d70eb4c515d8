"""The text of agent tokens: their form, where requests show them, and how logs do not.

An agent's credential is `jaex_<id>_<secret>`. A client that signed in has a refresh token too,
`jaer_<id>_<secret>`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import unquote_plus

from ..types import AGENT_PREFIX

REFRESH_PREFIX: Final = "jaer_"

_IN_HEADER: Final = re.compile(rf"\s*(?:\S+\s+)?(?P<token>{AGENT_PREFIX}.*?)\s*", re.DOTALL)
_ANYWHERE: Final = re.compile(rf"{AGENT_PREFIX}(?P<id>t_[0-9A-Z]{{26}})_\w*")
ACCESS_TOKEN: Final = re.compile(
    rf"{AGENT_PREFIX}(?P<id>t_[0-9A-Z]{{26}})_(?P<secret>[0-9a-f]{{64}})"
)
REFRESH_TOKEN: Final = re.compile(
    rf"{REFRESH_PREFIX}(?P<id>t_[0-9A-Z]{{26}})_(?P<secret>[0-9a-f]{{64}})"
)


def shown_token(headers: Mapping[str, str]) -> str | None:
    """Return the agent token in a request's `Authorization` header, with any scheme.

    Jupyter's identity provider must not handle such a request, because it sets cookies that give
    full access.
    """
    found = _IN_HEADER.fullmatch(headers.get("Authorization", ""))
    return None if found is None else found["token"]


def is_misplaced(uri: str, arguments: Mapping[str, Sequence[bytes]]) -> bool:
    """Return whether a request's address or form contains an agent token.

    Parameters
    ----------
    uri
        The request's URI, with its query.
    arguments
        The arguments of its query, and of its body if that is a form.
    """
    prefix = AGENT_PREFIX.encode()
    as_credential = any(token.strip().startswith(prefix) for token in arguments.get("token", ()))
    return as_credential or tokens_in(uri) != []


def tokens_in(uri: str) -> list[str]:
    """Return the ids of the agent tokens in an address."""
    return [found["id"] for found in _ANYWHERE.finditer(unquote_plus(uri))]


def without_tokens(uri: str) -> str:
    """Return an address for a log, without secrets."""
    if not tokens_in(uri):
        return uri
    return _ANYWHERE.sub(f"{AGENT_PREFIX}[secret]", unquote_plus(uri))
