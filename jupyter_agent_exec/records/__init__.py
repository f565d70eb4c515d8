"""What the history keeps: the entries of a journal, and the records that they add up to.

An entry is one line of a session's journal. It names its payloads (a source, an execution's
outputs, an image) by digest; their bytes stand beside the entry on its line, or in the session's
blobs, and are not part of the chained bytes. So a payload can be erased and the chain still
verifies.

A record is what the entries about one session, or one execution, amount to.
"""

from __future__ import annotations

from .base import SERVER, BlobRef, By, Entry, Payload, digest_of, timestamp
from .deciding import (
    AgentsPaused,
    AgentsResumed,
    ApprovalAsked,
    ApprovalGranted,
    Approved,
    CellDiscarded,
    CellRestored,
    OutputsAccepted,
    OutputsDiscarded,
    OutputsRestored,
    Rejected,
    Reviewed,
)
from .execution_record import Brief, ExecutionRecord, KeptImage
from .executions import (
    Accepted,
    Dispatched,
    DisplayUpdated,
    FilesWritten,
    Finished,
    InputAsked,
    InputGiven,
    Interrupted,
    KernelInspected,
    LateOutput,
    OutputRef,
    PersonRan,
)
from .files import FileDeleted, FileUnchanged, FileUploaded
from .journal import JournalEntry
from .ledger import (
    AccessDenied,
    DecisionsUnlocked,
    LedgerEntry,
    LedgerOpened,
    PassphraseRefused,
    PolicySet,
    SessionAmended,
    SessionClosed,
    SessionOpened,
    TokenMinted,
    TokenRevoked,
)
from .notebooks import (
    CellWritten,
    NotebookCreated,
    NotebookEditAsked,
    NotebookEdited,
    NotebookEditRefused,
    NotebookMoved,
)
from .sessions import Closed, KernelEnded, KernelStarted, Opened, Recovered

__all__ = [
    "SERVER",
    "Accepted",
    "AccessDenied",
    "AgentsPaused",
    "AgentsResumed",
    "ApprovalAsked",
    "ApprovalGranted",
    "Approved",
    "BlobRef",
    "Brief",
    "By",
    "CellDiscarded",
    "CellRestored",
    "CellWritten",
    "Closed",
    "DecisionsUnlocked",
    "Dispatched",
    "DisplayUpdated",
    "Entry",
    "ExecutionRecord",
    "FileDeleted",
    "FileUnchanged",
    "FileUploaded",
    "FilesWritten",
    "Finished",
    "InputAsked",
    "InputGiven",
    "Interrupted",
    "JournalEntry",
    "KeptImage",
    "KernelEnded",
    "KernelInspected",
    "KernelStarted",
    "LateOutput",
    "LedgerEntry",
    "LedgerOpened",
    "NotebookCreated",
    "NotebookEditAsked",
    "NotebookEditRefused",
    "NotebookEdited",
    "NotebookMoved",
    "Opened",
    "OutputRef",
    "OutputsAccepted",
    "OutputsDiscarded",
    "OutputsRestored",
    "PassphraseRefused",
    "Payload",
    "PersonRan",
    "PolicySet",
    "Recovered",
    "Rejected",
    "Reviewed",
    "SessionAmended",
    "SessionClosed",
    "SessionOpened",
    "TokenMinted",
    "TokenRevoked",
    "digest_of",
    "timestamp",
]
