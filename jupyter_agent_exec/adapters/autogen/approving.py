"""What `CodeExecutorAgent` asks before it executes, and what a person's decision is to it."""

from __future__ import annotations

import re
from collections import defaultdict, deque
from typing import TYPE_CHECKING, Final

from ...client import Result
from ..requirements import needed

with needed("autogen-ext[jupyter-executor]>=0.5,<0.8"):
    from autogen_core.code_executor import CodeBlock

if TYPE_CHECKING:
    from autogen_agentchat.agents import ApprovalResponse

_BLOCK: Final = re.compile(r"```(?P<language>[^\n]*)\n(?P<code>.*?)\n```(?:\n\n|\Z)", re.DOTALL)

NOBODY_ASKED: Final = (
    "Nobody is asked: the approval policy of the Jupyter server lets this agent's code run as it "
    "is. A person can change that (`jupyter agent-exec policy`), or give the agent a token with "
    "`--approval always`."
)

NOTHING_TO_RUN: Final = "There is nothing in it that this executor runs."


class Approved:
    """What a person has approved and nobody waits for yet: the keys it was asked for with."""

    def __init__(self) -> None:
        self._keys: defaultdict[tuple[str, ...], deque[str]] = defaultdict(deque)

    def add(self, sources: tuple[str, ...], key: str) -> None:
        """Note that sources were approved; the same ones may be more than once."""
        self._keys[sources].append(key)

    def take(self, sources: tuple[str, ...]) -> str | None:
        """Return the oldest key of sources; None if these were not approved."""
        keys = self._keys.get(sources)
        if not keys:
            return None
        key = keys.popleft()
        if not keys:
            del self._keys[sources]
        return key

    def take_all(self) -> list[str]:
        """Return all keys."""
        keys = [key for each in self._keys.values() for key in each]
        self._keys.clear()
        return keys


def blocks(code: str) -> list[CodeBlock]:
    """Return the blocks that an approval is asked for; the agent never has a fence in one."""
    return [
        CodeBlock(code=each["code"], language=each["language"]) for each in _BLOCK.finditer(code)
    ]


def decision(first: Result | None) -> ApprovalResponse:
    """Return what was decided about the first block; None if nobody had to decide."""
    if first is None:
        return response(False, NOBODY_ASKED)
    approval = first.execution.approval
    if approval is None:
        return response(True, "A person approved what this agent does.")
    if approval.status != "approved":
        reason = approval.reason or first.execution.reason or f"It is {approval.status}."
        return response(False, reason)
    return response(True, f"{approval.decided_by} approved it.")


def response(approved: bool, reason: str) -> ApprovalResponse:
    """Return an answer of the agent's own class."""
    with needed("autogen-agentchat>=0.5,<0.8"):
        from autogen_agentchat.agents import ApprovalResponse

    return ApprovalResponse(approved=approved, reason=reason)
