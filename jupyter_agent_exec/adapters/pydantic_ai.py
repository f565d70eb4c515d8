"""Pydantic AI: a toolset with one tool, which runs Python in a Jupyter kernel."""

from __future__ import annotations

import threading
from typing import Any, Self

from .kernel_session import SCRATCH, Target
from .model_tool import DESCRIPTION, NAME, REFUSALS, kept, only, pictures, told, workplace
from .requirements import needed

with needed("pydantic-ai-slim~=2.68"):
    from pydantic_ai import BinaryImage, FunctionToolset, ToolFailed, ToolReturn
    from pydantic_ai.tools import AgentDepsT

STATE_GONE = "[This is a fresh kernel: variables of earlier runs are gone.]"


class JupyterToolset(FunctionToolset[AgentDepsT]):
    """Runs Python in one kernel, which ends when the toolset's last context exits.

    Each run of an agent enters the toolset, and exits it at its end. To keep variables between
    runs, enter the toolset or the agent around them. Cancelling a call stops the code.

    A tool return has text and images for the model, and the nbformat cell as its metadata. The text
    includes the exception if the code failed. If the server refuses a call, the tool fails.

    Parameters
    ----------
    target
        Where code runs. The default is a scratch kernel.
    agent
        The agent's name in the history.
    timeout
        Seconds that a call may run; the server's limit when None.
    **options
        Further arguments of `FunctionToolset`, such as ``id`` or ``requires_approval``.
    """

    def __init__(
        self,
        *,
        target: Target = SCRATCH,
        agent: str | None = None,
        timeout: float | None = None,
        **options: Any,
    ) -> None:
        # Sequential, because a call may need variables of the previous one.
        super().__init__(**{"sequential": True, **options})
        self._place = workplace(target, agent or "pydantic-ai", timeout)
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
        """Keep the kernel for all runs in this block. The runs may be blocking."""
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
            # A user's kernel keeps its variables.
            self._state_is_gone |= self._used and self._place.target.is_scratch
            self._used = False
            return True
