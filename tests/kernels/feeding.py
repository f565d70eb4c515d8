"""Feed outputs of an execution with what a kernel says."""

from __future__ import annotations

from typing import Any

from jupyter_agent_exec.kernels.displays import Displays
from jupyter_agent_exec.kernels.outputs import Outputs
from jupyter_agent_exec.text.model_text import TextSink
from jupyter_agent_exec.types import ExecutionId

CAP = 1_000_000


def outputs_of(
    name: str = "x_1",
    displays: Displays | None = None,
    *,
    cap: int = CAP,
    most: int = 10_000,
    sink: TextSink | None = None,
) -> Outputs:
    displays = Displays() if displays is None else displays
    return Outputs(ExecutionId(name), displays, max_output_bytes=cap, sink=sink, max_outputs=most)


def say(outputs: Outputs, text: str, name: str = "stdout") -> None:
    outputs.feed("stream", {"name": name, "text": text})


def show(
    outputs: Outputs, data: Any, display_id: str | None = None, kind: str = "display_data"
) -> None:
    transient = {"display_id": display_id} if display_id else {}
    outputs.feed(kind, {"data": {"text/plain": data}, "metadata": {}, "transient": transient})


def update(outputs: Outputs, data: Any, display_id: str) -> None:
    show(outputs, data, display_id, "update_display_data")


def clear(outputs: Outputs, *, wait: bool = False) -> None:
    outputs.feed("clear_output", {"wait": wait})


def fail(outputs: Outputs, *traceback: str, evalue: str = "v") -> None:
    outputs.feed("error", {"ename": "E", "evalue": evalue, "traceback": list(traceback)})
