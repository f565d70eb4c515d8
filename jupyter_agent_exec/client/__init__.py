"""Run code through a Jupyter server with this extension, from Python.

`AgentExecClient` is blocking, `AsyncAgentExecClient` is async. Both have the same methods.
"""

from __future__ import annotations

from typing import Unpack

from ..models import (
    Agent,
    CellPart,
    Claim,
    ClearOutputs,
    DeleteCell,
    Input,
    InsertCell,
    MoveCell,
    Placement,
    PreloadFunction,
    PreloadModule,
    ReplaceCell,
    SplitCell,
    Step,
)
from .blocking import AgentExecClient, Session
from .client import AsyncAgentExecClient
from .errors import (
    CannotConnect,
    ClientError,
    ConnectionLost,
    InvalidAddress,
    NoServerFound,
    ServerUnreachable,
    UnexpectedAnswer,
)
from .events import Accepted, Event, Finished, OutputChanged, StatusChanged, apply
from .requests import ExecuteOptions, Preloadable, Source, function
from .result import ExecutionFailed, Image, Result
from .session import AsyncSession

__all__ = [
    "Accepted",
    "Agent",
    "AgentExecClient",
    "AsyncAgentExecClient",
    "AsyncSession",
    "CannotConnect",
    "CellPart",
    "Claim",
    "ClearOutputs",
    "ClientError",
    "ConnectionLost",
    "DeleteCell",
    "Event",
    "ExecutionFailed",
    "Finished",
    "Image",
    "Input",
    "InsertCell",
    "InvalidAddress",
    "MoveCell",
    "NoServerFound",
    "OutputChanged",
    "Placement",
    "PreloadFunction",
    "PreloadModule",
    "Preloadable",
    "ReplaceCell",
    "Result",
    "ServerUnreachable",
    "Session",
    "Source",
    "SplitCell",
    "StatusChanged",
    "Step",
    "UnexpectedAnswer",
    "apply",
    "function",
    "run",
]


def run(
    source: Source,
    *,
    url: str | None = None,
    token: str | None = None,
    agent: str | Agent = "python-client",
    notebook: str | None = None,
    raise_on_error: bool = False,
    **options: Unpack[ExecuteOptions],
) -> Result:
    """Run `source` once, in a session that opens for it and closes after it.

    Parameters
    ----------
    source, raise_on_error, options
        As for `Session.run`.
    url, token
        The server, as for `AgentExecClient`.
    agent, notebook
        As for `AgentExecClient.open_session`.

    Raises
    ------
    ExecutionFailed, AgentExecError, ServerUnreachable, OSError
        As for `Session.run`.
    """
    with (
        AgentExecClient(url, token) as client,
        client.open_session(agent, notebook=notebook) as session,
    ):
        return session.run(source, raise_on_error=raise_on_error, **options)
