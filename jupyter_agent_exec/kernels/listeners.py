"""Several who want to be told one thing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Listeners(Generic[T]):
    """Callables that are called one after the other; from any thread."""

    def __init__(self) -> None:
        self._listeners: tuple[Callable[[T], None], ...] = ()

    def __bool__(self) -> bool:
        """Tell whether anybody listens."""
        return bool(self._listeners)

    def __call__(self, told: T) -> None:
        """Tell all that listen."""
        for listener in self._listeners:
            listener(told)

    def add(self, listener: Callable[[T], None]) -> None:
        """Have a callable called from now on; only from one thread."""
        self._listeners += (listener,)

    def remove(self, listener: Callable[[T], None]) -> None:
        """Call it no more; nothing happens if it is not there. Only from one thread."""
        self._listeners = tuple(other for other in self._listeners if other != listener)
