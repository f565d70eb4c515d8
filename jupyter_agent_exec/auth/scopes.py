"""Who may do what: scopes, what Jupyter's Authorizer is asked for each, and who is asking."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

from ..models import Caps, TokenRef
from ..records import By
from ..types import Access, ApprovalMode
from .grants import Grants

Scope: TypeAlias = Literal[
    "exec",
    "stop",
    "exec:scratch",
    "exec:notebook",
    "read:notebook",
    "edit:notebook",
    "files",
    "history:read",
    "decide",
    "tokens",
]
"""What a verb needs: to run code, in a scratch kernel or in one that somebody else uses, as the
session's target is (`exec`), or in one of both; to end what one has begun; to read or to change
notebooks; to reach the files in a session's folder; to read the history; to decide about what
agents ask for or did; to give agents tokens. The last two are for people only."""

FOR_PEOPLE: Final[frozenset[Scope]] = frozenset({"decide", "tokens"})
"""What no agent token reaches."""

RUNS_CODE: Final[frozenset[Scope]] = frozenset(
    {"exec", "exec:scratch", "exec:notebook", "edit:notebook", "files"}
)
"""What needs an agent token if the operator wants agents to have one."""

PERMISSIONS: Final[dict[Scope, tuple[str, str]]] = {
    "exec": ("execute", "kernels"),
    "stop": ("execute", "kernels"),
    "exec:scratch": ("execute", "kernels"),
    "exec:notebook": ("execute", "kernels"),
    "read:notebook": ("read", "contents"),
    "edit:notebook": ("write", "contents"),
    "files": ("write", "contents"),
    "history:read": ("read", "kernels"),
    "decide": ("execute", "kernels"),
    "tokens": ("execute", "kernels"),
}
"""Action and resource that Jupyter's Authorizer is asked about when a person comes."""


def given_away(grants: Grants) -> list[Scope]:
    """Return what a person must be allowed who gives an agent a token with these grants.

    What runs in a notebook's kernel gets a cell in that notebook.
    """
    needed: dict[Scope, None] = {"history:read": None}
    if grants.scratch:
        needed["exec:scratch"] = None
    if grants.files:
        needed["files"] = None
    for scope, _ in grants.notebooks:
        needed[scope] = None
        if scope == "exec:notebook":
            needed["edit:notebook"] = None
    return list(needed)


class Caller(Struct, frozen=True, kw_only=True):
    """Who asks."""

    username: str
    """The person, or the one on whose behalf the agent works."""
    display_name: str
    access: Access
    token: TokenRef | None = None
    """The agent token that was shown."""
    grants: Grants | None = None
    """What the token lets its agent do; None without a token, for all that the person may."""
    approval: ApprovalMode | None = None
    """What has to be approved of the token's sessions; None is what the policy says."""
    caps: Caps = Caps()
    """The most that may be used with the token."""
    host_kernels: Mapping[str, str] = msgspec.field(default_factory=dict)
    """By its id, what the asker shows of each kernel in which it runs itself: a proof that it can
    read the kernel's connection file, which is still to be checked."""

    def by(self) -> By:
        """Return the caller as entries name them."""
        return By(
            kind="person" if self.token is None else "agent",
            username=self.username,
            display_name=self.display_name,
            token_id=None if self.token is None else self.token.id,
        )
