"""All entries of a session's journal."""

from __future__ import annotations

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
    PersonRan,
)
from .files import FileDeleted, FileUnchanged, FileUploaded
from .notebooks import (
    CellWritten,
    NotebookCreated,
    NotebookEditAsked,
    NotebookEdited,
    NotebookEditRefused,
    NotebookMoved,
)
from .sessions import Closed, KernelEnded, KernelStarted, Opened, Recovered

JournalEntry = (
    Opened
    | KernelStarted
    | KernelEnded
    | Accepted
    | ApprovalAsked
    | Approved
    | Rejected
    | ApprovalGranted
    | AgentsPaused
    | AgentsResumed
    | Dispatched
    | InputAsked
    | InputGiven
    | KernelInspected
    | Finished
    | FilesWritten
    | FileUploaded
    | FileDeleted
    | FileUnchanged
    | LateOutput
    | DisplayUpdated
    | Interrupted
    | PersonRan
    | NotebookCreated
    | NotebookMoved
    | CellWritten
    | OutputsAccepted
    | OutputsDiscarded
    | OutputsRestored
    | CellDiscarded
    | CellRestored
    | Reviewed
    | NotebookEditAsked
    | NotebookEditRefused
    | NotebookEdited
    | Recovered
    | Closed
)
