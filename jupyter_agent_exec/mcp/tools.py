"""The tools, in the order in which they are listed."""

from __future__ import annotations

from typing import Any

from . import tools_executions, tools_files, tools_kernels, tools_notebooks, tools_sessions
from .tool import Tool

TOOLS: tuple[Tool[Any], ...] = (
    *tools_sessions.TOOLS,
    *tools_executions.TOOLS,
    *tools_kernels.TOOLS,
    *tools_notebooks.TOOLS,
    *tools_files.TOOLS,
)
