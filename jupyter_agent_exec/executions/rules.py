"""What lets an agent's code run: its permit, the rules of approval in force, and users' grants.

The operator configures the rules, and users decide about all agents (`shared_decisions.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, cast, get_args
from weakref import WeakKeyDictionary

import msgspec
from msgspec.structs import replace
from traitlets import TraitError

from .. import models
from ..auth.access import TargetAccess
from ..auth.scopes import Caller, NotebookScope
from ..auth.tokens import Tokens
from ..errors import AgentExecError, InvalidRequest, Paused
from ..kernels.kernel import Kernel
from ..models import (
    Approval,
    ApprovalPolicy,
    KernelTarget,
    NotebookTarget,
    Pause,
    ScratchTarget,
    Session,
    SetPolicy,
    Target,
    WaitingFor,
)
from ..records import By, GrantGiven, timestamp
from ..types import ApprovalMode, EditMode, GrantSpan, PolicyKind, TargetKind, TokenId, is_made_up
from .shared_decisions import NO_RULES, SharedDecisions, StoredPolicy

_MILDEST_FIRST: Final[Sequence[ApprovalMode]] = ("none", "first", "always")

Agent = tuple[str, str]
"""By what an agent is known: its token, or the user and the name that it gives."""

HOUR: Final = timedelta(hours=1)

Modes = dict[PolicyKind, ApprovalMode | EditMode]

POLICY_KINDS: Final[tuple[PolicyKind, ...]] = get_args(PolicyKind)
APPROVAL_MODES: Final[tuple[ApprovalMode, ...]] = get_args(ApprovalMode)
EDIT_MODES: Final[tuple[EditMode, ...]] = get_args(EditMode)
DEFAULT_MODES: Final[Modes] = {
    "scratch": "none",
    "notebook": "first",
    "kernel": "first",
    "edits": "propose",
}


def checked_modes(name: str, modes: Mapping[str, Any]) -> Modes:
    """Return a trait's modes by what they decide about; TraitError if it is invalid."""
    for kind, mode in modes.items():
        if kind not in POLICY_KINDS:
            raise TraitError(f"{name}: {kind!r} is not a kind of target; {_or(POLICY_KINDS)}.")
        allowed = EDIT_MODES if kind == "edits" else APPROVAL_MODES
        if mode == "rules":
            raise TraitError(f"{name}: {kind} cannot be 'rules' any more. {NO_RULES}")
        if mode not in allowed:
            raise TraitError(f"{name}: {kind} cannot be {mode!r}; {_or(allowed)}.")
    return {kind: modes[kind] for kind in POLICY_KINDS if kind in modes}


class Permit:
    """The permit of a session that a user opened with their own credential: it allows all."""

    approval: ApprovalMode | None = None
    """The approval that the agent token demands; None to follow the policy."""
    edits: EditMode | None = "apply"
    """What becomes of the session's edits of the notebook; None to follow the policy."""

    def refusal(self, path: str | None, *, looks: bool) -> str | None:
        """Return why the session may send nothing more to its kernel; None if it may.

        Parameters
        ----------
        path
            Current contents path of the session's notebook; None if its target is not a notebook.
        looks
            Whether it is about a trial.
        """
        return None

    async def look(self) -> None:
        """Load the current state from Jupyter and other servers; `refusal` answers from it."""


class TokenPermit(Permit):
    """The permit of a session that was opened with an agent token.

    The token may be revoked or expire, or may no longer cover the notebook.
    """

    def __init__(
        self,
        caller: Caller,
        token_id: TokenId,
        target: Target,
        targets: TargetAccess,
        tokens: Tokens,
    ) -> None:
        self.approval, self.edits = caller.approval, caller.edits
        self._caller = caller
        self._token_id = token_id
        self._target = target
        self._targets = targets
        self._tokens = tokens
        self._seen: dict[bool, str] = {}  # the refusals of the last check: of all code, of trials

    def refusal(self, path: str | None, *, looks: bool) -> str | None:
        """Return why the token does not allow it; None if it does."""
        refusal = self._tokens.ending(self._token_id) or self._seen.get(looks)
        if refusal is None and path is not None and isinstance(self._target, NotebookTarget):
            scope: NotebookScope = "look:notebook" if looks else "exec:notebook"
            try:
                self._targets.notebook(self._now(), scope, path)
            except AgentExecError as error:
                return error.message
        return refusal

    async def look(self) -> None:
        """Check again what other servers and Jupyter may have changed."""
        self._seen = {}
        try:
            await self._tokens.refresh()
        except AgentExecError as error:
            self._seen = dict.fromkeys((False, True), error.message)
            return
        if isinstance(self._target, KernelTarget):
            for looks in (False, True):
                try:
                    await self._targets.target(self._now(), self._target, looks=looks)
                except AgentExecError as error:
                    self._seen[looks] = error.message

    def _now(self) -> Caller:
        """Return the caller with what the token allows now: it may have got more scopes."""
        return replace(self._caller, grants=self._tokens.grants(self._token_id))


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

    def entry(self, approval: Approval, by: By) -> GrantGiven:
        """Return the entry that records it, as it comes with an approval."""
        return GrantGiven(
            at=timestamp(self.at),
            by=by,
            kernel_id=approval.kernel_id,
            incarnation=approval.incarnation,
            until=None if self.until is None else timestamp(self.until),
        )

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

    def get(self, kernel: Kernel, agent: Agent) -> Grant | None:
        """Return the last grant of an agent in this life of a kernel."""
        return self._lives.get(kernel.life, {}).get(agent)

    def put(self, kernel: Kernel, agent: Agent, grant: Grant) -> None:
        """Let an agent run code until this life of a kernel ends."""
        self._lives.setdefault(kernel.life, {})[agent] = grant

    def remove(self, kernel: Kernel, agent: Agent) -> Grant | None:
        """End and return an agent's grant in this life of a kernel."""
        return self._lives.get(kernel.life, {}).pop(agent, None)


class SessionGrants:
    """The grants of a session's agent, also of one for the kernel that the session gets next."""

    def __init__(self, grants: Grants, session: Session) -> None:
        self._grants = grants
        self._agent = _credential(session)
        self._early: tuple[int, Grant] | None = None

    def get(self, kernel: Kernel | None, incarnation: int) -> Grant | None:
        """Return the last grant in the kernel that the session has, or gets, as an incarnation."""
        early, self._early = self._early, None
        if early is not None and early[0] == incarnation:
            if kernel is None:
                self._early = early
                return early[1]
            self._grants.put(kernel, self._agent, early[1])
        return None if kernel is None else self._grants.get(kernel, self._agent)

    def put(self, incarnation: int, grant: Grant) -> None:
        """Let the agent run code in an incarnation of the session's kernel; `get` follows."""
        self._early = (incarnation, grant)

    def remove(self, kernel: Kernel | None) -> bool:
        """End the grant in the session's kernel, or in the next one; return whether it had one."""
        early, self._early = self._early, None
        stored = None if kernel is None else self._grants.remove(kernel, self._agent)
        return (early, stored) != (None, None)


def _credential(session: Session) -> Agent:
    """Return by what an agent is known: its token, or the user and the name that it gives.

    Jupyter makes up a username for each client that has only the server's token. All of them are
    the same user.
    """
    if session.token is not None:
        return ("", session.token.id)
    return ("*" if is_made_up(session.username) else session.username, session.agent.name)


class Rules:
    """The approval policy, for executions by the kind of their target, and the pause.

    Parameters
    ----------
    decisions
        What users have set.
    configured
        The operator's defaults, which users may change.
    forced
        The operator's modes that nobody can change.
    approval_timeout
        Seconds after which an execution that awaits approval is rejected.
    """

    def __init__(
        self,
        decisions: SharedDecisions,
        configured: Modes,
        forced: Modes,
        approval_timeout: float,
    ) -> None:
        self.decisions = decisions
        self._configured = {**DEFAULT_MODES, **configured}
        self._forced = forced
        self.approval_timeout = approval_timeout
        self.grants = Grants()

    # -- the policy --------------------------------------------------------------------------------

    def mode(self, target: Target, of_token: ApprovalMode | None) -> ApprovalMode:
        """Return the approval that a session with this target needs.

        An isolated kernel in a folder of its own can do no harm: it needs none, unless the operator
        forces it.

        Parameters
        ----------
        of_token
            The approval that the session's agent token demands; None if it demands none. It
            replaces the policy, but cannot demand less than the operator forces.
        """
        kind = cast(TargetKind, target.__struct_config__.tag)
        forced = cast(ApprovalMode, self._forced.get(kind, "none"))
        if isinstance(target, ScratchTarget) and target.isolated and target.cwd is None:
            return forced
        if of_token is None:
            return cast(ApprovalMode, self._mode(kind, self.decisions.policy))
        return max(of_token, forced, key=_MILDEST_FIRST.index)

    def edit_mode(self, of_session: EditMode | None) -> EditMode:
        """Return what becomes of a session's edits.

        Parameters
        ----------
        of_session
            What its agent token says, or the user's own credential; None to follow the policy.
            It replaces the policy, but cannot apply what the operator forces to be proposed.
        """
        forced = cast("EditMode | None", self._forced.get("edits"))
        if "propose" in (forced, of_session):
            return "propose"
        return forced or of_session or cast(EditMode, self._mode("edits", self.decisions.policy))

    def model(self) -> ApprovalPolicy:
        """Return the policy as a model."""
        forced = [kind for kind in POLICY_KINDS if kind in self._forced]
        modes: Mapping[Any, Any] = self.with_defaults(self.decisions.policy)
        return ApprovalPolicy(**modes, forced=forced)

    def with_set(self, request: SetPolicy, before: StoredPolicy) -> StoredPolicy:
        """Return the users' policy with the changes of a request.

        Raises
        ------
        InvalidRequest
            The configuration forces another mode. The error names the field.
        """
        wanted = {kind: mode for kind in POLICY_KINDS if (mode := getattr(request, kind))}
        for kind, mode in wanted.items():
            forced = self._forced.get(kind, mode)
            if mode != forced:
                raise InvalidRequest(
                    f"{kind}: the server's configuration forces {forced!r}.",
                    field=kind,
                    allowed=[forced],
                )
        return replace(before, **wanted)

    def with_defaults(self, stored: StoredPolicy) -> Modes:
        """Return the modes in force if this is what users have set."""
        return {kind: self._mode(kind, stored) for kind in POLICY_KINDS}

    def _mode(self, kind: PolicyKind, stored: StoredPolicy) -> ApprovalMode | EditMode:
        set_mode: ApprovalMode | EditMode | None = getattr(stored, kind)
        return self._forced.get(kind) or set_mode or self._configured[kind]

    # -- the pause ---------------------------------------------------------------------------------

    @property
    def paused(self) -> Pause | None:
        """The pause of all agents; None if they are not paused."""
        return self.decisions.paused

    @property
    def pausing(self) -> WaitingFor | None:
        """What executions wait for while agents are paused."""
        if self.paused is None:
            return None
        return WaitingFor(who="pause", agent=None, execution_id=None, since=self.paused.at)

    def check_not_paused(self, what: str) -> None:
        """Raise Paused while all agents are paused.

        Parameters
        ----------
        what
            What the agent is about to do. It begins the error message.
        """
        pausing = self.pausing
        if pausing is not None:
            raise Paused(
                f"{what} has to wait: the user has paused all agents. Try again when they go on.",
                waiting_for=msgspec.to_builtins(pausing),
            )


def _or(words: tuple[str, ...]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"
