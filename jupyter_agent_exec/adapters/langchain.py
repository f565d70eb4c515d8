"""LangChain: a tool that runs Python in a Jupyter kernel."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from ..client import Result
from .kernel_session import SCRATCH, KernelSession, Target
from .model_tool import CODE, DESCRIPTION, NAME, REFUSALS, kept, only, pictures, told, workplace
from .requirements import needed

with needed("langchain-core~=1.7"):
    from langchain_core.messages.content import create_image_block, create_text_block
    from langchain_core.tools import BaseTool, ToolException
    from pydantic import BaseModel, Field, PrivateAttr

Content: TypeAlias = str | list[Any]
"""Content of a tool message: text, or a list of text and image blocks."""


class RunPython(BaseModel):
    """The arguments of the tool."""

    code: str = Field(description=CODE)


class CodeFailed(ToolException):
    """The code failed or was stopped.

    Parameters
    ----------
    text
        The message where only text is possible, as with ``handle_tool_error=True``.
    content
        The message for the model, images included; `text` when None.
    """

    def __init__(self, text: str, content: Content | None = None) -> None:
        super().__init__(text)
        self.content: Content = text if content is None else content


def _content_of(error: ToolException) -> Content:
    return error.content if isinstance(error, CodeFailed) else str(error)


class JupyterPythonTool(BaseTool):
    """Runs Python in one kernel, from its first call until `close`. Also a context manager.

    Its message has text and images for the model, and the nbformat cell as its artifact. If the
    code fails, the message's status is ``error``, and there is no artifact. Any thread and any
    event loop may call it. Cancelling an awaited call stops the code.
    """

    name: str = NAME
    description: str = DESCRIPTION
    args_schema: type[BaseModel] = RunPython
    response_format: Literal["content", "content_and_artifact"] = "content_and_artifact"
    handle_tool_error: bool | str | Callable[[ToolException], Any] | None = _content_of

    # Not dumped, because it may hold a token.
    target: Target = Field(default=SCRATCH, exclude=True)
    """Where code runs. The default is a scratch kernel."""
    agent: str | None = None
    """The agent's name in the history."""
    timeout: float | None = None
    """Seconds that a call may run; the server's limit when None."""

    _place: KernelSession = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        """Store where code runs. The first call opens the session."""
        super().model_post_init(context)
        self._place = workplace(self.target, self.agent or "langchain", self.timeout)

    def _run(self, code: str) -> tuple[Content, dict[str, Any]]:
        try:
            results = self._place.run([code])
        except REFUSALS as error:
            raise CodeFailed(str(error)) from error
        return _answer(only(results))

    async def _arun(self, code: str) -> tuple[Content, dict[str, Any]]:
        try:
            results = await self._place.run_async([code])
        except REFUSALS as error:
            raise CodeFailed(str(error)) from error
        return _answer(only(results))

    def close(self) -> None:
        """Shut down the kernel, unless it is a user's, and the server if the tool started it."""
        self._place.close()

    async def aclose(self) -> None:
        """Close, as `close` does, without blocking the event loop."""
        await self._place.close_async()

    def __enter__(self) -> JupyterPythonTool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> JupyterPythonTool:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def _answer(result: Result) -> tuple[Content, dict[str, Any]]:
    images = [
        create_image_block(base64=b64encode(each.data).decode(), mime_type=each.mimetype)
        for each in pictures(result)
    ]
    text = told(result)
    content: Content = [create_text_block(text), *images] if images else text
    if not result.ok:
        raise CodeFailed(text, content)
    return content, kept(result)
