"""Run code through a Jupyter server with this extension, from Python.

`AgentExecClient` blocks, `AsyncAgentExecClient` awaits; they are alike otherwise.
"""

from __future__ import annotations

from ..models import (
    Agent,
    CellPart,
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
from .async_client import AsyncAgentExecClient
from .async_session import AsyncSession
from .errors import (
    CannotConnect,
    ClientError,
    ConnectionLost,
    ExecutionFailed,
    NoServerFound,
    ServerUnreachable,
    UnexpectedAnswer,
)
from .events import Accepted, Event, Finished, OutputChanged, StatusChanged, apply
from .preload import Preloadable, function
from .result import Image, Result
from .sync_client import AgentExecClient
from .sync_session import Session

__all__ = [
    "Accepted",
    "Agent",
    "AgentExecClient",
    "AsyncAgentExecClient",
    "AsyncSession",
    "CannotConnect",
    "CellPart",
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
