"""What is taken of the framework itself."""

from __future__ import annotations

from ..requirements import needed

with needed("autogen-agentchat~=0.2.0"):
    from autogen import ConversableAgent
    from autogen.coding import CodeExecutorFactory as FrameworkFactory
    from autogen.coding import MarkdownCodeExtractor
    from autogen.coding.base import CodeBlock, CodeExecutor, CodeExtractor, IPythonCodeResult
    from autogen.coding.jupyter import JupyterClient, JupyterConnectable, JupyterConnectionInfo

__all__ = [
    "CodeBlock",
    "CodeExecutor",
    "CodeExtractor",
    "ConversableAgent",
    "FrameworkFactory",
    "IPythonCodeResult",
    "JupyterClient",
    "JupyterConnectable",
    "JupyterConnectionInfo",
    "MarkdownCodeExtractor",
]
