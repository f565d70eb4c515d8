"""What the entries about one execution amount to."""

from __future__ import annotations

from msgspec import Struct

from ..models import ExecutionState, LeftOut
from ..types import Digest, Output
from .base import BlobRef


class KeptImage(Struct, frozen=True, kw_only=True):
    """An image of an execution, without its data."""

    output: int
    """Index of the output that holds it."""
    mimetype: str
    width: int | None
    height: int | None
    bytes: int
    sha256: Digest | None
    """Of its blob; null as long as there is none."""


class Brief(Struct, frozen=True, kw_only=True):
    """What an execution's record leaves out of its outputs."""

    left_out: tuple[LeftOut, ...]
    images: tuple[KeptImage, ...]
    """All of its images, wherever their data is."""


class ExecutionRecord(ExecutionState, frozen=True, kw_only=True):
    """An execution as its entries tell it, or, while it goes on, as the server holds it."""

    outputs: list[Output]
    """Whole, but for what `brief` tells: blobs are back in their places, late outputs and display
    updates applied."""
    blobs: tuple[BlobRef, ...] = ()
    """Where the large values and images of `outputs` are kept; empty until it has finished."""
    text: Digest | None = None
    """The whole text, as far as it is kept, if the outputs are capped."""
    text_bytes: int = 0
    omitted_text_bytes: int = 0
    entry_hash: Digest | None = None
    """Hash of the journal line with its `finished` entry."""
    brief: Brief | None = None
    """Null if nothing was to be left out of the outputs."""
