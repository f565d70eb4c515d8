"""The configuration of an executor, which AutoGen dumps and loads."""

from __future__ import annotations

from typing import Final

from ..kernel_session import KernelSession, SessionOptions, SessionTarget
from ..requirements import needed
from .functions import FunctionConfig, module_source, to_preload

with needed("autogen-ext[jupyter-executor]>=0.5,<0.8"):
    from pydantic import BaseModel, SecretStr, field_validator

_MASKED: Final = str(SecretStr("secret"))


class JupyterCodeExecutorConfig(BaseModel):
    """What a `JupyterCodeExecutor` is made of."""

    kernel_name: str = "python3"
    timeout: int = 60
    output_dir: str | None = None
    url: str | None = None
    token: SecretStr | None = None
    """Not part of what is written as JSON; then it is left to the environment."""
    notebook: str | None = None
    kernel_id: str | None = None
    agent: str = "autogen"
    functions: list[FunctionConfig] = []
    functions_module: str = "functions"

    @field_validator("token")
    @classmethod
    def _left_to_the_environment(cls, token: SecretStr | None) -> SecretStr | None:
        """Take a token that was masked when it was written for none."""
        return None if token is not None and token.get_secret_value() == _MASKED else token


def workplace(config: JupyterCodeExecutorConfig) -> KernelSession:
    """Return where an executor's code runs."""
    return KernelSession(
        SessionTarget(
            url=config.url,
            token=None if config.token is None else config.token.get_secret_value(),
            notebook=config.notebook,
            kernel_id=config.kernel_id,
        ),
        SessionOptions(
            agent=config.agent,
            kernel_name=config.kernel_name,
            timeout=config.timeout,
            preload=to_preload(config.functions),
            init_source=module_source(config.functions_module, config.functions),
        ),
    )
