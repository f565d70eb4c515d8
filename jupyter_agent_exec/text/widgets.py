"""What ipywidgets' models show, as text for a language model. Pure.

Models are as in nbformat's widget state: `model_name`, `state` and `buffers`, by the model's id.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ..types import JSON, Output
from .model_text import html_text, transcript

VIEW: Final = "application/vnd.jupyter.widget-view+json"
"""The type of a display that shows a model."""
STATE: Final = "application/vnd.jupyter.widget-state+json"
"""The name of the models in a notebook's `metadata.widgets`."""
REFERENCE: Final = "IPY_MODEL_"
"""A model's state names another by this and the other's id."""

_BAR_CHARACTERS: Final = 10
_MAX_DEPTH: Final = 20

Models = Mapping[str, Mapping[str, Any]]


def shown_model(output: Output) -> str | None:
    """Return the id of the model that an output shows; None if it shows none."""
    data = output.get("data")
    view = data.get(VIEW) if isinstance(data, dict) else None
    found = view.get("model_id") if isinstance(view, dict) else None
    return found if isinstance(found, str) else None


def referenced_models(value: JSON) -> Iterator[str]:
    """Yield the ids of the models that a state names, or that outputs in it show."""
    if isinstance(value, str):
        if value.startswith(REFERENCE):
            yield value.removeprefix(REFERENCE)
    elif isinstance(value, list):
        for item in value:
            yield from referenced_models(item)
    elif isinstance(value, dict):
        shown = shown_model(value)
        if shown is not None:
            yield shown
        for item in value.values():
            yield from referenced_models(item)


def with_widget_texts(outputs: Sequence[Output], texts: Mapping[str, str]) -> Sequence[Output]:
    """Return outputs in which widgets have these texts as their plain text.

    Those that no output shows have captured output. They follow, since it would not be read else.
    """
    if not texts:
        return outputs
    hidden = texts.keys() - set(map(shown_model, outputs))
    notes = [f"[captured by an Output widget]\n{texts[id]}" for id in texts if id in hidden]
    captured = [{"output_type": "display_data", "data": {"text/plain": note}} for note in notes]
    told = [(output, texts.get(shown_model(output) or "")) for output in outputs]
    return [
        output if text is None else {**output, "data": {**output["data"], "text/plain": text}}
        for output, text in told
    ] + captured


def widget_text(models: Models, id: str, depth: int = 0) -> str | None:
    """Return what a widget shows; None if it shows no text, or if its model is not known."""
    model = models.get(id)
    if model is None or depth > _MAX_DEPTH:
        return None
    name, state = str(model.get("model_name")).removesuffix("Model"), model.get("state", {})
    value = state.get("value")
    if name in ("HTML", "HTMLMath", "Label"):
        return html_text(str(value or "").replace("\u2007", " "))  # tqdm's spaces
    if name in ("FloatProgress", "IntProgress"):
        return _progress(state)
    if name == "Output":
        return transcript(state.get("outputs", ()))
    if isinstance(state.get("children"), list):
        texts = (widget_text(models, child, depth + 1) for child in _children(state))
        return ("\n" if name == "VBox" else " ").join(text.strip() for text in texts if text)
    if value is None or not isinstance(value, (str, int, float, list)):
        return None
    told = {"description": state.get("description"), "value": value}
    return f"{name}({', '.join(f'{key}={item!r}' for key, item in told.items() if item != '')})"


def _children(state: Mapping[str, Any]) -> Iterator[str]:
    return referenced_models(state["children"])


def _progress(state: Mapping[str, Any]) -> str:
    value, first, last = (state.get(name, 0) for name in ("value", "min", "max"))
    try:
        full = round(min(max((value - first) / (last - first), 0), 1) * _BAR_CHARACTERS)
        counts = f"{value:g}/{last:g}"
    except (TypeError, ValueError, ArithmeticError):  # a NaN comes as the text "nan"
        full, counts = 0, f"{value}/{last}"
    bar = f"|{'█' * full}{' ' * (_BAR_CHARACTERS - full)}|"
    described = state.get("description")
    return f"{described} {bar} {counts}" if described else bar
