"""smolagents: an executor for `CodeAgent` whose code runs in a Jupyter kernel."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from typing import Any

from ..client import Result, Step
from .kernel_session import SCRATCH, KernelSession, Life, SessionOptions, Target, life_of
from .requirements import needed
from .result_pieces import DisplayedObject, Stream, omitted_note, pieces, state_note

with needed("smolagents~=1.26"):
    from PIL import Image, UnidentifiedImageError
    from smolagents import ActionStep, AgentError, AgentLogger, LogLevel, Tool
    from smolagents.local_python_executor import CodeOutput
    from smolagents.remote_executors import RemotePythonExecutor

_PICTURES = ("PNG", "JPEG", "GIF", "WEBP")
_MAX_PICTURE_BYTES = 3_500_000
"""Bytes of the largest image for a model. In base64, it stays below the limits of model APIs."""


class JupyterExecutor(RemotePythonExecutor):
    """Runs an agent's code in one kernel, until `cleanup`, which `CodeAgent` calls at its end.

    Tools and variables are sent as in smolagents' remote executors. They are sent again after the
    kernel was lost, and never become cells of a notebook.

    Parameters
    ----------
    allow_pickle
        Whether to pickle variables and final answers that are not plain data.
    target
        Where code runs. The default is a scratch kernel.
    agent
        The agent's name in the history.
    timeout
        Seconds that a step's code may run; the server's limit when None.
    """

    def __init__(
        self,
        *,
        allow_pickle: bool = False,
        target: Target = SCRATCH,
        agent: str | None = None,
        timeout: float | None = None,
    ) -> None:
        # No logging here: the agent logs everything.
        super().__init__([], AgentLogger(level=LogLevel.OFF), allow_pickle)
        options = SessionOptions(agent=agent or "smolagents", timeout=timeout)
        self._place = KernelSession(target, options)
        self._sent: list[Step] = []
        self._sent_in: Life | None = None
        self._untold: list[Result] = []
        """Results of code that was not the agent's own, since the agent's last answer."""
        self.images: list[Image.Image] = []
        """Images that the last code displayed."""

    def send_tools(self, tools: dict[str, Tool]) -> None:
        """Define tools in the kernel."""
        for name, tool in tools.items():
            if not isinstance(tool, Tool):
                raise ValueError(f"{name}: a managed agent cannot be called in a kernel.")
        super().send_tools(tools)

    def install_packages(self, additional_imports: list[str]) -> list[str]:
        """Install nothing. A tool whose package is missing fails when it is called."""
        return additional_imports

    def run_code_raise_errors(self, code: str) -> CodeOutput:
        """Run definitions that the base class sends, not an agent's code."""
        step = Step(source=code, placement="none")
        before = [each for each in self._sent if each != step]
        result = self._run(before, step)
        self._untold.append(result)
        if result.ok:
            self._sent = [*before, step]
        return self._output(result)

    def __call__(self, code_action: str) -> CodeOutput:
        """Run code. If it fails, raise `AgentError` with its output and its exception."""
        result = self._run(self._sent, Step(source=code_action))
        self.images = _images(result)
        untold, self._untold = self._untold, []
        notes = [f"[{note}]\n" for note in map(state_note, untold) if note is not None]
        return self._output(result, "".join(notes))

    def show_images(self, memory_step: ActionStep, agent: Any = None) -> None:
        """Show the images to the model. Pass this to the agent as one of its ``step_callbacks``."""
        memory_step.observations_images = self.images or None

    def cleanup(self) -> None:
        """Shut down the kernel, unless it is a user's, and the server if this object started it."""
        self._place.close()

    def _run(self, sent: Sequence[Step], step: Step) -> Result:
        """Run a step. If the kernel is new, run `sent` first."""
        life = self._place.life()
        is_set_up = life is not None and life == self._sent_in
        *again, result = self._place.run([step] if is_set_up else [*sent, step])
        self._untold += again
        if not is_set_up:
            # Different lives mean that a step failed or that the kernel was lost meanwhile.
            lives = {life_of(each) for each in (*again, result)}
            self._sent_in = lives.pop() if len(lives) == 1 else None
        return result

    def _output(self, result: Result, notes: str = "") -> CodeOutput:
        error = result.error
        if error is not None and error.ename == self.FINAL_ANSWER_EXCEPTION:
            answer = self._deserialize_final_answer(error.evalue, self.allow_pickle)
            printed = "".join(each.text for each in pieces(result) if isinstance(each, Stream))
            return CodeOutput(output=answer, logs=printed, is_final_answer=True)
        if not result.ok:
            raise AgentError(notes + _told(result), self.logger)
        values = [
            each for each in pieces(result) if isinstance(each, DisplayedObject) and each.is_result
        ]
        value = values[-1].text if values else None
        # The agent shows the logs to its model, followed by the value.
        logs = notes + _told(result).removesuffix(value or "").rstrip("\n")
        return CodeOutput(output=value, logs=f"{logs}\n", is_final_answer=False)


def _told(result: Result) -> str:
    """Return the text for a model: outputs, errors, how the code ended, and lost variables."""
    parts = [result.text.rstrip("\n"), omitted_note(result)]
    return "\n".join(filter(None, parts)) or "The code ran; it put nothing out."


def _images(result: Result) -> list[Image.Image]:
    """Return the images that a model can see. The text mentions the other ones."""
    images: list[Image.Image] = []
    for piece in pieces(result):
        picture = piece.picture if isinstance(piece, DisplayedObject) else None
        if picture is None or len(picture.data) > _MAX_PICTURE_BYTES:
            continue
        try:
            images.append(Image.open(BytesIO(picture.data), formats=_PICTURES))
        except UnidentifiedImageError:
            continue  # it is SVG, or code displayed invalid data
    return images
