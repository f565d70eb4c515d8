"""The OpenAI Agents SDK: a tool that runs Python in a Jupyter kernel."""

from __future__ import annotations

from base64 import b64encode
from typing import Annotated, Any

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
    """A kernel that the agents have which are given its `tool`; a context manager that ends it.

    It is opened by the tool's first call. Any event loop may call it; cancelling a run stops the
    code.

    Parameters
    ----------
    url, token
        The Jupyter server; a server is started when no address is known.
    notebook
        Contents path of a notebook: code runs in its kernel, cells go into it.
    kernel_id
        Of a kernel that runs.
    agent
        Its name in the history.
    timeout
        Seconds that a call may run; the server's limit when None.
    **options
        What else `agents.function_tool` takes, such as ``needs_approval``.
    """

    def __init__(
        self,
        *,
        url: str | None = None,
        token: str | None = None,
        notebook: str | None = None,
        kernel_id: str | None = None,
        agent: str | None = None,
        timeout: float | None = None,
        **options: Any,
    ) -> None:
        self._place = workplace(
            "openai-agents",
            url=url,
            token=token,
            notebook=notebook,
            kernel_id=kernel_id,
            agent=agent,
            timeout=timeout,
        )
        words = {
            "name_override": NAME,
            "description_override": DESCRIPTION,
            "failure_error_function": _said_of,
        }
        self.tool: FunctionTool = function_tool(self._run, **{**words, **options})
        """For the agent's list of tools."""

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
        """End its kernel, and the server if it was started for it; a person's kernel stays."""
        await self._place.close_async()

    async def __aenter__(self) -> JupyterPython:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _said_of(context: RunContextWrapper[Any], error: Exception) -> str:
    """Tell the model why the server refused; the SDK hides what any other error says."""
    if isinstance(error, REFUSALS):
        return str(error)
    said: str = default_tool_error_function(context, error)
    return said
