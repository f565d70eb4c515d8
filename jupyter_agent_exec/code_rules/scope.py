"""What the rules know of a value, and of the names in a scope."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

NOT: Final = 0
"""Somebody else may hold the value too: changing it may change a user's variable."""
SHALLOW: Final = 1
"""This source made the value, but what it contains may be somebody else's."""
DEEP: Final = 2
"""This source made the value and all that it contains."""


@dataclass(frozen=True, slots=True)
class Value:
    """What is known of an expression's value."""

    path: str | None = None
    """The full name of the module, function or class that it is."""
    owned: int = NOT
    is_function: bool = False
    """Whether it is a function or class of this source; its body is judged by itself."""
    is_plain: bool = False
    """Whether it is made of literals only."""
    is_local: bool = False
    """Whether it is a text or path that cannot be an address on the network."""
    is_path: bool = False
    """Whether it is a `pathlib.Path`."""
    is_strange: bool = False
    """Whether its type is known, and not one that the rules know."""
    is_outer: bool = False
    """Whether it is itself something that this source did not make, such as a parameter."""
    is_own_class: bool = False
    """Whether it is a class of this source, or an instance of one."""

    def joined(self, other: Value) -> Value:
        """Return what is known if the value is one of two."""
        if self == other:
            return self
        return Value(
            path=self.path if self.path == other.path else "",
            owned=min(self.owned, other.owned),
            is_function=self.is_function and other.is_function,
            is_plain=self.is_plain and other.is_plain,
            is_local=self.is_local and other.is_local,
            is_path=self.is_path or other.is_path,
            is_strange=self.is_strange or other.is_strange,
            is_outer=self.is_outer or other.is_outer,
        )

    @property
    def part(self) -> Value:
        """An element of the value."""
        return Value(
            owned=DEEP if self.owned == DEEP else NOT,
            is_plain=self.is_plain,
            is_local=self.is_local,
            is_path=self.is_path,
            is_strange=self.is_strange,
        )

    def at_most(self, owned: int) -> Value:
        """Return the same value, owned at the most as much."""
        return replace(self, owned=min(self.owned, owned))


LITERAL: Final = Value(owned=DEEP, is_plain=True, is_local=True)
FRESH: Final = Value(owned=DEEP)
OUTER: Final = Value()


@dataclass(slots=True)
class Scope:
    """The names of a module, function, class or comprehension."""

    parent: Scope | None = None
    is_class: bool = False
    is_comprehension: bool = False
    is_done: bool = False
    """Whether its code has been read. Functions in it run later, with any of its values."""
    names: dict[str, Value] = field(default_factory=dict)
    every: dict[str, Value] = field(default_factory=dict)
    """Each name with all that it was bound to."""
    shared: set[str] = field(default_factory=set)
    """Names that are declared `global` or `nonlocal`."""

    def get(self, name: str) -> Value | None:
        """Return what is known of a name of this scope."""
        return (self.every if self.is_done else self.names).get(name)

    def bind(self, name: str, value: Value) -> None:
        """Bind a name."""
        known = self.every.get(name)
        self.every[name] = value if known is None else known.joined(value)
        self.names[name] = value

    def merge(self, branches: Iterable[Mapping[str, Value]]) -> None:
        """Continue where branches meet."""
        merged: dict[str, Value] = {}
        for branch in branches:
            for name, value in branch.items():
                known = merged.get(name)
                merged[name] = value if known is None else known.joined(value)
        self.names = merged
