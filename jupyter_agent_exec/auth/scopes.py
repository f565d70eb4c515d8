"""Scopes: the permissions that a route needs, and that an agent token grants. Pure.

A token's scopes may name patterns of contents paths. A pattern is compared with a path part by
part, and case matters: `*` matches any text within a part, a part `**` matches any number of parts.
Only a path in plain form matches, so that another spelling of a path cannot bypass a pattern.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final, Literal, TypeAlias, get_args

import msgspec
from msgspec import Struct

from ..errors import InvalidRequest
from ..models import Caps, TokenRef
from ..records import By
from ..types import Access, ApprovalMode, EditMode

Scope: TypeAlias = Literal[
    "exec",
    "look",
    "stop",
    "exec:scratch",
    "exec:notebook",
    "look:notebook",
    "read:notebook",
    "edit:notebook",
    "files",
    "undo",
    "history:read",
    "decide",
    "tokens",
]
"""The scope that a route needs.

`exec` runs code in any target of a session; `look` runs it there as a trial, and lists variables;
`exec:scratch` and `exec:notebook` run it in a scratch kernel or in a kernel that others use. `stop`
ends what the caller began. `files` is for the session's folder, `undo` for what
its executions changed in the kernel. `decide` (about agents' code) and
`tokens` (to create them) are for people only.
"""

FOR_PEOPLE: Final[frozenset[Scope]] = frozenset({"decide", "tokens"})
"""Scopes that no agent token can have."""

RUNS_CODE: Final[frozenset[Scope]] = frozenset(
    {"exec", "look", "exec:scratch", "exec:notebook", "look:notebook", "edit:notebook", "files"}
)
"""Scopes that need an agent token if `allow_full_access` is off."""

PERMISSIONS: Final[dict[Scope, tuple[str, str]]] = {
    **dict.fromkeys(get_args(Scope), ("execute", "kernels")),
    "read:notebook": ("read", "contents"),
    "edit:notebook": ("write", "contents"),
    "files": ("write", "contents"),
    "history:read": ("read", "kernels"),
}
"""For each scope, the action and resource to check with Jupyter's Authorizer for a person."""

NotebookScope: TypeAlias = Literal[
    "exec:notebook", "edit:notebook", "look:notebook", "read:notebook"
]

NOTEBOOK_SCOPES: Final[tuple[NotebookScope, ...]] = get_args(NotebookScope)
PLAIN_SCOPES: Final = ("exec:scratch", "files", "undo", "history:read", "history:read:all")
GRANTED_BY: Final[Mapping[Scope, tuple[str, ...]]] = {
    "exec": ("exec:scratch", "exec:notebook"),
    "look": ("exec:scratch", "look:notebook", "exec:notebook"),
    "exec:scratch": ("exec:scratch",),
    "exec:notebook": ("exec:notebook",),
    "edit:notebook": ("edit:notebook",),
    "look:notebook": ("look:notebook", "exec:notebook"),
    "read:notebook": NOTEBOOK_SCOPES,
    "files": ("files",),
    "undo": ("undo",),
}
"""The scopes of a token that allow what a route needs. `stop` and `history:read` need none."""

_FORMS: Final = (
    "exec:scratch, exec:notebook[:<pattern>], look:notebook[:<pattern>], "
    "read:notebook[:<pattern>], edit:notebook[:<pattern>], files, undo, history:read, "
    "history:read:all"
)

_ODD: Final = re.compile(r"[\x00-\x1f\x7f\\]")
_DRIVE: Final = re.compile(r"RTC:")
_ANY_PARTS: Final = "**"
"""A part of a pattern that matches any number of parts; alone, it matches every path."""


class Grants(Struct, frozen=True, kw_only=True):
    """What an agent may do with a token."""

    plain: frozenset[str] = frozenset()
    """Those of `PLAIN_SCOPES`. Its own history is always readable."""
    notebooks: tuple[tuple[NotebookScope, str], ...] = ()
    """Patterns of contents paths, and what the agent may do to the notebooks there."""

    @classmethod
    def parse(cls, scopes: Iterable[str], *, field: str = "scopes") -> Grants:
        """Return the grants of scopes.

        Raises
        ------
        InvalidRequest
            A scope is not valid.
        """
        plain: set[str] = set()
        notebooks: dict[tuple[NotebookScope, str], None] = {}
        for index, scope in enumerate(scopes):
            at = f"{field}[{index}]"
            if scope in PLAIN_SCOPES:
                plain.add(scope)
                continue
            found = _notebook_scope(scope)
            if found is None:
                raise InvalidRequest(
                    f"{at}: there is no scope {scope!r}; there are {_FORMS}.",
                    field=at,
                    allowed=[*PLAIN_SCOPES, *NOTEBOOK_SCOPES],
                )
            notebooks[found[0], checked_pattern(found[1], at)] = None
        return cls(plain=frozenset(plain), notebooks=tuple(notebooks))

    @property
    def all_history(self) -> bool:
        """Whether the history of other tokens and users is readable."""
        return "history:read:all" in self.plain

    def holds(self, scope: Scope) -> bool:
        """Return whether a scope that is not for people only is granted for anything at all."""
        names = GRANTED_BY.get(scope)
        granted = self.plain.union(name for name, _ in self.notebooks)
        return names is None or not granted.isdisjoint(names)

    def patterns(self, scope: NotebookScope) -> list[str]:
        """Return the patterns of the notebooks for which a scope is granted."""
        granted = (pattern for name, pattern in self.notebooks if name in GRANTED_BY[scope])
        return list(dict.fromkeys(granted))

    def reaches(self, scope: NotebookScope, path: str) -> bool:
        """Return whether a scope is granted for the notebook at a path in plain form."""
        return any(matches(pattern, path) for pattern in self.patterns(scope))

    def is_everywhere(self, scope: NotebookScope) -> bool:
        """Return whether a scope is granted for every notebook."""
        return _ANY_PARTS in self.patterns(scope)


def _notebook_scope(scope: str) -> tuple[NotebookScope, str] | None:
    """Return the notebook scope and the pattern of a scope; None if it is not for notebooks."""
    for name in NOTEBOOK_SCOPES:
        if scope == name:
            return name, _ANY_PARTS
        if scope.startswith(f"{name}:"):
            return name, scope[len(name) + 1 :]
    return None


def given_away(grants: Grants) -> list[Scope]:
    """Return the permissions that a person needs to create a token with these grants.

    An execution in a notebook's kernel gets a cell in that notebook, so it needs both. A look is
    into the kernel, and at the cells.
    """
    plain: tuple[Scope, ...] = ("exec:scratch", "files", "undo")
    needed: dict[Scope, None] = {"history:read": None}
    needed |= dict.fromkeys(scope for scope in plain if scope in grants.plain)
    for scope, _ in grants.notebooks:
        needed[scope] = None
        if scope == "exec:notebook":
            needed["edit:notebook"] = None
        elif scope == "look:notebook":
            needed["read:notebook"] = None
    return list(needed)


class Caller(Struct, frozen=True, kw_only=True):
    """The sender of a request."""

    username: str
    """The person, or the person on whose behalf the agent works."""
    display_name: str
    access: Access
    token: TokenRef | None = None
    """The agent token in the request."""
    grants: Grants | None = None
    """What the token allows; None without a token, which allows all that the person may do."""
    approval: ApprovalMode | None = None
    """Which of the token's code needs approval; None follows the policy."""
    edits: EditMode | None = None
    """What becomes of the token's edits of notebooks; None follows the policy."""
    caps: Caps = Caps()
    """Limits on what the token may use."""
    host_kernels: Mapping[str, str] = msgspec.field(default_factory=dict)
    """The kernels in which the caller itself runs, by id: for each, a proof that it can read the
    kernel's connection file. The proofs are not checked yet."""

    def by(self) -> By:
        """Return the caller as entries name them."""
        return By(
            kind="person" if self.token is None else "agent",
            username=self.username,
            display_name=self.display_name,
            token_id=None if self.token is None else self.token.id,
        )


def plain_path(path: str) -> str | None:
    """Return a contents path in plain form; None if it has none.

    Slashes at its ends are removed. Empty parts, `.` and `..`, backslashes, control characters
    and the drive under which pages open live documents do not belong in one.
    """
    path = path.strip("/")
    parts = path.split("/")
    if _ODD.search(path) or _DRIVE.match(path) or any(part in ("", ".", "..") for part in parts):
        return None
    return path


def checked_pattern(pattern: str, field: str) -> str:
    """Return a pattern in plain form.

    Raises
    ------
    InvalidRequest
        No path in plain form can match it, or `**` is not a whole part.
    """
    found = plain_path(pattern)
    if found is None or any(_ANY_PARTS in part and part != _ANY_PARTS for part in found.split("/")):
        raise InvalidRequest(
            f"{field}: {pattern!r} is not a pattern of contents paths. Separate parts by '/', "
            "without '.', '..' and backslashes. '*' matches any text within a part, and a part "
            "'**' matches any number of parts.",
            field=field,
        )
    return found


def matches(pattern: str, path: str) -> bool:
    """Return whether a path matches a pattern, both in plain form."""
    return _match(tuple(pattern.split("/")), tuple(path.split("/")))


def _match(pattern: tuple[str, ...], path: tuple[str, ...]) -> bool:
    """Compare part by part, in time proportional to the number of parts for any pattern."""
    reached = {0}
    for part in pattern:
        if part == _ANY_PARTS:
            reached = set(range(min(reached, default=len(path) + 1), len(path) + 1))
        else:
            reached = {at + 1 for at in reached if at < len(path) and _is_part(part, path[at])}
    return len(path) in reached


def _is_part(pattern: str, part: str) -> bool:
    """Compare one part; each text between stars is searched once, from left to right."""
    first, *middle = pattern.split("*")
    if not middle:
        return part == first
    last = middle.pop()
    if len(part) < len(first) + len(last) or not (part.startswith(first) and part.endswith(last)):
        return False
    at, end = len(first), len(part) - len(last)
    for text in middle:
        at = part.find(text, at, end)
        if at < 0:
            return False
        at += len(text)
    return True
