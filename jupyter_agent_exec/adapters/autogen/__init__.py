"""AutoGen 0.4 and later: a code executor that runs blocks in a Jupyter kernel and records them."""

from .code_results import CodeTimeout
from .config import FunctionConfig, JupyterCodeExecutorConfig
from .executor import JupyterCodeExecutor

__all__ = ["CodeTimeout", "FunctionConfig", "JupyterCodeExecutor", "JupyterCodeExecutorConfig"]
