"""What is loaded into a session's kernels before anything runs there."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, field

from .base import Name, Request


class PreloadModule(Request, frozen=True, kw_only=True, tag_field="kind", tag="module"):
    """A module that is imported."""

    name: Name
    """With dots, if it is in a package."""
    alias: Name | None = field(default=None, name="as")


class PreloadFunction(Request, frozen=True, kw_only=True, tag_field="kind", tag="function"):
    """A function that is defined."""

    source: Annotated[str, Meta(max_length=20_000)]
    """One definition, `def` or `async def`, and nothing else."""
    requirements: Annotated[list[Name], Meta(max_length=50)] = field(default_factory=list)
    """Distributions that must be installed in the kernel's environment, such as `numpy>=2`."""
    imports: Annotated[list[Name], Meta(max_length=50)] = field(default_factory=list)
    """Statements, such as `import numpy as np`, for names that the function needs."""


Preload = PreloadModule | PreloadFunction
"""`kind` tells which."""
