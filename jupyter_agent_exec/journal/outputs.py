"""An execution's outputs, of its entries: whole, or without what is large in them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from ..models import ExecutionError, Omitted
from ..records import BlobRef, Brief, DisplayUpdated, Finished, LateOutput
from ..types import Digest, ExecutionId, Output
from .blobs import unpack_outputs
from .brief import leave_out
from .reading import Line

ReadBlob = Callable[[Digest], bytes | None]
"""Gives a payload's bytes, or None if it is gone."""


class Outputs:
    """An execution's outputs, with late ones appended and display updates applied.

    Parameters
    ----------
    execution_id
        The execution.
    lines
        All of its lines, in order.
    read_blob
        Reads what does not stand on them.
    brief
        Read no blob of the outputs; `outputs` is then without what is large in them.
    """

    def __init__(
        self,
        execution_id: ExecutionId,
        lines: Sequence[Line],
        read_blob: ReadBlob,
        *,
        brief: bool = False,
    ) -> None:
        self.outputs: list[Output] = []
        self.blobs: list[BlobRef] = []
        self.brief: Brief | None = None
        self.omitted = Omitted()
        self.missing = False
        self._brief = brief
        self._failed: int | None = None
        self._inline = {d: text for line in lines for d, text in line.payloads.items()}
        self._read_blob = read_blob
        for line in lines:
            entry = line.entry
            if isinstance(entry, (Finished, LateOutput)):
                self._append(entry)
            elif isinstance(entry, DisplayUpdated):
                self._update(execution_id, entry)
        if brief:
            self.outputs, left_out = leave_out(self.outputs, self.blobs)
            self.brief = Brief(left_out=left_out, images=())

    @property
    def error(self) -> ExecutionError | None:
        """The exception that ended the execution."""
        if self._failed is None:
            return None
        output = self.outputs[self._failed]
        return ExecutionError(
            ename=output["ename"], evalue=output["evalue"], traceback=output["traceback"]
        )

    def read(self, digest: Digest) -> bytes | None:
        """Return a payload's bytes, or None if it is gone, which is noted in `missing`."""
        text = self._inline.get(digest)
        data = self._read_blob(digest) if text is None else text.encode("utf-8")
        self.missing = self.missing or data is None
        return data

    def text(self, digest: Digest) -> str:
        """Return a payload's text; empty if it is gone."""
        data = self.read(digest)
        return "" if data is None else data.decode("utf-8")

    def _unpack(self, outputs: Digest | None, blobs: Sequence[BlobRef]) -> list[Output]:
        data = None if outputs is None else self.read(outputs)
        if data is None:
            return []
        if self._brief:
            whole: list[Output] = json.loads(data)
            return whole
        return unpack_outputs(data, blobs, self.read)

    def _append(self, entry: Finished | LateOutput) -> None:
        start = len(self.outputs)
        more = self._unpack(entry.outputs, entry.blobs)
        self.outputs += more
        if more:
            self.blobs += [_moved(ref, int(ref.at[0]) + start) for ref in entry.blobs]
        self.omitted = Omitted(
            bytes=self.omitted.bytes + entry.omitted.bytes,
            lines=self.omitted.lines + entry.omitted.lines,
            outputs=self.omitted.outputs + entry.omitted.outputs,
        )
        if isinstance(entry, Finished) and entry.error:
            errors = [n for n, output in enumerate(more) if output.get("output_type") == "error"]
            self._failed = errors[-1] if errors else None

    def _update(self, execution_id: ExecutionId, entry: DisplayUpdated) -> None:
        for target in entry.targets:
            if target.execution_id != execution_id or target.index >= len(self.outputs):
                continue
            update = self._unpack(entry.outputs, entry.blobs)
            if not update:
                continue
            changed = {key: update[0].get(key, {}) for key in ("data", "metadata")}
            self.outputs[target.index] = {**self.outputs[target.index], **changed}
            self.blobs = [
                ref for ref in self.blobs if ref.at[0] != target.index or ref.at[1] not in changed
            ]
            self.blobs += [_moved(ref, target.index) for ref in entry.blobs]


def _moved(ref: BlobRef, index: int) -> BlobRef:
    return replace(ref, at=(index, *ref.at[1:]))
