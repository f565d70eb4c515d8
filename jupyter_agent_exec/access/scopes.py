"""What a verb needs, and which of Jupyter's actions that is. Pure."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from msgspec import Struct

from ..records import By

Scope: TypeAlias = Literal[
    "exec:scratch", "exec:notebook", "read:notebook", "edit:notebook", "history:read"
]
"""What a verb needs: to run code in a scratch kernel, or in one that somebody else uses; to read or
to change notebooks; to read the history."""

PERMISSIONS: Final[dict[Scope, tuple[str, str]]] = {
    "exec:scratch": ("execute", "kernels"),
    "exec:notebook": ("execute", "kernels"),
    "read:notebook": ("read", "contents"),
    "edit:notebook": ("write", "contents"),
    "history:read": ("read", "kernels"),
}
"""Action and resource that Jupyter's Authorizer is asked about when a person comes."""


class Caller(Struct, frozen=True, kw_only=True):
    """Who asks."""

    username: str
    display_name: str
    access: Literal["full"]
    """`full`: by a person's own credential."""

    def by(self) -> By:
        """Return the caller as entries name them."""
        return By(kind="person", username=self.username, display_name=self.display_name)
