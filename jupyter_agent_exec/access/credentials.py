"""What a request shows to say who sends it. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

AGENT_PREFIX: Final = "jaex_"
"""How agent tokens begin, so that none is ever taken for a credential of Jupyter's own."""

_IN_HEADER: Final = re.compile(rf"\s*(?:\S+\s+)?{AGENT_PREFIX}")


def has_agent_token(headers: Mapping[str, str], arguments: Mapping[str, Sequence[bytes]]) -> bool:
    """Tell whether a request carries an agent token, wherever a credential may stand.

    Such a request is not for Jupyter's identity provider, which gives out cookies that can do
    anything.

    Parameters
    ----------
    headers
        The request's.
    arguments
        Of its query and of a body that is a form.
    """
    prefix = AGENT_PREFIX.encode()
    return bool(_IN_HEADER.match(headers.get("Authorization", ""))) or any(
        token.strip().startswith(prefix) for token in arguments.get("token", ())
    )
