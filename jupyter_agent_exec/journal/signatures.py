"""Signatures of the record, as the history knows them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import InvalidRequest
from ..models import AcceptBreak, Chain, RecordBreak
from ..records import By
from ..types import SessionId
from .notebook import Sign


class Signatures:
    """Signatures of the record. Here are none: a leaf has a class that makes some. Thread-safe."""

    @property
    def of_exports(self) -> Sign | None:
        """Signs what exports say; None if nothing is signed."""
        return None

    @property
    def broken(self) -> RecordBreak | None:
        """Why nothing is signed any more, until a person accepts it; None while it is."""
        return None

    def changed(self, journal: Path, end: Chain) -> None:
        """Note the end of a session's journal, as the ledger lists it now; cheap."""

    @contextmanager
    def going(self, sessions: Iterable[SessionId]) -> Iterator[None]:
        """Note sessions while something is erased from them, or they are removed.

        After an error, they stay noted.

        Raises
        ------
        HistoryUnavailable
            If they cannot be noted. Then nothing may be erased.
        """
        yield

    def sign(self) -> None:
        """Sign all that has grown now, if that is possible."""

    def accept(self, wanted: AcceptBreak, by: By) -> None:
        """Sign on, although the record does not continue what was signed; a person wants it.

        Raises
        ------
        InvalidRequest
            If the record is not broken, or in another way.
        HistoryUnavailable
            If it cannot be recorded.
        """
        raise InvalidRequest("This server does not sign the record.", field="name")

    def stop(self) -> None:
        """Sign what is left: the history is closed. Bounded."""
