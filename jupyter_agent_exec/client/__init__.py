"""Run code through a Jupyter server with this extension, from Python.

`AgentExecClient` is blocking, `AsyncAgentExecClient` is async. Both have the same methods.
"""

from __future__ import annotations

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
    NoServerFound,
    ServerUnreachable,
    UnexpectedAnswer,
)
from .events import Accepted, Event, Finished, OutputChanged, StatusChanged, apply
from .requests import Preloadable, function
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
    "SplitCell",
    "StatusChanged",
    "Step",
    "UnexpectedAnswer",
    "apply",
    "function",
]
