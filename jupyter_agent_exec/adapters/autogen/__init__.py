"""AutoGen 0.4 and later: a code executor with a kernel of Jupyter and its history behind it."""

from .config import JupyterCodeExecutorConfig
from .executor import JupyterCodeExecutor
from .functions import FunctionConfig
from .results import CodeTimeout

__all__ = ["CodeTimeout", "FunctionConfig", "JupyterCodeExecutor", "JupyterCodeExecutorConfig"]
