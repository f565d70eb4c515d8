"""The entries of journals and the ledger, and the record of an execution that they add up to.

An entry is one line of a journal. It names its payloads (a source, an execution's outputs, an
image) by a commitment, which a random salt keeps from being guessed. The salt stands beside the
entry on the same line, the payload's bytes too or in the session's blobs. They are not part of the
chained bytes, so the chain still verifies after a payload was erased with its salt.

A record combines all entries about one session or one execution.
"""

from __future__ import annotations

import enum
import hashlib
import hmac
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Annotated, Any, ClassVar, Final, Literal, Union, get_args, get_type_hints

from msgspec import Meta, Struct
from msgspec.structs import replace

from .models import (
    Agent,
    AlsoApproved,
    Approval,
    Caps,
    CellLeft,
    Chain,
    Claim,
    Document,
    ExecutionFacts,
    ExecutionKernel,
    Input,
    LeftOut,
    Limits,
    Omitted,
    Placement,
    Review,
    Seal,
    Session,
    SessionKernel,
    Shown,
    StepOf,
    Target,
    TokenRef,
    derive,
    marked,
)
from .text.counts import counted
from .types import (
    DIGEST,
    Access,
    ApprovalMode,
    CellId,
    CloseReason,
    Digest,
    EditMode,
    EditStatus,
    ExecutionId,
    Output,
    PolicyKind,
    ProposalId,
    ProposedEditId,
    RecordedMode,
    RecordPeople,
    RestartReason,
    SessionId,
    Status,
    TokenId,
    Verdict,
    Via,
    is_made_up,
)


class Payload(Struct, frozen=True):
    """Bytes that an entry names by a commitment to them."""

    digest: Digest
    """The commitment: it also names the payload's file."""
    salt: str
    data: bytes | None
    """None if it is in its file already, or kept nowhere."""
    is_redacted: bool = False
    """Whether secrets in it were replaced already."""
    as_file: bool = False
    """Store it in a separate file, whatever its size. Images need this, since they have a URL."""

    @classmethod
    def of(cls, data: bytes, *, as_file: bool = False, is_redacted: bool = False) -> Payload:
        """Return `data` as a payload, with a salt of its own."""
        salt = new_salt()
        return cls(commitment(salt, data), salt, data, is_redacted, as_file)

    @classmethod
    def unkept(cls, data: bytes) -> Payload:
        """Return a payload of which only the commitment and the salt are kept."""
        salt = new_salt()
        return cls(digest=commitment(salt, data), salt=salt, data=None)


def new_salt() -> str:
    """Return a random salt."""
    return os.urandom(16).hex()


def commitment(salt: str, data: bytes) -> Digest:
    """Return the name of a payload, which tells nothing of it to those who lack the salt."""
    return Digest(hmac.digest(salt.encode("ascii"), data, "sha256").hex())


def timestamp(moment: datetime | None = None) -> str:
    """Return a moment, by default now, in the record's format: RFC 3339, UTC, milliseconds."""
    moment = moment or datetime.now(UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


def digest_of(data: bytes) -> Digest:
    """Return the SHA-256 of `data` in hexadecimal."""
    return Digest(hashlib.sha256(data).hexdigest())


class BlobRef(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A value of an execution's outputs that is stored apart: it is large or an image."""

    at: tuple[int | str, ...]
    """Its place: output index, then keys, such as ``(0, "data", "image/png")``."""
    sha256: Digest
    bytes: int
    encoding: Literal["text", "json", "base64"]
    """How the value is stored: as UTF-8 text, as JSON, or decoded from base64."""
    mimetype: str


class By(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The author of an entry's action."""

    kind: Literal["person", "agent", "server"]
    """`person`: a user; `agent`: an agent with a user's own credential or with an agent token."""
    username: str | None = None
    display_name: str | None = None
    agent: str | None = None
    token_id: TokenId | None = None
    """Id of the agent token that authorized the request."""

    @property
    def named(self) -> str:
        """The author's name, as the record has it."""
        return self.display_name or self.username or "the server"

    @property
    def said(self) -> str:
        """The author in a sentence for users and language models."""
        name = "the user" if is_made_up(self.named) else self.named
        return f"an agent on behalf of {name}" if self.kind == "agent" else name


SERVER = By(kind="server")
"""The server itself, without a request from a user or an agent."""


def current_mode(recorded: RecordedMode) -> ApprovalMode:
    """Return the approval mode that a recorded one means now."""
    return "first" if recorded == "rules" else recorded


class Entry(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type"):
    """Base of all entries."""

    n: int = 0
    """Position in the journal, from 0; set by the journal."""
    format: int = 1
    """The format of the record: `chain.FORMAT` in all that is written. 1 is what an entry without
    this field has, which is not read."""
    at: str
    by: By


class JournalEntry(Entry, frozen=True, kw_only=True):
    """Base of the entries of a session's journal.

    A kind says here what the index, exports, `verify` and the live record take of it.
    """

    is_event: ClassVar[bool] = True
    """Whether it is told as an event; others are shown in a cell, or with the session."""
    follows_end: ClassVar[bool] = False
    """Whether it may follow the session's end: a user's decision, or what became of a cell."""
    leads_to: ClassVar[Status | None] = None
    """The status that its execution has then; None if it stays as it was."""

    @property
    def kind(self) -> str:
        """Its `type`."""
        return str(self.__struct_config__.tag)

    @property
    def about(self) -> tuple[ExecutionId, ...]:
        """The executions that it is about; none for an event of the session."""
        return ()

    @property
    def event_text(self) -> str | None:
        """The text of the event, unless a payload has it."""
        return next((getattr(self, name) for name in marked(type(self), Mark.EVENT_TEXT)), None)

    @property
    def stored(self) -> tuple[BlobRef, ...]:
        """What clients can get of it by a URL."""
        return getattr(self, "blobs", ())

    def changes(self, session: Session) -> dict[str, Any]:
        """Return the fields of a session that are others after it, by name."""
        return {}

    def changes_of_execution(self, record: ExecutionRecord, accepted: Accepted) -> dict[str, Any]:
        """Return the fields of an execution's record that are others after it, by name.

        Texts that it names stand there as their digests.

        Parameters
        ----------
        record
            The record before it, without outputs.
        accepted
            The execution's first entry.
        """
        return {} if self.leads_to is None else {"status": self.leads_to}


class PlainEntry(JournalEntry, frozen=True, kw_only=True, tag=False):
    """An entry of a kind that only another version writes. It is shown, and says nothing more."""

    type: str
    execution_id: ExecutionId | None = None
    fields: Mapping[str, Any] = {}
    """All of them, by name."""

    @property
    def kind(self) -> str:
        """Its `type`."""
        return self.type

    @property
    def event_text(self) -> str | None:
        """Its fields, without those that all kinds have."""
        common = (*self.__struct_fields__, "by")
        facts = {name: value for name, value in self.fields.items() if name not in common}
        return ", ".join(
            f"{name}: {value}"
            for name, value in facts.items()
            if isinstance(value, str | int | float) and not DIGEST.fullmatch(str(value))
        )


class ExecutionEntry(JournalEntry, frozen=True, kw_only=True):
    """Base of the entries that add up to the record of one execution."""

    execution_id: ExecutionId

    @property
    def about(self) -> tuple[ExecutionId, ...]:
        """The execution that it is about."""
        return (self.execution_id,)


class LedgerEntry(Entry, frozen=True, kw_only=True):
    """Base of the entries of a ledger."""


class Mark(enum.Enum):
    """What a field means to those who read entries of all kinds."""

    SOURCE = enum.auto()
    """It names a source, or cells of a notebook without their outputs."""
    FREE_TEXT = enum.auto()
    """It is, or has, text of an agent or a user. Secrets in it are replaced."""
    EVENT_TEXT = enum.auto()
    """It is the text of the event."""
    EVENT_PAYLOAD = enum.auto()
    """It names the text of the event."""
    UNKEPT = enum.auto()
    """It names something of which only the salt is kept."""
    OF_FILE = enum.auto()
    """It is the digest of a file, which is no part of the record."""


class Accepted(ExecutionEntry, frozen=True, kw_only=True, tag="accepted"):
    """The server accepted an execution. The execution will reach a final status."""

    is_event = False
    leads_to = "queued"

    seq: int
    source: Annotated[Digest, Mark.SOURCE]
    timeout: float | None
    queue_timeout: float | None
    max_output_bytes: int
    init: bool = False
    idempotency_key: str | None = None
    body_sha256: Annotated[Digest | None, Mark.UNKEPT] = None
    """Commitment to the SHA-256 of the request that came with `idempotency_key`."""
    placement: Placement | Literal["end", "none"] | None = None
    """The place of its cell; null if the session's target is not a notebook."""
    revises: ExecutionId | None = None
    restores: ExecutionId | None = None
    """The execution of an earlier kernel that it runs again."""
    trial: bool = False
    """Whether it runs in a sealed copy of the kernel."""
    claim: Annotated[Claim | None, Mark.FREE_TEXT] = None
    values: Annotated[Digest | None, Mark.SOURCE] = None
    """JSON: the expressions to evaluate after the code, by name; null for none."""
    step: StepOf | None = None
    """Its position in a request with several steps. The first step's entry has the request's
    `idempotency_key`."""

    def changes(self, session: Session) -> dict[str, Any]:
        """Count it."""
        return {"executions": session.executions + 1}


class Dispatched(ExecutionEntry, frozen=True, kw_only=True, tag="dispatched"):
    """The execution is about to be sent to the kernel. It is never sent again."""

    is_event = False
    leads_to = "running"

    kernel: ExecutionKernel

    def changes_of_execution(self, record: ExecutionRecord, accepted: Accepted) -> dict[str, Any]:
        """Start it."""
        return {"status": self.leads_to, "kernel": self.kernel, "started_at": self.at}


class Finished(ExecutionEntry, frozen=True, kw_only=True, tag="finished"):
    """An execution has reached its final status."""

    is_event = False

    status: Status
    reason: Annotated[str | None, Mark.FREE_TEXT] = None
    execution_count: int | None = None
    error: bool = False
    """Whether the last output of type error is the execution's error."""
    outputs: Digest | None = None
    """JSON array of nbformat outputs, with null for each value in `blobs`; null for no outputs."""
    blobs: tuple[BlobRef, ...] = ()
    started_at: str | None = None
    duration: float | None = None
    """Seconds that it ran, by a monotonic clock; null if it did not run to its end."""
    outputs_complete: bool = True
    omitted: Omitted = Omitted()
    redacted: int = 0
    """How many secrets were replaced in the source, the outputs and what else is recorded."""
    interrupt_ignored: bool = False
    text: Digest | None = None
    """Complete text of capped outputs, up to the limit; see `omitted_text_bytes`."""
    text_bytes: int = 0
    omitted_text_bytes: int = 0
    variables: Digest | None = None
    """JSON: the changed variables, as in `models.Changes`; null if they are not recorded."""
    values: Digest | None = None
    """JSON: a `models.Value` for each expression; null if none was evaluated."""
    widgets: Digest | None = None
    """JSON: `models`, the widgets' models that the session's outputs show, as far as they have
    changed, as in nbformat's widget state, by id, with null for a closed one; `left_out`, the ids
    of those that are not known or too large; `texts`, what those that it showed, or that captured
    its output, show, as text. Null if there are none."""
    seal: Seal | None = None
    """What sealed the copy of the kernel in which a trial ran."""

    @property
    def stored(self) -> tuple[BlobRef, ...]:
        """Its large values, and the complete text."""
        if self.text is None:
            return self.blobs
        text = BlobRef(
            at=(),
            sha256=self.text,
            bytes=self.text_bytes,
            encoding="text",
            mimetype="text/plain",
        )
        return (*self.blobs, text)

    def changes_of_execution(self, record: ExecutionRecord, accepted: Accepted) -> dict[str, Any]:
        """End it; an approval that nobody has decided about ends too."""
        approval = record.approval
        if approval is not None and approval.status == "asked":
            status = "expired" if self.status == "rejected" else "withdrawn"
            approval = replace(approval, status=status)
        return {
            **{name: getattr(self, name) for name in _alike(Finished)},
            "started_at": self.started_at or record.started_at,
            "finished_at": self.at,
            "input": None,
            "approval": approval,
        }

    @classmethod
    def without_run(
        cls, at: str, id: ExecutionId, status: Status, reason: str, started_at: str | None
    ) -> Finished:
        """Return the end of an execution that did not run, or is `lost`: nothing is known of it."""
        is_lost = status == "lost"
        return cls(
            at=at,
            by=SERVER,
            execution_id=id,
            status=status,
            reason=reason,
            started_at=started_at if is_lost else None,
            outputs_complete=not is_lost,
            omitted=Omitted(unknown=is_lost),
        )


class InputAsked(ExecutionEntry, frozen=True, kw_only=True, tag="input_asked"):
    """The code of an execution requests input, and waits for it."""

    leads_to = "awaiting_input"

    prompt: Annotated[Digest, Mark.EVENT_PAYLOAD]
    """Text; a very long prompt is cut."""
    password: bool = False

    def changes_of_execution(self, record: ExecutionRecord, accepted: Accepted) -> dict[str, Any]:
        """Let it wait for the input."""
        input = Input(prompt=self.prompt, password=self.password, asked_at=self.at)
        return {"status": self.leads_to, "input": input}


class InputGiven(ExecutionEntry, frozen=True, kw_only=True, tag="input_given"):
    """A user or an agent answered an input request. Written before the kernel gets the answer."""

    leads_to = "running"

    value: Annotated[Digest | None, Mark.EVENT_PAYLOAD] = None
    """Text; null for a password, for which not even a digest is kept."""

    def changes_of_execution(self, record: ExecutionRecord, accepted: Accepted) -> dict[str, Any]:
        """Let it continue."""
        return {"status": self.leads_to, "input": None}


class LateOutput(ExecutionEntry, frozen=True, kw_only=True, tag="late_output"):
    """Outputs that came after their execution had finished. They follow its earlier outputs."""

    is_event = False

    outputs: Digest
    blobs: tuple[BlobRef, ...] = ()
    omitted: Omitted = Omitted()
    redacted: int = 0


class OutputRef(Struct, frozen=True):
    """An output of a finished execution."""

    execution_id: ExecutionId
    index: int


class DisplayUpdated(JournalEntry, frozen=True, kw_only=True, tag="display_updated"):
    """A later execution replaced the data and metadata of outputs with the same display id."""

    is_event = False

    execution_id: ExecutionId
    """The execution that sent the update. If a user's cell sent it: the first execution whose
    output it replaces."""
    targets: tuple[OutputRef, ...]
    outputs: Digest
    """JSON array of one display_data output that holds the new data and metadata."""
    blobs: tuple[BlobRef, ...] = ()

    @property
    def about(self) -> tuple[ExecutionId, ...]:
        """The executions whose outputs it replaces."""
        return tuple(dict.fromkeys(target.execution_id for target in self.targets))


class Interrupted(JournalEntry, frozen=True, kw_only=True, tag="interrupted"):
    """The server interrupted the kernel."""

    execution_id: ExecutionId | None
    reason: Annotated[Literal["asked", "cancelled", "timed_out", "closing"], Mark.EVENT_TEXT]


class PersonRan(JournalEntry, frozen=True, kw_only=True, tag="person_ran"):
    """A user ran code in the kernel. The entry lacks what the kernel did not report."""

    kernel_id: str
    msg_id: str
    """Message id of the user's `execute_request`."""
    source: Annotated[Digest, Mark.SOURCE, Mark.EVENT_PAYLOAD]
    execution_count: int | None
    status: Literal["ok", "error"] | None = None
    """Null if only the source is recorded, or the kernel did not report the end."""
    outputs: Digest | None = None
    blobs: tuple[BlobRef, ...] = ()
    omitted: Omitted = Omitted()


class Opened(JournalEntry, frozen=True, kw_only=True, tag="opened"):
    """The session's first entry."""

    is_event = False

    session_id: SessionId
    agent: Annotated[Agent, Mark.FREE_TEXT]
    target: Target
    title: Annotated[str | None, Mark.FREE_TEXT]
    client_id: str | None
    limits: Limits
    username: str
    access: Access = "full"
    token: TokenRef | None = None
    init_source: Annotated[Digest | None, Mark.SOURCE] = None
    record_people: RecordPeople = "off"
    approval: RecordedMode = "none"
    allow_stdin: bool = False
    preloaded: tuple[str, ...] = ()
    """What is loaded in each of its kernels, as in `Session.preloaded`."""
    ledger: Chain | None = None
    """The end of the ledger when the session was opened; set by the history."""


class KernelStarted(JournalEntry, frozen=True, kw_only=True, tag="kernel_started"):
    """The session has got a kernel."""

    kernel: SessionKernel
    reason: Annotated[RestartReason | None, Mark.EVENT_TEXT]
    """Why the session lost the kernel before; null for the first kernel."""
    display_name: str | None = None
    """The kernelspec's display name."""
    language_info: dict[str, Any] | None = None
    """The `language_info` of the kernel's `kernel_info_reply`."""

    def changes(self, session: Session) -> dict[str, Any]:
        """Give the session its kernel."""
        return {"kernel": self.kernel}


class Environment(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a kernel's code runs in, as far as the kernel told it."""

    language: str | None = None
    version: str | None = None
    """Of the language."""
    implementation: str | None = None
    interpreter: str | None = None
    """Path of the program, on the kernel's machine."""
    platform: str | None = None
    packages: Annotated[list[Annotated[str, Meta(max_length=2_000)]], Meta(max_length=20_000)] | (
        None
    ) = None
    """What is installed, sorted, as lines of a `requirements.txt`; null if it is not known."""
    reason: str | None = None
    """Why it is not known, in a sentence."""


class EnvironmentFound(JournalEntry, frozen=True, kw_only=True, tag="environment_found"):
    """The kernel told what its code runs in. Later kernels have the same, unless they tell others.

    It is asked when the session's first execution in it has ended, or before one that may install
    packages.
    """

    is_event = False

    kernel_id: str
    incarnation: int
    environment: Digest
    """JSON of an `Environment`."""


class PackagesChanged(JournalEntry, frozen=True, kw_only=True, tag="packages_changed"):
    """Other packages were installed after an execution whose code names an installer, as before."""

    execution_id: ExecutionId
    packages: Annotated[Digest, Mark.EVENT_PAYLOAD]
    """Text: for each change, a line of a `requirements.txt` after `-` for what went, after `+` for
    what came."""


class KernelEnded(JournalEntry, frozen=True, kw_only=True, tag="kernel_ended"):
    """The session has lost its kernel."""

    kernel_id: str
    incarnation: int
    reason: RestartReason
    message: Annotated[str, Mark.EVENT_TEXT]
    """A sentence that says how it ended."""

    def changes(self, session: Session) -> dict[str, Any]:
        """Take the kernel away, unless the session has another."""
        kernel = session.kernel
        if kernel is None or (kernel.id, kernel.incarnation) != (self.kernel_id, self.incarnation):
            return {}
        return {"kernel": None}


class Recovered(JournalEntry, frozen=True, kw_only=True, tag="recovered"):
    """The server that wrote this journal died, and another server continued the journal."""

    torn_bytes: int
    """Length of the incomplete last line, which was removed. No client had seen its content."""


class Closed(JournalEntry, frozen=True, kw_only=True, tag="closed"):
    """The session was closed. Only users' later decisions about it may follow."""

    reason: Annotated[CloseReason, Mark.EVENT_TEXT]
    notebook_removed: bool = False
    """Whether the empty notebook that was created for the session was deleted again, because its
    first execution was refused."""

    def changes(self, session: Session) -> dict[str, Any]:
        """Close the session."""
        end = {"status": "closed", "close_reason": self.reason, "closed_at": self.at}
        return {**end, "kernel": None}


class ApprovalAsked(ExecutionEntry, frozen=True, kw_only=True, tag="approval_asked"):
    """An execution waits for a user's approval. If its kernel changes, another entry follows."""

    is_event = False
    leads_to = "awaiting_approval"

    source: Annotated[Digest, Mark.SOURCE]
    kernel_id: str | None
    incarnation: int
    expires_at: str
    before: Annotated[Digest | None, Mark.SOURCE] = None
    """The previous version of the source."""
    edits_cell: bool = False
    """Whether it is a proposed edit of the cell that it runs."""
    also: tuple[ExecutionId, ...] = ()
    """What else the approval lets run: the rest of a restore."""

    def approval(self, before: str | None, also: list[AlsoApproved]) -> Approval:
        """Return the state of the approval, with the texts that this names."""
        return derive(Approval, self, status="asked", asked_at=self.at, before=before, also=also)

    def changes_of_execution(self, record: ExecutionRecord, accepted: Accepted) -> dict[str, Any]:
        """Let it wait for a decision."""
        also = [AlsoApproved(execution_id=id, source=None) for id in self.also]
        approval = self.approval(self.before, also)
        return {"status": self.leads_to, "source": self.source, "approval": approval}


class Decision(ExecutionEntry, frozen=True, kw_only=True):
    """Base of a user's decisions about an execution that waits for approval."""

    preview: Digest | None = None
    """What the user could see of a trial of the agent's source."""

    def _decided(self, approval: Approval, status: Literal["approved", "rejected"]) -> Approval:
        by, preview = self.by.named, self.preview
        return replace(approval, status=status, decided_at=self.at, decided_by=by, preview=preview)


class Approved(Decision, frozen=True, kw_only=True, tag="approved"):
    """A user approved an execution."""

    leads_to = "queued"

    source: Annotated[Digest, Mark.SOURCE]
    """The source to run. It differs from the agent's source if the user edited it."""

    def decide(self, approval: Approval, requested: str, approved: str) -> Approval:
        """Return the approval after it.

        Parameters
        ----------
        requested, approved
            The source of the agent's request, and the one to run.
        """
        asked_source = None if requested == approved else requested
        return replace(self._decided(approval, "approved"), asked_source=asked_source)

    def changes_of_execution(self, record: ExecutionRecord, accepted: Accepted) -> dict[str, Any]:
        """Let it run, with a source that may differ from the request's."""
        if record.approval is None:
            return {"status": self.leads_to}
        approval = self.decide(record.approval, accepted.source, self.source)
        return {"status": self.leads_to, "source": self.source, "approval": approval}


class Rejected(Decision, frozen=True, kw_only=True, tag="rejected"):
    """A user rejected an execution."""

    reason: Annotated[str | None, Mark.FREE_TEXT, Mark.EVENT_TEXT]

    def decide(self, approval: Approval) -> Approval:
        """Return the approval after it."""
        return replace(self._decided(approval, "rejected"), reason=self.reason)

    def changes_of_execution(self, record: ExecutionRecord, accepted: Accepted) -> dict[str, Any]:
        """Refuse it; its `finished` follows."""
        return {} if record.approval is None else {"approval": self.decide(record.approval)}


class GrantGiven(JournalEntry, frozen=True, kw_only=True, tag="grant_given"):
    """A user let the session's agent run code in a kernel until it restarts, or is another."""

    kernel_id: str | None
    """Null if the session had none yet."""
    incarnation: int
    """The `incarnation` of that kernel."""
    until: Annotated[str | None, Mark.EVENT_TEXT]
    """When it ends in any case; null if only the kernel's restart ends it."""


class GrantWithdrawn(JournalEntry, frozen=True, kw_only=True, tag="grant_withdrawn"):
    """A user ended what they had let the session's agent do."""


class AgentsPaused(JournalEntry, frozen=True, kw_only=True, tag="agents_paused"):
    """A user paused all agents. No agent's code is sent to a kernel."""


class AgentsResumed(JournalEntry, frozen=True, kw_only=True, tag="agents_resumed"):
    """A user resumed all agents."""


class OutputsAccepted(ExecutionEntry, frozen=True, kw_only=True, tag="outputs_accepted"):
    """A user accepted an execution's outputs: the notebook gets the originals."""

    follows_end = True

    def changes_of_execution(self, record: ExecutionRecord, accepted: Accepted) -> dict[str, Any]:
        """Show the originals in its cell."""
        document = record.document
        if document is not None:
            document = replace(document, outputs="accepted")
        return {"document": document, "outputs_accepted": True}


class Reviewed(JournalEntry, frozen=True, kw_only=True, tag="reviewed"):
    """A user reviewed an execution."""

    follows_end = True

    execution_id: ExecutionId | None
    """Null in the records of version 0.1, for a review of a whole session."""
    verdict: Verdict | None
    comment: Annotated[str | None, Mark.FREE_TEXT] = None
    up_to: int = 0
    """The last execution that a review of a whole session was about."""

    @property
    def about(self) -> tuple[ExecutionId, ...]:
        """The execution, unless it is a review of a whole session."""
        return () if self.execution_id is None else (self.execution_id,)

    @property
    def event_text(self) -> str | None:
        """The verdict and the comment."""
        return ": ".join(part for part in (self.verdict, self.comment) if part)

    @property
    def review(self) -> Review | None:
        """The review; None if it withdraws one."""
        if self.verdict is None and not self.comment:
            return None
        return Review(verdict=self.verdict, comment=self.comment, by=self.by.named, at=self.at)

    def changes_of_execution(self, record: ExecutionRecord, accepted: Accepted) -> dict[str, Any]:
        """Review it."""
        return {"review": self.review}


class Undone(ExecutionEntry, frozen=True, kw_only=True, tag="undone"):
    """A user, or the agent, made the kernel as it was before an execution."""

    follows_end = True

    first: ExecutionId
    """The execution that was asked to be undone: this one, or an earlier one of the same kernel."""

    @property
    def author(self) -> str:
        """Who did it, for users."""
        return self.by.said if self.by.kind == "agent" else self.by.named

    def changes_of_execution(self, record: ExecutionRecord, accepted: Accepted) -> dict[str, Any]:
        """Undo it."""
        return {"undone_at": self.at, "undone_by": self.author}


class NotebookCreated(JournalEntry, frozen=True, kw_only=True, tag="notebook_created"):
    """The server created an empty notebook, because there was none at the session's path."""

    path: Annotated[str, Mark.EVENT_TEXT]


class NotebookMoved(JournalEntry, frozen=True, kw_only=True, tag="notebook_moved"):
    """The session's notebook was moved or renamed."""

    follows_end = True

    path: str
    before: str

    @property
    def event_text(self) -> str | None:
        """Where it was, and where it is."""
        return f"{self.before} → {self.path}"

    def changes(self, session: Session) -> dict[str, Any]:
        """Follow the notebook."""
        return {"path": self.path}


class CellWritten(ExecutionEntry, frozen=True, kw_only=True, tag="cell_written"):
    """The new state of an execution's cell in the notebook."""

    is_event = False
    follows_end = True

    document: Document
    before: Annotated[Digest | None, Mark.SOURCE] = None
    """JSON: type and source that the cell had before the execution came to it, or null for a new
    cell; the field is null if only the cell's outputs changed."""

    def changes_of_execution(self, record: ExecutionRecord, accepted: Accepted) -> dict[str, Any]:
        """Follow its cell; outputs that were accepted stay so."""
        document = self.document
        if record.outputs_accepted:
            document = replace(document, outputs="accepted")
        return {"document": document}


class NotebookEditAsked(JournalEntry, frozen=True, kw_only=True, tag="notebook_edit_asked"):
    """The agent is about to change cells of the notebook.

    The next `notebook_edited` or `notebook_edit_refused` of this path has the result. If there is
    none, the server died in between, and the result is unknown.
    """

    path: Annotated[str, Mark.EVENT_TEXT]
    purpose: Annotated[str | None, Mark.FREE_TEXT] = None
    edits: Annotated[Digest, Mark.SOURCE]
    """JSON array of the requested edits."""


class NotebookEditRefused(JournalEntry, frozen=True, kw_only=True, tag="notebook_edit_refused"):
    """The edits before this entry were refused, so the notebook was not changed."""

    path: str
    code: str
    message: Annotated[str, Mark.FREE_TEXT, Mark.EVENT_TEXT]
    """A sentence that gives the reason."""


class NotebookEdited(JournalEntry, frozen=True, kw_only=True, tag="notebook_edited"):
    """The agent changed cells of the notebook."""

    path: Annotated[str, Mark.EVENT_TEXT]
    via: Via
    before: Annotated[Digest, Mark.SOURCE]
    """JSON: ``{"order": [cell id, …], "cells": {cell id: {"cell_type", "source", …}}}``. `cells`
    has the complete cells that the edits change, before the edits, in earlier records only their
    types and sources; `order` has all cells of the notebook."""
    after: Annotated[Digest, Mark.SOURCE]
    """The same, after the edits, with types and sources."""
    moved: tuple[CellId, ...] = ()
    cleared: tuple[CellId, ...] = ()
    """Cells whose outputs were cleared."""


class ProposedCell(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A cell that a proposal changes."""

    id: ProposedEditId
    cell_id: CellId
    moved: bool = False
    cleared: bool = False
    """Whether its outputs are cleared."""


class EditsProposed(JournalEntry, frozen=True, kw_only=True, tag="edits_proposed"):
    """The agent proposed edits of the notebook. Nothing was changed."""

    proposal_id: ProposalId
    path: Annotated[str, Mark.EVENT_TEXT]
    purpose: Annotated[str | None, Mark.FREE_TEXT] = None
    edits: Annotated[Digest, Mark.SOURCE]
    """JSON array of the requested edits."""
    before: Annotated[Digest, Mark.SOURCE]
    """JSON as in `notebook_edited`: the notebook, and the cells that would change."""
    after: Annotated[Digest, Mark.SOURCE]
    """The same, with the session's open edits and these."""
    cells: tuple[ProposedCell, ...]
    """The edits to decide about, in the order of the cells."""
    replaces: tuple[ProposedEditId, ...] = ()
    """The session's open edits that these replace."""
    open: int
    """How many of the session's proposed edits are open now."""

    def changes(self, session: Session) -> dict[str, Any]:
        """Count the open edits."""
        return {"proposed": self.open}


class EditsDeciding(JournalEntry, frozen=True, kw_only=True, tag="edits_deciding"):
    """A user's decision about proposed edits is about to change the notebook.

    The next `edits_decided` has the result. If there is none, the server died in between, and the
    edits are as open, or as kept, as before.
    """

    is_event = False
    follows_end = True

    path: str
    ids: tuple[ProposedEditId, ...]


class EditDecision(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of a proposed edit."""

    id: ProposedEditId
    status: EditStatus
    reason: str | None = None
    """A sentence, if it is obsolete; the user's words, if they rejected it with some."""
    edited: bool = False
    """Whether the user kept it with another source than was proposed."""


class EditsDecided(JournalEntry, frozen=True, kw_only=True, tag="edits_decided"):
    """A user decided about proposed edits, or an execution replaced one."""

    follows_end = True

    path: str
    decisions: tuple[EditDecision, ...]
    open: int
    """How many of the session's proposed edits are open now."""
    via: Via | None = None
    """Null if the notebook was not changed."""
    before: Annotated[Digest | None, Mark.SOURCE] = None
    """JSON as in `notebook_edited`, with the complete changed cells; null if nothing changed."""
    after: Annotated[Digest | None, Mark.SOURCE] = None
    """JSON as in `notebook_edited`."""

    @property
    def event_text(self) -> str | None:
        """How many edits were kept, rejected, obsolete, undone and open again."""
        counts = Counter(decision.status for decision in self.decisions)
        return ", ".join(f"{count} {status}" for status, count in counts.items())

    def changes(self, session: Session) -> dict[str, Any]:
        """Count the open edits."""
        return {"proposed": self.open}


class RoundUndone(EditsDecided, frozen=True, kw_only=True, tag="round_undone"):
    """A user took back what the agent changed in the notebook, or made it again.

    `decisions` names edits, and executions by whose cells they changed it. They are `undone`, or
    `kept` if they were made again.
    """

    since: str | None = None
    """They are from this moment on; null for all."""
    left: tuple[CellLeft, ...] = ()
    """What could not be taken back."""


class FileUploaded(JournalEntry, frozen=True, kw_only=True, tag="file_uploaded"):
    """The agent uploaded a file to the session's folder. Written just before the file appears."""

    path: Annotated[str, Mark.EVENT_TEXT]
    """Relative to the session's folder, separated by slashes."""
    bytes: int
    sha256: Annotated[Digest, Mark.OF_FILE]
    replaced: bool = False
    """Whether it replaced a file at that path."""


class FileDeleted(JournalEntry, frozen=True, kw_only=True, tag="file_deleted"):
    """The agent deleted a file or an empty folder. Written just before the deletion."""

    path: Annotated[str, Mark.EVENT_TEXT]
    bytes: int | None = None
    """Null for a folder."""
    sha256: Annotated[Digest | None, Mark.OF_FILE] = None
    """Digest of the file's content; null for a folder, and for a file too large to digest."""


class FileUnchanged(JournalEntry, frozen=True, kw_only=True, tag="file_unchanged"):
    """The upload or deletion that the entry before announced did not happen."""

    path: Annotated[str, Mark.EVENT_TEXT]


class RestoreBegun(JournalEntry, frozen=True, kw_only=True, tag="restore_begun"):
    """What made the state of an earlier kernel is about to run again."""

    of: Annotated[SessionId, Mark.EVENT_TEXT]
    """The session in which it ran; the same, unless that was closed."""
    of_chain: Chain
    """The end of that session's journal."""
    executions: tuple[ExecutionId, ...]
    """What runs again, in order."""
    left_out: tuple[ExecutionId, ...] = ()


class RestoreEnded(JournalEntry, frozen=True, kw_only=True, tag="restore_ended"):
    """All of it has run again, or an execution failed and those after it did not run."""

    failed: ExecutionId | None = None
    """The execution that failed, and had not failed before."""


class Erased(JournalEntry, frozen=True, kw_only=True, tag="erased"):
    """A user erased payloads of earlier entries, with their salts."""

    follows_end = True

    entries: tuple[tuple[int, int], ...]
    """The first and last numbers of runs of entries whose payloads are gone."""
    executions: int
    """How many executions these entries are about."""
    payloads: int
    bytes: int
    reason: str | None = None

    @property
    def event_text(self) -> str | None:
        """How many payloads, and why."""
        return ": ".join(part for part in (counted(self.payloads, "payload"), self.reason) if part)


class KeptImage(Struct, frozen=True, kw_only=True):
    """An image of an execution, without its data."""

    output: int
    """Index of the output that holds the image."""
    mimetype: str
    width: int | None
    height: int | None
    bytes: int
    sha256: Digest | None
    """Digest of its blob; null until the blob is stored."""


class Brief(Struct, frozen=True, kw_only=True):
    """What a brief record leaves out of an execution's outputs."""

    left_out: tuple[LeftOut, ...]
    images: tuple[KeptImage, ...]
    """All images of the execution, also those whose data is left out."""


class ExecutionRecord(ExecutionFacts, frozen=True, kw_only=True):
    """The record of an execution: from its journal entries, or from memory while it runs."""

    outputs: list[Output]
    """Complete outputs, except for what `brief` lists. They include the values of blobs, late
    outputs and display updates."""
    blobs: tuple[BlobRef, ...] = ()
    """The blobs of large values and images in `outputs`; empty until it has finished."""
    text: Digest | None = None
    """The complete text of capped outputs, up to the limit."""
    text_bytes: int = 0
    omitted_text_bytes: int = 0
    entry_hash: Annotated[Digest | None, Shown.IN_CELL] = None
    """Hash of the journal line with its `finished` entry."""
    outputs_accepted: bool = False
    """Whether a user accepted its outputs; perhaps before anything says that it has a cell."""
    widget_texts: Mapping[str, str] = {}
    """What the widgets in `outputs`, and those that captured output, showed when it ended, as
    text, by the ids of their models."""
    brief: Brief | None = None
    """Null if complete outputs were requested."""


class LedgerOpened(LedgerEntry, frozen=True, kw_only=True, tag="ledger_opened"):
    """A server began to write this ledger, or continued the ledger of an earlier server."""

    instance: str
    version: str
    address: str | None = None
    """URL of the server."""
    host: str | None = None
    """Name of the server's machine."""
    pid: int | None = None
    """Process id of the server."""
    root_dir: str | None = None
    """The server's root folder, to which contents paths are relative; null in older ledgers."""


class SessionOpened(LedgerEntry, frozen=True, kw_only=True, tag="session_opened"):
    """A session was opened. Its journal exists."""

    session_id: SessionId


class SessionClosed(LedgerEntry, frozen=True, kw_only=True, tag="session_closed"):
    """A session was closed. `chain` is the end of its journal."""

    session_id: SessionId
    chain: Chain
    server_died: bool = False
    """Whether another server closed it, after its own had died."""


class SessionAmended(LedgerEntry, frozen=True, kw_only=True, tag="session_amended"):
    """A user's decision about a closed session was added to its journal."""

    session_id: SessionId
    chain: Chain


class SigningKey(LedgerEntry, frozen=True, kw_only=True, tag="signing_key"):
    """The server signs the heads of its chains with this key from now on."""

    key: Digest
    """SHA-256 of the public key."""
    public_key: str
    """In DER, in base64."""


class BreakAccepted(LedgerEntry, frozen=True, kw_only=True, tag="break_accepted"):
    """A user accepted that the record does not continue what the server had signed."""

    name: str
    found: tuple[str, ...]
    """What was not as it was signed, in sentences."""


class SessionRemoved(LedgerEntry, frozen=True, kw_only=True, tag="session_removed"):
    """The journal of a closed session was removed by a rule of the operator's."""

    session_id: SessionId
    chain: Chain
    """The end that the journal had."""
    reason: str


class PolicySet(LedgerEntry, frozen=True, kw_only=True, tag="policy_set"):
    """A user set the approval policy."""

    policy: Mapping[PolicyKind, RecordedMode | EditMode]


class RecordedCaps(Caps, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """The limits of an agent token. Earlier versions wrote one more, which is ignored."""


class TokenMinted(LedgerEntry, frozen=True, kw_only=True, tag="token_minted"):
    """A user created an agent token. The server accepts no token without this entry."""

    token_id: TokenId
    label: str
    scopes: tuple[str, ...]
    approval: RecordedMode | None
    edits: EditMode | None = None
    caps: RecordedCaps
    expires_at: str
    secret_sha256: Digest
    secret_expires_at: str | None = None
    """When the secret expires before the token does, because its client signed in and can renew it.
    """


class TokenRenewed(LedgerEntry, frozen=True, kw_only=True, tag="token_renewed"):
    """A client that signed in got a new secret for its token; the earlier one is not valid."""

    token_id: TokenId
    secret_sha256: Digest
    secret_expires_at: str


class TokenExtended(LedgerEntry, frozen=True, kw_only=True, tag="token_extended"):
    """A user gave a token more scopes."""

    token_id: TokenId
    scopes: tuple[str, ...]
    """Those that it got."""


class TokenRevoked(LedgerEntry, frozen=True, kw_only=True, tag="token_revoked"):
    """A user revoked a token."""

    token_id: TokenId


class DecisionsUnlocked(LedgerEntry, frozen=True, kw_only=True, tag="decisions_unlocked"):
    """Somebody sent the passphrase, which allows decisions for some minutes."""


class PassphraseRefused(LedgerEntry, frozen=True, kw_only=True, tag="passphrase_refused"):
    """Somebody sent a wrong passphrase. The passphrase is not recorded."""


class AccessDenied(LedgerEntry, frozen=True, kw_only=True, tag="access_denied"):
    """A request with an agent token was refused, because the token does not allow it."""

    token_id: TokenId
    code: str
    """Code of the error in the response."""
    method: str
    """An HTTP method, or an MCP method such as `tools/call`."""
    route: str
    """The route's template or the tool's name, never text from the agent."""
    count: int = 1
    """How many equal refusals this entry stands for."""


def _kinds(base: type[Entry]) -> Iterator[type[Entry]]:
    """Yield the kinds of entries with a base."""
    for kind in base.__subclasses__():
        yield from _kinds(kind)
        if kind.__struct_config__.tag not in (None, kind.__name__):
            yield kind


JOURNAL_ENTRY: Final[Any] = Union[tuple(_kinds(JournalEntry))]  # noqa: UP007
"""The type of the entries of journals, to decode."""

LEDGER_ENTRY: Final[Any] = Union[tuple(_kinds(LedgerEntry))]  # noqa: UP007
"""The type of the entries of ledgers, to decode."""

KINDS: Final[Mapping[str, type[Entry]]] = {
    str(kind.__struct_config__.tag): kind for kind in _kinds(Entry)
}
"""All kinds of entries, by their `type`."""


@cache
def _alike(kind: type[Entry]) -> tuple[str, ...]:
    """Return the facts that a kind of entry and the record of an execution name alike."""
    hints, of_record = get_type_hints(kind), get_type_hints(ExecutionRecord)
    return tuple(name for name in hints if hints[name] == of_record.get(name))


@cache
def payload_fields(kind: type[JournalEntry]) -> tuple[str, ...]:
    """Return the fields of a kind of entry that name payloads."""
    others = (*marked(kind, Mark.UNKEPT), *marked(kind, Mark.OF_FILE))
    return tuple(
        name
        for name, hint in get_type_hints(kind).items()
        if Digest in (hint, *get_args(hint)) and name not in others
    )
