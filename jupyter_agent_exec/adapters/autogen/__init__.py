"""AutoGen 0.4 and later: a code executor with a kernel of Jupyter and its history behind it."""

from .config import FunctionConfig, JupyterCodeExecutorConfig
from .executor import JupyterCodeExecutor
from .results import CodeTimeout

__all__ = ["CodeTimeout", "FunctionConfig", "JupyterCodeExecutor", "JupyterCodeExecutorConfig"]
