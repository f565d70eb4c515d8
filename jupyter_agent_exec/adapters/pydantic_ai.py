"""Pydantic AI: a toolset with one tool, which runs Python in a Jupyter kernel."""

from __future__ import annotations

import threading
from typing import Any, Self

from .model_tool import DESCRIPTION, NAME, REFUSALS, kept, only, pictures, told, workplace
from .requirements import needed

with needed("pydantic-ai-slim~=2.68"):
    from pydantic_ai import BinaryImage, FunctionToolset, ToolFailed, ToolReturn
    from pydantic_ai.tools import AgentDepsT

STATE_GONE = "[This is a fresh kernel: variables of earlier runs are gone.]"


class JupyterToolset(FunctionToolset[AgentDepsT]):
    """Runs Python in one kernel, which ends when whoever entered the toolset last has left it.

    Each run of an agent enters it, and leaves it at its end. To keep variables from one run to the
    next, enter it, or the agent, around the runs. A call that is cancelled stops the code.

    A tool's return has the text and the images that the model is to see, and as its metadata the
    nbformat cell. What code raised is told in the text; a server that refuses fails the tool.

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
        What else `FunctionToolset` takes, such as ``id`` or ``requires_approval``.
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
        # One call after the other: each may need what the one before it left in the kernel.
        super().__init__(**{"sequential": True, **options})
        self._place = workplace(
            "pydantic-ai",
            url=url,
            token=token,
            notebook=notebook,
            kernel_id=kernel_id,
            agent=agent,
            timeout=timeout,
        )
        self._entering = threading.Lock()
        self._inside = 0
        self._used = False
        self._state_is_gone = False
        self.add_function(self._run, takes_ctx=False, name=NAME, description=DESCRIPTION)

    async def _run(self, code: str) -> ToolReturn:
        """Run code.

        Parameters
        ----------
        code
            Python code, as in a notebook's cell.
        """
        try:
            result = only(await self._place.run_async([code]))
        except REFUSALS as error:
            raise ToolFailed(str(error)) from error
        text = told(result)
        if self._state_is_gone:
            text = f"{STATE_GONE}\n{text}"
        self._used, self._state_is_gone = True, False
        images = [BinaryImage(each.data, media_type=each.mimetype) for each in pictures(result)]
        return ToolReturn([text, *images] if images else text, metadata=kept(result))

    def __enter__(self) -> Self:
        """Keep the kernel for the runs in this block, which may be blocking ones."""
        with self._entering:
            self._inside += 1
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_last():
            self._place.close()

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(self, *_: object) -> bool | None:
        if self._is_last():
            await self._place.close_async()
        return None

    def _is_last(self) -> bool:
        with self._entering:
            self._inside -= 1
            if self._inside:
                return False
            # A person's kernel keeps its variables.
            self._state_is_gone |= self._used and self._place.where.is_scratch
            self._used = False
            return True
