"""Pantheon's Python interpreter tool set, for its agents, with kernels of Jupyter behind it."""

from __future__ import annotations

from .interpreter import DEFAULT_INIT_CODE, PythonInterpreterError
from .toolset import PythonInterpreterToolSet

__all__ = ["DEFAULT_INIT_CODE", "PythonInterpreterError", "PythonInterpreterToolSet"]
