"""What a sink is: a place outside the server that gets a copy of the record.

`followers.py` feeds sinks.
"""

from __future__ import annotations

import getpass
import platform
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal, NamedTuple

from msgspec import Meta, Struct, field

from ..types import Digest

Content = Literal["facts", "sources", "outputs"]
"""What a sink gets: entries alone, which name payloads but do not tell them; the sources too; all
payloads."""


SinkName = Annotated[str, Meta(pattern=r"\A[a-z0-9][a-z0-9_-]{0,63}\Z")]


def _server() -> str:
    try:
        return f"{getpass.getuser()}@{platform.node()}"
    except (KeyError, OSError):  # an account without a name
        return platform.node()


class SinkSettings(Struct, frozen=True, kw_only=True):
    """What every sink has."""

    name: SinkName
    """Names its cursors, so a sink with a new name gets the whole history."""
    server: str = field(default_factory=_server)
    """Names this server at the far side."""
    content: Content = "facts"
    max_payload_bytes: Annotated[int, Meta(ge=0)] = 1_000_000
    """A larger payload is not sent. Its digest is, in the entry."""
    max_lag: Annotated[float, Meta(gt=0)] | None = None
    """Seconds that a strict sink may be behind before nothing runs; None: it is not strict."""
    delay: Annotated[float, Meta(ge=0)] | None = None
    """Seconds to gather entries before they are sent; None: as the kind of sink likes it."""


class SentEntry(NamedTuple):
    """A line of a journal, for a sink."""

    n: int
    hash: Digest
    canonical: bytes
    """The entry's canonical bytes: UTF-8 JSON."""
    type: str
    at: str
    execution_id: str | None
    payloads: dict[Digest, bytes]
    """Those that the sink gets, by name."""
    salts: dict[Digest, str]
    """The salts of these payloads."""
    erases: frozenset[Digest] = frozenset()
    """Payloads that a user has erased. The sink removes them too, if it can."""


class Batch(NamedTuple):
    """Consecutive lines of one journal."""

    journal: str
    """The id of a session, or the name of a ledger."""
    entries: Sequence[SentEntry]
    rewound: bool
    """Whether the journal no longer held what had been sent of it. It is sent from its start then.
    A sink keeps what it had, and adds a note."""

    @property
    def erases(self) -> frozenset[Digest]:
        """The payloads that it erases."""
        return frozenset[Digest]().union(*(entry.erases for entry in self.entries))


class Sink(ABC):
    """A place outside the server that gets a copy of the record.

    One thread uses it. A sink connects when it is used first, and again after an error.
    """

    delay: ClassVar[float] = 0.5
    """Seconds to gather entries, unless the settings say otherwise."""
    erasing: ClassVar[str] = "keeps what it has: nothing can be erased there from here"
    """What it does with what a user erases, as the end of a sentence."""

    def __init__(self, settings: SinkSettings) -> None:
        self.settings = settings

    @property
    def name(self) -> str:
        """Its name, which no other sink of this server has."""
        return self.settings.name

    @abstractmethod
    def deliver(self, batch: Batch) -> None:
        """Return when the far side has the batch. It may have parts of it already.

        Raises
        ------
        Exception
            The far side may lack some of it. The batch, or one that begins as it does, comes again.
        """

    @abstractmethod
    def close(self) -> None:
        """Close the connection. Idempotent; `deliver` may be called again."""
