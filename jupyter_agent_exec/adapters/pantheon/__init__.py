"""Pantheon's Python interpreter tool set, which runs code in Jupyter kernels."""

from __future__ import annotations

from .interpreter import DEFAULT_INIT_CODE, PythonInterpreterError
from .toolset import PythonInterpreterToolSet

__all__ = ["DEFAULT_INIT_CODE", "PythonInterpreterError", "PythonInterpreterToolSet"]
