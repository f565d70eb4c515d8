"""The errors of this package.

::

    AgentExecError
    ├── InvalidRequest          invalid_request       a field is missing, unknown or out of bounds
    │   ├── KernelSpecNotFound  kernel_name_not_found no kernelspec has this name
    │   ├── LanguageNotSupported language_not_supported  only Python kernels support the request
    │   └── IdempotencyConflict idempotency_conflict  the key was used with another body
    ├── MethodNotAllowed        method_not_allowed    the route does not have this verb
    ├── Unauthenticated         unauthenticated       no credential, or one that is not valid
    ├── Forbidden               forbidden             the credential is valid but does not allow it
    │   ├── PassphraseRequired  passphrase_required   a decision needs the passphrase
    │   ├── PassphraseWrong     passphrase_wrong      the passphrase is wrong
    │   └── ApprovalRequired    approval_required     the user must approve code there first
    ├── NotFound                not_found
    │   ├── SessionNotFound     session_not_found
    │   ├── ExecutionNotFound   execution_not_found
    │   ├── BlobNotFound        blob_not_found
    │   ├── KernelNotFound      kernel_not_found      no running kernel has this id
    │   ├── NotebookNotFound    notebook_not_found    no notebook at this path
    │   ├── FileMissing         file_not_found        no file at this path of a session's folder
    │   └── CellNotFound        cell_not_found        the notebook has no such cell
    ├── Conflict                conflict              the request does not fit the present state
    │   ├── Paused              agents_paused         the user has paused all agents
    │   ├── SessionClosed       session_closed        the session accepts no requests
    │   │   └── SessionElsewhere session_elsewhere     it belongs to another server on this history
    │   ├── AlreadyFinished     already_finished      the execution cannot be cancelled any more
    │   ├── AlreadyDecided      already_decided       the execution does not wait for approval
    │   ├── ApprovalChanged     approval_changed      the source or the kernel is another one now
    │   ├── NotFinished         not_finished          the execution's outputs may still change
    │   ├── InputNotAsked       input_not_asked       the code does not wait for this input
    │   ├── KernelBusy          kernel_busy           the kernel runs code and cannot answer
    │   ├── KernelWaitsForItself kernel_waits_for_itself  code submits code to its own kernel
    │   ├── KernelNotOwned      kernel_not_owned      an agent may not restart this kernel
    │   ├── CellBusy            cell_busy             an execution waits or runs in the cell
    │   ├── DocumentChanged     document_changed      changed since it was read; nothing was done
    │   ├── DocumentUnwritable  document_unwritable   no cell can be written to the file
    │   ├── FolderUnknown       folder_unknown        the session has no known folder on this server
    │   ├── FileNotOwned        file_not_owned        not as the session left it; nothing was done
    │   ├── FileUnwritable      file_unwritable       the disk is full or refuses the operation
    │   └── UndoUnavailable     undo_unavailable      the kernel cannot be as it was before
    ├── PreconditionFailed      precondition_failed   If-Match or If-None-Match does not match
    ├── RangeNotSatisfiable     range_not_satisfiable the file ends before the range begins
    ├── PayloadTooLarge         payload_too_large
    ├── TooManyRequests         too_many_requests     a limit on sessions, waits, the queue
    ├── InitFailed              init_failed           its preload or init_source did not run
    ├── KernelUnavailable       kernel_unavailable    no kernel could be started or reached
    ├── HistoryUnavailable      history_unavailable   the record cannot be written; nothing was run
    │   ├── SinkBehind          sink_behind           a copy of the record lags; nothing was run
    │   └── HistoryBusy         history_busy          another change of the record is under way
    ├── NotInstalled            not_installed         the server lacks an extra that this needs
    ├── IsolationUnavailable    isolation_unavailable the server cannot or may not isolate kernels
    ├── TrialUnavailable        trial_unavailable     this kernel cannot be copied for a trial
    └── ServerStopping          server_stopping       the server is stopping

Code that fails in a kernel raises none of these errors: its execution has the status ``error``.
`auth/handler.py` maps the errors to HTTP statuses.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

UNSUPPORTED_SYSTEM: Final = (
    "The server extension of jupyter-agent-exec does not run on Windows; it needs Linux or macOS. "
    "The Python client and `jupyter agent-exec` do run here, with a server elsewhere (--url). "
    "On this computer, run Jupyter in the Windows Subsystem for Linux."
)


class AgentExecError(Exception):
    """Base of all errors of this package.

    Parameters
    ----------
    message
        A sentence for users and language models: what is wrong and what to do.
    **detail
        JSON values for programs, such as ``field`` or ``allowed``.
    """

    code: ClassVar[str] = "agent_exec_error"
    is_denial = False
    """Whether the error denies access. Denials of agent tokens are recorded."""

    def __init__(self, message: str, **detail: object) -> None:
        super().__init__(message)
        self.message = message
        self.detail: dict[str, Any] = detail


class InvalidRequest(AgentExecError):
    """The request is not valid; ``detail["field"]`` names the field at fault."""

    code = "invalid_request"


class LanguageNotSupported(InvalidRequest):
    """The request needs a Python kernel; ``detail["language"]`` is the language of this one."""

    code = "language_not_supported"


class IdempotencyConflict(InvalidRequest):
    """The ``Idempotency-Key`` was already used with another body in this session."""

    code = "idempotency_conflict"


class Unauthenticated(AgentExecError):
    """The credential is missing, unknown or no longer valid."""

    code = "unauthenticated"


class Forbidden(AgentExecError):
    """The credential is valid but does not allow the request."""

    code = "forbidden"


class PassphraseRequired(Forbidden):
    """A user must send the server's passphrase before deciding: see `AgentExecClient.unlock`."""

    code = "passphrase_required"


class PassphraseWrong(Forbidden):
    """The passphrase is wrong."""

    code = "passphrase_wrong"


class ApprovalRequired(Forbidden):
    """The session's code needs the user's approval first. Nothing was done."""

    code = "approval_required"
    is_denial = True


class Conflict(AgentExecError):
    """The request does not fit the state in which things are now."""

    code = "conflict"


class Paused(Conflict):
    """The user has paused all agents. Nothing was done."""

    code = "agents_paused"


class NotFound(AgentExecError):
    """The object does not exist, or the credential does not allow reading it."""

    code = "not_found"


class SessionNotFound(NotFound):
    """No such agent session."""

    code = "session_not_found"


class ExecutionNotFound(NotFound):
    """No such execution."""

    code = "execution_not_found"


class BlobNotFound(NotFound):
    """No payload with this digest."""

    code = "blob_not_found"


class KernelNotFound(NotFound):
    """No kernel with this id runs on this server."""

    code = "kernel_not_found"


class NotebookNotFound(NotFound):
    """There is no readable notebook at this contents path."""

    code = "notebook_not_found"


class FileMissing(NotFound):
    """There is no accessible file at this path of the session's folder."""

    code = "file_not_found"


class CellNotFound(NotFound):
    """The notebook has no cell with this id; ``detail["cell_ids"]`` lists its cells."""

    code = "cell_not_found"


class KernelSpecNotFound(InvalidRequest):
    """No kernelspec of this name is installed; ``detail["allowed"]`` lists the installed ones."""

    code = "kernel_name_not_found"


class MethodNotAllowed(AgentExecError):
    """The route does not support this HTTP method."""

    code = "method_not_allowed"


class SessionClosed(Conflict):
    """The agent session is closed and accepts no requests. You can still read its record."""

    code = "session_closed"


class SessionElsewhere(SessionClosed):
    """The session belongs to another server on the same history; ``detail`` names the server."""

    code = "session_elsewhere"


class AlreadyFinished(Conflict):
    """The execution has a final status; there is nothing to cancel."""

    code = "already_finished"


class AlreadyDecided(Conflict):
    """The execution does not wait for approval; ``detail`` has the decision, if there was one."""

    code = "already_decided"


class ApprovalChanged(Conflict):
    """The execution to approve has changed: it has another source or another kernel."""

    code = "approval_changed"


class NotFinished(Conflict):
    """The execution waits or runs. Users can decide about its outputs after it has finished."""

    code = "not_finished"


class InputNotAsked(Conflict):
    """The code of the execution does not wait for this input."""

    code = "input_not_asked"


class KernelNotOwned(Conflict):
    """The kernel belongs to a user. An agent may not restart it."""

    code = "kernel_not_owned"


class KernelBusy(Conflict):
    """The kernel runs code and cannot answer meanwhile; ``detail`` names what runs."""

    code = "kernel_busy"


class KernelWaitsForItself(Conflict):
    """Running code submits code to its own kernel and waits for it, which would be a deadlock."""

    code = "kernel_waits_for_itself"


class CellBusy(Conflict):
    """An execution waits or runs in the cell; ``detail["execution_id"]`` names it."""

    code = "cell_busy"


class DocumentChanged(Conflict):
    """The notebook or a cell has changed since it was read; ``detail`` has its current state."""

    code = "document_changed"


class DocumentUnwritable(Conflict):
    """The file is read-only, has an unknown format, or is not a valid notebook."""

    code = "document_unwritable"


class FolderUnknown(Conflict):
    """The working folder of the session's kernel is unknown, or not on this machine."""

    code = "folder_unknown"


class FileNotOwned(Conflict):
    """The file is not as this session left it. To replace or delete it, send its ETag."""

    code = "file_not_owned"


class FileUnwritable(Conflict):
    """The disk is full, or does not allow writing or deleting the file."""

    code = "file_unwritable"


class PreconditionFailed(AgentExecError):
    """The file does not match ``If-Match`` or ``If-None-Match``."""

    code = "precondition_failed"


class RangeNotSatisfiable(AgentExecError):
    """The file has no byte of the range; ``detail["bytes"]`` is its size."""

    code = "range_not_satisfiable"


class PayloadTooLarge(AgentExecError):
    """A body, or part of one, exceeds its limit; ``detail["limit_bytes"]`` is the limit."""

    code = "payload_too_large"


class TooManyRequests(AgentExecError):
    """The limit of sessions, kernels, waiting executions or requests is reached."""

    code = "too_many_requests"


class InitFailed(AgentExecError):
    """The session's preload or ``init_source`` did not end with status ``ok``; it is closed."""

    code = "init_failed"


class KernelUnavailable(AgentExecError):
    """No kernel could be started or reached."""

    code = "kernel_unavailable"


class HistoryUnavailable(AgentExecError):
    """The record cannot be written, so nothing was sent to a kernel."""

    code = "history_unavailable"


class SinkBehind(HistoryUnavailable):
    """A strict sink lacks entries of the record for too long, so nothing was sent to a kernel."""

    code = "sink_behind"


class HistoryBusy(HistoryUnavailable):
    """Another change of the record is under way. Nothing was done; ask again when it has ended."""

    code = "history_busy"


class NotInstalled(AgentExecError):
    """The server lacks a package that this needs; ``detail["extra"]`` names the missing extra."""

    code = "not_installed"


class IsolationUnavailable(AgentExecError):
    """The server cannot isolate kernels; the message says why. No kernel was started."""

    code = "isolation_unavailable"


class TrialUnavailable(AgentExecError):
    """The kernel cannot be copied for a trial; the message says why. Nothing was run."""

    code = "trial_unavailable"


class UndoUnavailable(Conflict):
    """The kernel cannot be as it was before an execution; the message says why."""

    code = "undo_unavailable"


class ServerStopping(AgentExecError):
    """The server is stopping and accepts no requests."""

    code = "server_stopping"
