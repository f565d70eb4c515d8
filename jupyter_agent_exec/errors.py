"""The errors of this package, as one tree.

::

    AgentExecError
    ├── InvalidRequest          invalid_request       a field is missing, unknown or out of bounds
    │   ├── KernelSpecNotFound  kernel_name_not_found no kernelspec has this name
    │   ├── LanguageNotSupported language_not_supported  only a kernel of Python can do that
    │   └── IdempotencyConflict idempotency_conflict  the key was used with another body
    ├── MethodNotAllowed        method_not_allowed    the route does not have this verb
    ├── Unauthenticated         unauthenticated       no credential, or one that is not valid
    ├── Forbidden               forbidden             known who asks; not allowed
    │   ├── PassphraseRequired  passphrase_required   to decide needs the passphrase
    │   ├── PassphraseWrong     passphrase_wrong      it is another one
    │   └── ApprovalRequired    approval_required     the user has to approve code there first
    ├── Paused                  agents_paused         the user has paused all agents
    ├── NotFound                not_found
    │   ├── SessionNotFound     session_not_found
    │   ├── ExecutionNotFound   execution_not_found
    │   ├── BlobNotFound        blob_not_found
    │   ├── KernelNotFound      kernel_not_found      no kernel with this id runs
    │   ├── NotebookNotFound    notebook_not_found    no notebook at this path
    │   ├── FileMissing         file_not_found        no file at this path of a session's folder
    │   └── CellNotFound        cell_not_found        the notebook has no such cell
    ├── SessionClosed           session_closed        the session takes nothing new
    │   └── SessionElsewhere    session_elsewhere     it belongs to another server on this history
    ├── AlreadyFinished         already_finished      nothing left to cancel
    ├── AlreadyDecided          already_decided       somebody decided before
    ├── ApprovalChanged         approval_changed      asks for something else than was looked at
    ├── NotFinished             not_finished          its outputs may still change
    ├── InputNotAsked           input_not_asked       its code does not ask for input (any more)
    ├── KernelBusy              kernel_busy           it cannot be looked into while it runs code
    ├── KernelWaitsForItself    kernel_waits_for_itself  the asker runs in it, and it waits for them
    ├── KernelNotOwned          kernel_not_owned      an agent may not restart it
    ├── CellBusy                cell_busy             an execution waits or runs in the cell
    ├── DocumentChanged         document_changed      not as it was read; nothing done
    ├── DocumentUnwritable      document_unwritable   no cell can be written there
    ├── FolderUnknown           folder_unknown        the session has no folder that is known here
    ├── FileNotOwned            file_not_owned        it is not as the session left it; nothing done
    ├── FileUnwritable          file_unwritable       the disk does not take it, or not there
    ├── PreconditionFailed      precondition_failed   not what If-Match or If-None-Match asks for
    ├── RangeNotSatisfiable     range_not_satisfiable the file ends before the range begins
    ├── PayloadTooLarge         payload_too_large
    ├── TooManyRequests         too_many_requests     a limit on sessions, waits, the queue
    ├── InitFailed              init_failed           its preload or init_source did not run
    ├── KernelUnavailable       kernel_unavailable    no kernel could be started or reached
    ├── HistoryUnavailable      history_unavailable   the record cannot be written; nothing was run
    ├── NotInstalled            not_installed         the server lacks an extra that this needs
    ├── IsolationUnavailable    isolation_unavailable the server cannot isolate kernels, or must not
    ├── GatewayNotSupported     gateway_not_supported the server's kernels run behind a gateway
    └── ServerStopping          server_stopping       the server is going down

Code that fails inside a kernel is none of these: it is an execution with status ``error``.
Only `auth/handler.py` knows the HTTP status of each.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final


class AgentExecError(Exception):
    """Base of all errors of this package.

    Parameters
    ----------
    message
        A sentence for people and language models: what is wrong and what to do.
    **detail
        JSON values that a program may act on, such as ``field`` or ``allowed``.
    """

    code: ClassVar[str] = "agent_exec_error"
    is_denial = False
    """Whether it refuses an agent token something, which is recorded."""

    def __init__(self, message: str, **detail: object) -> None:
        super().__init__(message)
        self.message = message
        self.detail: dict[str, Any] = detail


class InvalidRequest(AgentExecError):
    """A request that cannot be understood; ``detail["field"]`` names the culprit."""

    code = "invalid_request"


class LanguageNotSupported(InvalidRequest):
    """The request needs a Python kernel; ``detail["language"]`` is the language of this one."""

    code = "language_not_supported"


class IdempotencyConflict(InvalidRequest):
    """An ``Idempotency-Key`` that was already used with another body in this session."""

    code = "idempotency_conflict"


class Unauthenticated(AgentExecError):
    """The credential is missing, unknown or no longer valid."""

    code = "unauthenticated"


class Forbidden(AgentExecError):
    """The caller is authenticated, and may not do this."""

    code = "forbidden"


class PassphraseRequired(Forbidden):
    """The server asks for its passphrase before a person decides: see `AgentExecClient.unlock`."""

    code = "passphrase_required"


class PassphraseWrong(Forbidden):
    """The passphrase is wrong."""

    code = "passphrase_wrong"


class ApprovalRequired(Forbidden):
    """The user has to approve what this session runs, and has not; nothing was done."""

    code = "approval_required"
    is_denial = True


class Paused(AgentExecError):
    """The user has paused all agents; nothing was done."""

    code = "agents_paused"


class NotFound(AgentExecError):
    """Nothing is here, or nothing that the asker may see."""

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
    """No notebook at this contents path, or none that can be read."""

    code = "notebook_not_found"


class FileMissing(NotFound):
    """No file at this path of the session's folder, or none that is reached there."""

    code = "file_not_found"


class CellNotFound(NotFound):
    """The notebook has no cell with this id; ``detail["cell_ids"]`` lists those that it has."""

    code = "cell_not_found"


class KernelSpecNotFound(InvalidRequest):
    """No kernelspec of this name is installed; ``detail["allowed"]`` lists those that are."""

    code = "kernel_name_not_found"


class MethodNotAllowed(AgentExecError):
    """The route is there, but not for this verb."""

    code = "method_not_allowed"


class SessionClosed(AgentExecError):
    """The agent session is closed and accepts no requests. You can still read its record."""

    code = "session_closed"


class SessionElsewhere(SessionClosed):
    """The session belongs to another server on the same history; ``detail`` names the server."""

    code = "session_elsewhere"


class AlreadyFinished(AgentExecError):
    """The execution has a final status; there is nothing to cancel."""

    code = "already_finished"


class AlreadyDecided(AgentExecError):
    """The execution does not wait for approval; ``detail`` has the decision, if there was one."""

    code = "already_decided"


class ApprovalChanged(AgentExecError):
    """The execution to approve has changed: it has another source or another kernel."""

    code = "approval_changed"


class NotFinished(AgentExecError):
    """The execution waits or runs; its outputs cannot be decided on before it has finished."""

    code = "not_finished"


class InputNotAsked(AgentExecError):
    """The code of the execution does not wait for this input."""

    code = "input_not_asked"


class KernelNotOwned(AgentExecError):
    """The kernel is a person's: an agent may not restart it."""

    code = "kernel_not_owned"


class KernelBusy(AgentExecError):
    """The kernel runs code and cannot answer meanwhile; ``detail`` names what runs."""

    code = "kernel_busy"


class KernelWaitsForItself(AgentExecError):
    """Running code submits more code to its own kernel, so that each would wait for the other."""

    code = "kernel_waits_for_itself"


class CellBusy(AgentExecError):
    """An execution waits or runs in the cell; ``detail["execution_id"]`` names it."""

    code = "cell_busy"


class DocumentChanged(AgentExecError):
    """The notebook or a cell has changed since it was read; ``detail`` has its current state."""

    code = "document_changed"


class DocumentUnwritable(AgentExecError):
    """A file that is read-only, of an unknown format, or not a valid notebook."""

    code = "document_unwritable"


class FolderUnknown(AgentExecError):
    """The session's kernel works in no folder that is known, or that is on this machine."""

    code = "folder_unknown"


class FileNotOwned(AgentExecError):
    """The file is not as this session left it. To replace or delete it, send its ETag."""

    code = "file_not_owned"


class FileUnwritable(AgentExecError):
    """The disk is full, or does not let this be written or deleted there."""

    code = "file_unwritable"


class PreconditionFailed(AgentExecError):
    """The file does not match ``If-Match`` or ``If-None-Match``."""

    code = "precondition_failed"


class RangeNotSatisfiable(AgentExecError):
    """No byte of the range is in the file; ``detail["bytes"]`` is its size."""

    code = "range_not_satisfiable"


class PayloadTooLarge(AgentExecError):
    """A body, or a part of one, exceeds its limit, which is in ``detail["limit_bytes"]``."""

    code = "payload_too_large"


class TooManyRequests(AgentExecError):
    """As many sessions, kernels or waiting executions as the operator allows."""

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


class NotInstalled(AgentExecError):
    """What this needs is not installed on the server; ``detail["extra"]`` names it."""

    code = "not_installed"


class IsolationUnavailable(AgentExecError):
    """No kernel can be isolated here; the message says what is missing. None was started."""

    code = "isolation_unavailable"


GATEWAY: Final = (
    "The kernels of this Jupyter server run behind a gateway (--gateway-url), and agents cannot "
    "use those yet. Use a Jupyter server that starts its kernels itself."
)


class GatewayNotSupported(AgentExecError):
    """The server's kernels run behind a gateway, which agents cannot use yet. None was started."""

    code = "gateway_not_supported"

    def __init__(self, message: str = GATEWAY, **detail: object) -> None:
        super().__init__(message, **detail)


class ServerStopping(AgentExecError):
    """The server is stopping and accepts no requests."""

    code = "server_stopping"
