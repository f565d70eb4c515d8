"""Show an execution's outputs in a terminal or a pipe as they come."""

from __future__ import annotations

import base64
from typing import Any, Final

from ..client.events import OutputChanged, apply
from ..client.result import joined
from ..models import OutputChange
from ..terminal import clean
from ..types import RAW_IMAGE_TYPES, Output
from .console import Console
from .pictures import Protocol, sequence

_ERASE_LINE: Final = "\r\x1b[K"


class LiveView:
    """Write outputs as they change.

    What was written stays written, as on paper: an output that is replaced is written again. Only
    the last line is written over, so that progress bars look as they should: by the terminal, and
    for a pipe or a file by holding the line back until it ends.

    Parameters
    ----------
    console
        Where to write.
    pictures
        How the terminal shows images; None if it does not.
    """

    def __init__(self, console: Console, pictures: Protocol | None) -> None:
        self._console = console
        self._pictures = pictures
        self._outputs: list[Output] = []
        self._open_line: tuple[int, str] | None = None
        """Index and name of the stream output whose last line has not ended."""
        self._held = ""
        """What was held back of that line."""

    def show(self, event: OutputChanged) -> None:
        """Write what `event` changes."""
        change = event.change
        before = self._outputs[change.index] if change.index < len(self._outputs) else None
        apply(self._outputs, change)
        if change.truncate is True:
            self._end_line()
            return
        output = self._outputs[change.index]
        if output["output_type"] == "stream":
            self._show_stream(change.index, output, before)
        else:
            self._end_line()
            self._show_whole(output)

    def finish(self, outputs: list[Output]) -> None:
        """Write what of an execution's outputs was not told, as after a connection that broke."""
        for index, output in enumerate(outputs):
            if self._outputs[index : index + 1] != [output]:
                self.show(OutputChanged(OutputChange(index=index, output=output)))
        self._end_line()

    def close(self) -> None:
        """End the line, so that what follows begins its own."""
        self._end_line()

    def _show_stream(self, index: int, output: Output, before: Output | None) -> None:
        name, text = output["name"], joined(output["text"])
        shown = joined(before["text"]) if before is not None and before.get("name") == name else ""
        if self._open_line is not None and self._open_line[0] != index:
            self._end_line()
        last_line = shown.rfind("\n") + 1
        if text.startswith(shown):
            new = text[len(shown) :]
        elif text.startswith(shown[:last_line]):
            self._rewind(name)
            new = text[last_line:]
        else:
            self._end_line()
            new = text
        self._write(name, new)
        self._open_line = (index, name) if text and not text.endswith("\n") else None

    def _write(self, name: str, text: str) -> None:
        if self._console.is_terminal(name):
            self._console.text(text, name, overwriting=True)
            return
        lines, end, self._held = (self._held + text).rpartition("\n")
        self._console.text(clean(lines) + end, name)

    def _rewind(self, name: str) -> None:
        """Go back to the start of the last line."""
        if self._console.is_terminal(name):
            self._console.sequence(_ERASE_LINE, name)
        self._held = ""

    def _end_line(self) -> None:
        if self._open_line is not None:
            self._console.text(clean(self._held) + "\n", self._open_line[1])
            self._open_line = None
            self._held = ""

    def _show_whole(self, output: Output) -> None:
        if output["output_type"] == "error":
            lines = output["traceback"] or [f"{output['ename']}: {output['evalue']}"]
            self._console.text("\n".join(lines).rstrip("\n") + "\n", "stderr")
            return
        data = output["data"]
        if not self._show_picture(data) and "text/plain" in data:
            self._console.text(str(joined(data["text/plain"])).rstrip("\n") + "\n")

    def _show_picture(self, data: dict[str, Any]) -> bool:
        if self._pictures is None:
            return False
        for mimetype in RAW_IMAGE_TYPES:
            if mimetype in data:
                image = base64.b64decode(joined(data[mimetype]))
                shown = sequence(self._pictures, mimetype, image)
                if shown is not None:
                    self._console.sequence(shown)
                    return True
        return False
