"""What a tool is: its words for the model, its shapes, and the function behind it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ..auth.scopes import Scope
from ..models import Request
from .call import Call

if TYPE_CHECKING:
    from mcp_types import ContentBlock

A = TypeVar("A", bound=Request)


@dataclass(frozen=True, kw_only=True, slots=True)
class Answered:
    """What a tool answers. Errors of ours are raised, not answered."""

    content: Sequence[ContentBlock]
    """For the model, what it should read first; well under 1 MiB together."""
    structured: Any
    """An instance of the tool's `output`: the same for programs."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Hints:
    """What clients may believe of a tool before they let it be called."""

    read_only: bool
    destructive: bool
    """Whether it may change or remove what is there, rather than only add."""
    idempotent: bool
    """Whether calling it again with the same arguments changes nothing more."""
    open_world: bool
    """Whether it may reach beyond this server, as code that runs may."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Tool(Generic[A]):
    """A tool. All its words are read by language models."""

    name: str
    title: str
    """For people."""
    description: str
    scopes: tuple[Scope, ...]
    """It is listed for whoever has one of these; what a call reaches is checked when it runs."""
    input: type[A]
    """Its arguments. `Meta(description=…)` of a field is what a model is told of it."""
    output: Any
    """The shape of `Answered.structured`: a model whose JSON is an object."""
    hints: Hints
    examples: tuple[dict[str, Any], ...] = ()
    """Arguments as they could be sent."""
    run: Callable[[Call, A], Awaitable[Answered]]
