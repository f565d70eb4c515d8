"""What can go wrong, as one tree.

::

    AgentExecError
    ├── InvalidRequest          invalid_request       a field is missing, unknown or out of bounds
    │   ├── KernelSpecNotFound  kernel_name_not_found no kernelspec has this name
    │   └── IdempotencyConflict idempotency_conflict  the key was used with another body
    ├── MethodNotAllowed        method_not_allowed    the route does not have this verb
    ├── Unauthenticated         unauthenticated       no credential, or one that is not valid
    ├── Forbidden               forbidden             known who asks; not allowed
    ├── NotFound                not_found
    │   ├── SessionNotFound     session_not_found
    │   ├── ExecutionNotFound   execution_not_found
    │   ├── BlobNotFound        blob_not_found
    │   ├── KernelNotFound      kernel_not_found      no kernel with this id runs
    │   ├── NotebookNotFound    notebook_not_found    no notebook at this path
    │   └── CellNotFound        cell_not_found        the notebook has no such cell
    ├── SessionClosed           session_closed        the session takes nothing new
    ├── AlreadyFinished         already_finished      nothing left to cancel
    ├── NotFinished             not_finished          its outputs may still change
    ├── KernelNotOwned          kernel_not_owned      an agent may not restart it
    ├── DocumentChanged         document_changed      not as it was read; nothing done
    ├── DocumentUnwritable      document_unwritable   no cell can be written there
    ├── PayloadTooLarge         payload_too_large
    ├── TooManyRequests         too_many_requests     a limit on sessions, kernels or the queue
    ├── InitFailed              init_failed           the session's init_source did not run
    ├── KernelUnavailable       kernel_unavailable    no kernel could be started or reached
    ├── HistoryUnavailable      history_unavailable   the record cannot be written; nothing was run
    └── ServerStopping          server_stopping       the server is going down

Code that fails inside a kernel is none of these: it is an execution with status ``error``.
Only the HTTP floor knows which status each of them becomes.
"""

from __future__ import annotations

from typing import Any, ClassVar


class AgentExecError(Exception):
    """Base of all errors that this package raises on purpose.

    Parameters
    ----------
    message
        A sentence for people and language models: what is wrong and what to do.
    **detail
        JSON values that a program may act on, such as ``field`` or ``allowed``.
    """

    code: ClassVar[str] = "agent_exec_error"

    def __init__(self, message: str, **detail: Any) -> None:
        super().__init__(message)
        self.message = message
        self.detail = detail


class InvalidRequest(AgentExecError):
    """A request that cannot be understood; ``detail["field"]`` names the culprit."""

    code = "invalid_request"


class IdempotencyConflict(InvalidRequest):
    """An ``Idempotency-Key`` that was already used with another body in this session."""

    code = "idempotency_conflict"


class Unauthenticated(AgentExecError):
    """No credential, or one that nobody knows (any more)."""

    code = "unauthenticated"


class Forbidden(AgentExecError):
    """It is known who asks, and they may not do this."""

    code = "forbidden"


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
    """The agent session is closed and takes nothing new; its record stays readable."""

    code = "session_closed"


class AlreadyFinished(AgentExecError):
    """The execution has a final status; there is nothing to cancel."""

    code = "already_finished"


class NotFinished(AgentExecError):
    """The execution waits or runs; its outputs cannot be decided on before it has finished."""

    code = "not_finished"


class KernelNotOwned(AgentExecError):
    """The kernel is a person's: an agent may not restart it."""

    code = "kernel_not_owned"


class DocumentChanged(AgentExecError):
    """The notebook, or a cell, is not as it was when it was read; ``detail`` has what it is now."""

    code = "document_changed"


class DocumentUnwritable(AgentExecError):
    """A file that is read-only, of an unknown format, or not a valid notebook."""

    code = "document_unwritable"


class PayloadTooLarge(AgentExecError):
    """A body, or a part of one, over its limit; ``detail["limit_bytes"]`` says which."""

    code = "payload_too_large"


class TooManyRequests(AgentExecError):
    """As many sessions, kernels or waiting executions as the operator allows."""

    code = "too_many_requests"


class InitFailed(AgentExecError):
    """The session's ``init_source`` did not finish with status ``ok``; the session is closed."""

    code = "init_failed"


class KernelUnavailable(AgentExecError):
    """No kernel could be started or reached."""

    code = "kernel_unavailable"


class HistoryUnavailable(AgentExecError):
    """The record cannot be written, so nothing was sent to a kernel."""

    code = "history_unavailable"


class ServerStopping(AgentExecError):
    """The server is going down and takes nothing new."""

    code = "server_stopping"
