"""The OpenAI Agents SDK: a tool that runs Python in a Jupyter kernel."""

from __future__ import annotations

from base64 import b64encode
from typing import Annotated, Any

from .kernel_session import SCRATCH, Target
from .model_tool import CODE, DESCRIPTION, NAME, REFUSALS, only, pictures, told, workplace
from .requirements import needed

with needed("openai-agents~=0.24"):
    from agents import (
        FunctionTool,
        RunContextWrapper,
        ToolOutputImage,
        ToolOutputText,
        default_tool_error_function,
        function_tool,
    )


class JupyterPython:
    """A kernel and the `tool` with which agents use it. Also a context manager.

    The tool's first call starts the kernel. Any event loop may call the tool. Cancelling a run
    stops the code.

    Parameters
    ----------
    target
        Where code runs. The default is a scratch kernel.
    agent
        The agent's name in the history.
    timeout
        Seconds that a call may run; the server's limit when None.
    **options
        Further arguments of `agents.function_tool`, such as ``needs_approval``.
    """

    def __init__(
        self,
        *,
        target: Target = SCRATCH,
        agent: str | None = None,
        timeout: float | None = None,
        **options: Any,
    ) -> None:
        self._place = workplace(target, agent or "openai-agents", timeout)
        words = {
            "name_override": NAME,
            "description_override": DESCRIPTION,
            "failure_error_function": _said_of,
        }
        self.tool: FunctionTool = function_tool(self._run, **{**words, **options})
        """The tool for an agent's `tools`."""

    async def _run(
        self, code: Annotated[str, CODE]
    ) -> str | list[ToolOutputText | ToolOutputImage]:
        result = only(await self._place.run_async([code]))
        images = [
            ToolOutputImage(
                image_url=f"data:{each.mimetype};base64,{b64encode(each.data).decode()}"
            )
            for each in pictures(result)
        ]
        text = told(result)
        return [ToolOutputText(text=text), *images] if images else text

    async def close(self) -> None:
        """Shut down the kernel, unless it is a user's, and the server if this object started it."""
        await self._place.close_async()

    async def __aenter__(self) -> JupyterPython:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _said_of(context: RunContextWrapper[Any], error: Exception) -> str:
    """Return the server's refusal as text for the model. The SDK hides other errors' messages."""
    if isinstance(error, REFUSALS):
        return str(error)
    said: str = default_tool_error_function(context, error)
    return said
