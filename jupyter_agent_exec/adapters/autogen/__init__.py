"""AutoGen 0.4 and later: a code executor with a kernel of Jupyter and its history behind it."""

from .code_results import CodeTimeout
from .config import FunctionConfig, JupyterCodeExecutorConfig
from .executor import JupyterCodeExecutor

__all__ = ["CodeTimeout", "FunctionConfig", "JupyterCodeExecutor", "JupyterCodeExecutorConfig"]
