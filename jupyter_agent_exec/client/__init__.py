"""Run code through a Jupyter server with this extension, from Python.

`AgentExecClient` blocks, `AsyncAgentExecClient` awaits; they are alike otherwise.
"""

from __future__ import annotations

from ..models import Agent
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
    "ClientError",
    "ConnectionLost",
    "Event",
    "ExecutionFailed",
    "Finished",
    "Image",
    "NoServerFound",
    "OutputChanged",
    "Result",
    "ServerUnreachable",
    "Session",
    "StatusChanged",
    "UnexpectedAnswer",
    "apply",
]
