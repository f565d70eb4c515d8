"""One output that is not a stream, and the note that stands for outputs that were left out."""

from __future__ import annotations

from ..models import Omitted, OutputChange
from ..types import Output


class Rich:
    """A display, a result or an error.

    Parameters
    ----------
    output
        As nbformat has it.
    size
        In bytes, of what is kept of it.
    omitted
        What was left out within it.
    version
        Of the outputs, at which it came.

    Attributes
    ----------
    in_tail
        Whether it stands behind the note that tells what was left out.
    gone
        Whether it has been left out since.
    """

    __slots__ = ("_output", "changed_at", "display_id", "gone", "in_tail", "omitted", "size")

    def __init__(
        self,
        output: Output,
        size: int,
        display_id: str | None,
        omitted: Omitted,
        version: int,
        *,
        in_tail: bool,
    ) -> None:
        self._output = output
        self.size = size
        self.display_id = display_id
        self.omitted = omitted
        self.changed_at = version
        self.in_tail = in_tail
        self.gone = False

    def update(self, output: Output, size: int, version: int) -> None:
        """Take over the data and metadata of another output."""
        changed = {key: output[key] for key in ("data", "metadata")}
        self._output = {**self._output, **changed}
        self.size = size
        self.omitted = Omitted()
        self.changed_at = version

    def withhold(self) -> None:
        """Keep nothing but a note, until an update brings something smaller."""
        self.omitted = Omitted(bytes=self.size, outputs=1)
        self.size = 0
        kept = {key: value for key, value in self._output.items() if key == "execution_count"}
        note = left_out(self.omitted)
        self._output = {**note, **kept, "output_type": self._output["output_type"]}

    def output(self) -> Output:
        """Return the nbformat output; it is replaced, never changed."""
        return self._output

    def change_since(self, version: int, index: int) -> OutputChange | None:
        """Return the step for a reader who saw this output, at `index`, at `version`."""
        if version >= self.changed_at:
            return None
        return OutputChange(index=index, output=self._output)


def left_out(omitted: Omitted) -> Output:
    """Return the output that says what was left out in its place."""
    if omitted.lines:
        what = f"{omitted.bytes:,} bytes in {omitted.lines:,} lines"
    else:
        what = f"{omitted.bytes:,} bytes"
    if omitted.outputs:
        what += f" and {omitted.outputs:,} whole output{'s' if omitted.outputs > 1 else ''}"
    counts = {"bytes": omitted.bytes, "lines": omitted.lines, "outputs": omitted.outputs}
    return {
        "output_type": "display_data",
        "data": {"text/plain": f"[{what} left out]"},
        "metadata": {"agent_exec": {"omitted": counts}},
    }
