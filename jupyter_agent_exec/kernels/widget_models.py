"""The models of ipywidgets in a kernel, followed by comm messages as a frontend follows them. Pure.

An `Output` widget takes the output of its ``with`` block away from the cell. Then its model has
these outputs, as in JupyterLab and nbclient.

Source: ipywidgets, *Model state* and *Jupyter widgets messaging protocol*.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count
from typing import Any, Final, NamedTuple

import msgspec

from ..text.redaction import Redaction, Redactor
from ..text.widgets import referenced_models, widget_text
from ..types import JSON, ExecutionId, Output
from .displays import Displays
from .messages import Frame
from .nbformat_outputs import json_value
from .outputs import AGENT_TOKENS, Outputs

MODELS_BYTES: Final = 10_000_000
"""The maximum size of all models of a kernel. The state of a model beyond it is not kept.

All outputs in `Output` widgets may take as much again."""
CAPTURED_BYTES: Final = 1_000_000
"""The maximum size of the outputs in an `Output` widget."""

_MODEL_BYTES: Final = 500
"""Approximate size of a model without a state."""


class _Model:
    """A model: its state, by name, each value as JSON."""

    def __init__(self, version: int) -> None:
        self.state: dict[str, bytes] = {}
        self.buffers: dict[tuple[int | str, ...], str] = {}
        """Binary parts of the state, in base64, by their path."""
        self.captured: Outputs | None = None
        """The outputs in an `Output` widget."""
        self.captures: str | None = None
        """The id of the request whose output it takes."""
        self.counted_bytes = 0
        """How many bytes of outputs in it are counted in those of all widgets."""
        self.is_left_out = False
        """Whether its state or its outputs are not whole, since they were too large."""
        self.changed_at = version
        self._references: tuple[tuple[int, int], list[str]] = ((-1, 0), [])

    @property
    def version(self) -> tuple[int, int]:
        """Another one after each change."""
        return self.changed_at, 0 if self.captured is None else self.captured.version

    @property
    def size(self) -> int:
        """The number of bytes kept, without outputs in it."""
        parts = (*self.state.values(), *self.buffers.values())
        return _MODEL_BYTES + sum(map(len, parts))

    def value(self, name: str) -> JSON:
        """Return a value of its state."""
        data = self.state.get(name)
        return None if data is None else json.loads(data)

    def references(self) -> list[str]:
        """Return the ids of the models that its state refers to, or that outputs in it show."""
        if self._references[0] != self.version:
            self._references = self.version, list(referenced_models(self.told()["state"]))
        return self._references[1]

    def told(self) -> dict[str, Any]:
        """Return the model as nbformat's widget state has it."""
        state = {name: json.loads(data) for name, data in self.state.items()}
        if self.captured is not None:
            self.captured.release()
            state["outputs"] = self.captured.outputs
        told: dict[str, Any] = {
            name: state.get(f"_{name}")
            for name in ("model_name", "model_module", "model_module_version")
        }
        told["state"] = state
        if self.buffers:
            told["buffers"] = [
                {"encoding": "base64", "path": list(path), "data": data}
                for path, data in self.buffers.items()
            ]
        return told


class WidgetStates(NamedTuple):
    """The models that have changed, as the record keeps them."""

    models: dict[str, dict[str, Any] | None]
    """The models by id; None for one that was closed."""
    left_out: list[str]
    """The ids of those whose state is not known, or too large to keep."""
    omitted_bytes: int
    """The size of the known ones among these."""
    redacted: int
    """How many secrets were replaced."""
    texts: dict[str, str]
    """What the widgets that were asked for show now, as text, by the ids of their models."""


class WidgetModels:
    """All models of a kernel. Call everything in the thread of the kernel's channels.

    Parameters
    ----------
    displays
        Gets what `Output` widgets capture.
    redactor
        Replaces secrets in outputs that are captured.
    """

    def __init__(
        self, displays: Displays, redactor: Redactor = AGENT_TOKENS, max_bytes: int = MODELS_BYTES
    ) -> None:
        self._displays = displays
        self._redactor = redactor
        self._max_bytes = max_bytes
        self._models: dict[str, _Model] = {}
        self._size = 0
        self._captured_bytes = 0
        self._versions = count(1)

    def take(
        self, msg_type: str, content: Mapping[str, Any], buffers: Sequence[Frame] = ()
    ) -> None:
        """Process a comm message of any request."""
        id, data = content.get("comm_id"), content.get("data")
        if not isinstance(id, str):
            return
        if msg_type == "comm_close":
            self._close(id)
        elif isinstance(data, dict) and isinstance(data.get("state"), dict):
            if msg_type == "comm_open" and content.get("target_name") == "jupyter.widget":
                self._open(id)
            if id in self._models:
                self._update(id, data["state"], data.get("buffer_paths"), buffers)

    def states(
        self,
        roots: Iterable[str],
        known: dict[str, tuple[int, int]],
        max_bytes: int,
        *,
        shown: Iterable[str] = (),
        captured: Iterable[str] = (),
    ) -> WidgetStates:
        """Return the models that `roots` names, and those that they refer to, if they have changed.

        Parameters
        ----------
        known
            The version of each model when it was returned last; updated.
        max_bytes
            Maximum size of all; a model beyond it is left out.
        shown, captured
            The models of which the texts are returned; of `captured`, those that are not part of
            what is shown.
        """
        models: dict[str, dict[str, Any] | None] = {}
        left_out: list[str] = []
        omitted, room = 0, max_bytes
        for id in self._reachable(roots):
            model = self._models.get(id)
            version = (-1, 0) if model is None else model.version
            if known.get(id) == version:
                continue
            is_new = id not in known
            known[id] = version
            if model is None:
                if is_new:
                    left_out.append(id)  # it was there before us, or is closed already
                else:
                    models[id] = None
                continue
            size = model.size + (0 if model.captured is None else model.captured.size)
            if model.is_left_out or size > room:
                left_out.append(id)
                omitted += size
            else:
                room -= size
                models[id] = model.told()
        shown, captured = dict.fromkeys(shown), sorted(captured)
        parts = set(self._reachable(shown))
        shown |= dict.fromkeys(id for id in captured if id not in parts)
        now = {id: self._models[id].told() for id in self._reachable(shown) if id in self._models}
        texts = {id: text for id in shown if (text := widget_text(now, id))}
        redaction = Redaction(self._redactor)
        return WidgetStates(
            redaction.content(models),
            left_out,
            omitted,
            redaction.count,
            Redaction(self._redactor).content(texts),
        )

    def captured(self, id: str) -> list[Output] | None:
        """Return the outputs that a widget has captured; None if there is no such widget."""
        model = self._models.get(id)
        return None if model is None else model.told()["state"].get("outputs")

    def _reachable(self, roots: Iterable[str]) -> Iterator[str]:
        waiting, seen = list(roots), set[str]()
        while waiting:
            id = waiting.pop()
            if id in seen:
                continue
            seen.add(id)
            yield id
            model = self._models.get(id)
            if model is not None:
                waiting += model.references()

    def _open(self, id: str) -> None:
        self._close(id)
        if self._size + _MODEL_BYTES <= self._max_bytes:
            self._models[id] = _Model(next(self._versions))
            self._size += _MODEL_BYTES

    def _update(
        self, id: str, state: dict[str, Any], paths: object, buffers: Sequence[Frame]
    ) -> None:
        model = self._models[id]
        self._size -= model.size
        model.changed_at = next(self._versions)
        paths = list(filter(_is_path, paths)) if isinstance(paths, list) else []
        changed = {str(name) for name in state} | {str(path[0]) for path in paths}
        model.buffers = {
            at: data for at, data in model.buffers.items() if str(at[0]) not in changed
        }
        for name, value in state.items():
            model.state[str(name)] = msgspec.json.encode(json_value(value)[0])
        for path, buffer in zip(paths, buffers, strict=False):
            model.buffers[tuple(path)] = base64.b64encode(buffer).decode("ascii")
        model.is_left_out |= len(paths) > len(buffers)
        if model.is_left_out or self._size + model.size > self._max_bytes:
            model.is_left_out = True
            kept = model.state.keys() & {"_model_name", "msg_id"}
            model.state = {name: model.state[name] for name in kept}
            model.buffers = {}
        self._size += model.size
        if model.value("_model_name") == "OutputModel":
            self._follow_output(id, model, state)

    def _follow_output(self, id: str, model: _Model, state: dict[str, Any]) -> None:
        if "outputs" in state or model.captured is None:
            model.captured = self._outputs(model.value("outputs"))
            self._count(model, model.captured.size)
        if "msg_id" in state:
            self._release(id, model)
            msg_id = state["msg_id"]
            if isinstance(msg_id, str) and msg_id:
                model.captures = msg_id
                capture = partial(self._capture, model)
                self._displays.captures.setdefault(msg_id, {})[id] = capture

    def _capture(self, model: _Model, msg_type: str, content: dict[str, Any]) -> None:
        """Add output to a widget, unless the outputs in all widgets take too much room."""
        assert model.captured is not None
        if self._captured_bytes < self._max_bytes or msg_type == "clear_output":
            model.captured.feed(msg_type, content)
            self._count(model, model.captured.size)
        else:
            model.is_left_out, model.changed_at = True, next(self._versions)

    def _count(self, model: _Model, size: int) -> None:
        """Count the outputs in a widget among those of all."""
        self._captured_bytes += size - model.counted_bytes
        model.counted_bytes = size

    def _outputs(self, outputs: JSON) -> Outputs:
        """Return outputs that more can be added to."""
        made = Outputs(
            ExecutionId(""),
            Displays(),
            max_output_bytes=CAPTURED_BYTES,
            redactor=self._redactor,
        )
        for output in outputs if isinstance(outputs, list) else ():
            if isinstance(output, dict):
                made.feed(str(output.get("output_type")), output)
        return made

    def _release(self, id: str, model: _Model) -> None:
        """Let a widget take no more output."""
        if model.captures is not None:
            captures = self._displays.captures[model.captures]
            captures.pop(id, None)
            if not captures:
                del self._displays.captures[model.captures]
            model.captures = None

    def _close(self, id: str) -> None:
        model = self._models.pop(id, None)
        if model is not None:
            self._size -= model.size
            self._count(model, 0)
            self._release(id, model)


def _is_path(path: object) -> bool:
    return isinstance(path, list) and bool(path) and all(isinstance(at, (str, int)) for at in path)
