"""Users' leave for agents to run code in a kernel without asking."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary, WeakSet

from .. import models
from ..kernels.kernel import Kernel
from ..records import By, timestamp
from ..types import ApprovalMode, GrantSpan

if TYPE_CHECKING:
    from .approval_gate import ApprovalGate

Agent = tuple[str, str]
"""By what an agent is known: its token, or the user and the name that it gives."""

HOUR: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """A user's leave for one agent in one life of one kernel.

    Parameters
    ----------
    until
        When it ends, if the kernel does not end before; None if only that ends it.
    of_first
        Whether an approval in mode `first` made it. It then holds only in that mode.
    """

    by: str | None
    at: datetime
    until: datetime | None
    of_first: bool = False

    @classmethod
    def of(cls, span: GrantSpan, by: By, *, of_first: bool = False) -> Grant:
        """Return a grant that begins now."""
        now = datetime.now(UTC)
        until = now + HOUR if span == "hour" else None
        return cls(by=by.named, at=now, until=until, of_first=of_first)

    def holds(self, mode: ApprovalMode) -> bool:
        """Return whether it lets code run now that needs approval as a mode says."""
        if self.of_first and mode != "first":
            return False
        return self.until is None or datetime.now(UTC) < self.until

    def model(self) -> models.Grant:
        """Return it as a model."""
        return models.Grant(
            until=None if self.until is None else timestamp(self.until),
            granted_by=self.by,
            granted_at=timestamp(self.at),
        )


class Grants:
    """The grants in force. They are kept in memory: a new server knows none of them."""

    def __init__(self) -> None:
        self._lives: WeakKeyDictionary[object, dict[Agent, Grant]] = WeakKeyDictionary()
        self._gates: WeakSet[ApprovalGate] = WeakSet()

    def join(self, gate: ApprovalGate) -> None:
        """Have a session's gate told of new grants."""
        self._gates.add(gate)

    def get(self, kernel: Kernel, agent: Agent) -> Grant | None:
        """Return the last grant of an agent in this life of a kernel."""
        return self._lives.get(kernel.life, {}).get(agent)

    def put(self, kernel: Kernel, agent: Agent, grant: Grant) -> None:
        """Let an agent run code until this life of a kernel ends."""
        self._lives.setdefault(kernel.life, {})[agent] = grant

    def remove(self, kernel: Kernel, agent: Agent) -> Grant | None:
        """End and return an agent's grant in this life of a kernel."""
        return self._lives.get(kernel.life, {}).pop(agent, None)

    def tell(self, by: By) -> None:
        """Have all sessions approve what they ask for and need not ask for any more."""
        for gate in list(self._gates):
            gate.follow(by)
