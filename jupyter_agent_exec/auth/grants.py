"""What an agent token lets its agent do: its scopes, parsed. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from ..errors import InvalidRequest
from .patterns import EVERYWHERE, checked_pattern, matches

NotebookScope: TypeAlias = Literal["exec:notebook", "edit:notebook", "read:notebook"]

NOTEBOOK_SCOPES: Final[tuple[NotebookScope, ...]] = (
    "exec:notebook",
    "edit:notebook",
    "read:notebook",
)
PLAIN_SCOPES: Final = ("exec:scratch", "files", "history:read", "history:read:all")

_FORMS: Final = (
    "exec:scratch, exec:notebook[:<pattern>], read:notebook[:<pattern>], "
    "edit:notebook[:<pattern>], files, history:read, history:read:all"
)


class Grants(Struct, frozen=True, kw_only=True):
    """What a token lets its agent do."""

    scratch: bool = False
    """To run code in scratch kernels."""
    files: bool = False
    """To reach the files in the folders of its own sessions."""
    all_history: bool = False
    """To read what was done without this token too; its own is always readable."""
    notebooks: tuple[tuple[NotebookScope, str], ...] = ()
    """Patterns of contents paths, and what may be done to the notebooks there."""

    @classmethod
    def parse(cls, scopes: Iterable[str], *, field: str = "scopes") -> Grants:
        """Return what scopes mean.

        Raises
        ------
        InvalidRequest
            One of them is none.
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
        return cls(
            scratch="exec:scratch" in plain,
            files="files" in plain,
            all_history="history:read:all" in plain,
            notebooks=tuple(notebooks),
        )

    def holds(self, scope: NotebookScope) -> bool:
        """Tell whether there is any notebook to which this may be done."""
        return bool(self.patterns(scope))

    def patterns(self, scope: NotebookScope) -> list[str]:
        """Return the patterns of the notebooks to which this may be done.

        Who may run code in a notebook's kernel, or change its cells, may read it.
        """
        return [
            pattern for name, pattern in self.notebooks if name == scope or scope == "read:notebook"
        ]

    def reaches(self, scope: NotebookScope, path: str) -> bool:
        """Tell whether this may be done to the notebook at a path in the plain way."""
        return any(matches(pattern, path) for pattern in self.patterns(scope))

    def is_everywhere(self, scope: NotebookScope) -> bool:
        """Tell whether this may be done to any notebook."""
        return EVERYWHERE in self.patterns(scope)


def _notebook_scope(scope: str) -> tuple[NotebookScope, str] | None:
    """Return what a scope lets an agent do to notebooks, and where; None if it is none of these."""
    for name in NOTEBOOK_SCOPES:
        if scope == name:
            return name, EVERYWHERE
        if scope.startswith(f"{name}:"):
            return name, scope[len(name) + 1 :]
    return None
