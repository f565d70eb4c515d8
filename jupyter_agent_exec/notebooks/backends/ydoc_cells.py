"""Makes changes to a notebook that users share through collaboration.

`changes.apply` makes the changes in plain cells, as for a file. The difference then goes to the
shared document, in one transaction. Carriage returns and backspaces in a stream take effect here,
as in JupyterLab, because its pages show text from other clients unprocessed.

Needs pycrdt and jupyter_ydoc, which come with jupyter-collaboration and jupyter-server-documents.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence, Set
from typing import Any, NamedTuple
from weakref import WeakMethod

import msgspec
from jupyter_ydoc import YNotebook
from pycrdt import Array, Doc, Map, Text

from ...models import OutputChange
from ...types import CellId, Output
from ..cell_names import holds_names, is_made_up, with_names
from ..changes import (
    Cell,
    Change,
    DeleteCell,
    Expected,
    MoveCell,
    Moved,
    Notebook,
    PutCell,
    SetCell,
    SetOutputs,
    apply,
    find_cell,
    id_of,
    joined,
    order_of,
)
from ..repairs import repaired

SAFE_INTEGER = 2**53 - 1
"""The largest exact integer in JavaScript. Larger integers are sent as floats, because JSON cannot
hold a BigInt."""


_CONTROLS = re.compile("([\r\b])")


class Line(NamedTuple):
    """The last, unfinished line of a text."""

    text: str = ""
    column: int = 0
    """The column where the next character is written."""


class End(NamedTuple):
    """The end of a cell's outputs after our last change."""

    outputs: int
    """The number of outputs."""
    bytes: int
    """The length of the last output's text in bytes; 0 if it is not a stream."""
    line: Line
    """The last line of that text."""

    @classmethod
    def of(cls, shared: Array[Map[Any]], outputs: Sequence[Any]) -> End:
        """Return the end of shared outputs, which show these."""
        line = Line()
        last = outputs[-1] if outputs else None
        if isinstance(last, Map):  # unchanged
            last = _as_plain(shared[-1])
        if last is not None and _stream_name(last) is not None:
            text = joined(last["text"])
            line = write(line, text[text.rfind("\n") + 1 :])[1]
        return cls(len(shared), _last_bytes(shared), line)

    def holds(self, shared: Array[Map[Any]]) -> bool:
        """Return whether outputs are unchanged since then."""
        return self[:2] == (len(shared), _last_bytes(shared))


def write(line: Line, text: str) -> tuple[str, Line]:
    """Write `text` at a line. Return the text that replaces the line, and the new last line."""
    if line.column == len(line.text) and _CONTROLS.search(text) is None:
        whole = line.text + text
        last = whole[whole.rfind("\n") + 1 :]
        return whole, Line(last, len(last))
    finished = []
    *full, rest = text.split("\n")
    for part in full:
        finished.append(_written(line, part).text + "\n")
        line = Line()
    line = _written(line, rest)
    return "".join([*finished, line.text]), line


def _written(line: Line, text: str) -> Line:
    """Return a line after a text without newlines was written to it."""
    shown, column = line
    for part in _CONTROLS.split(text):
        if part == "\r":
            column = 0
        elif part == "\b":
            shown = shown[: max(column - 1, 0)] + shown[column:]
            column = max(column - 1, 0)
        else:
            shown = shown[:column] + part + shown[column + len(part) :]
            column += len(part)
    return Line(shown, column)


def carried_out(text: str) -> str:
    """Return a text after its carriage returns and backspaces have taken effect."""
    return write(Line(), text)[0]


def with_cursor(output: Output, line: Line) -> Output:
    """Return an output whose text moves the cursor to the column of its last line."""
    if line.column == len(line.text):
        return output
    return {**output, "text": f"{output['text']}\r{line.text[: line.column]}"}


def as_shown(output: Output) -> Output:
    """Return an output as a page shows it: its carriage returns and backspaces carried out."""
    output = shareable(output)
    if _stream_name(output) is None:
        return output
    return {**output, "text": carried_out(joined(output["text"]))}


def sync_outputs(shared: Array[Map[Any]], before: list[Any], after: list[Any]) -> None:
    """Bring shared outputs to a later state. Outputs that are the same objects are unchanged."""
    same = 0
    for old, new in zip(before, after, strict=False):
        if old is not new and _as_plain(shared[same]) != as_shown(new):
            break
        same += 1
    if same == len(before) == len(after):
        return
    more = [as_shown(output) for output in after[same:]]
    gone = len(before) - same
    stream = _stream_name(before[-1]) if gone else None
    joins = stream is not None and (not more or stream == _stream_name(more[0]))
    if gone == 1 and more and joins and isinstance(shared[same], Map):
        grown = shared[same]["text"]
        replace_end(grown, str(grown), more.pop(0)["text"])
        same += 1
    elif joins:  # a page would append to the stream that is removed
        more = [*map(_as_plain, shared[:same]), *more]
        same = 0
    if same < len(shared):
        del shared[same : len(shared)]
    for output in more:
        text = {"text": Text(output["text"])} if _stream_name(output) is not None else {}
        shared.append(Map({**output, **text}))


def _as_plain(output: Map[Any] | Output) -> Output:
    """Return an output as JSON, which those of jupyter-server-documents are already."""
    return (output.to_py() or {}) if isinstance(output, Map) else output


def set_text(shared: Text, text: str) -> None:
    """Change only the part of a text that differs, so that the user's cursor stays in place."""
    before = str(shared)
    start = _alike(before, text)
    end = _alike(before[start:][::-1], text[start:][::-1])
    at = len(before[:start].encode())  # a shared text counts bytes
    if gone := before[start : len(before) - end]:
        del shared[at : at + len(gone.encode())]
    if more := text[start : len(text) - end]:
        shared.insert(at, more)


def replace_end(shared: Text, before: str, after: str) -> None:
    """Replace `before`, the end of a text, by `after`. A page can only change the end of a text."""
    same = _alike(before, after)
    if gone := len(before[same:].encode()):
        del shared[len(shared) - gone : len(shared)]
    shared += after[same:]


def _alike(one: str, other: str) -> int:
    """Return the length of the common prefix of two texts."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _last_bytes(shared: Array[Map[Any]]) -> int:
    text = shared[-1].get("text") if len(shared) else None
    return len(text) if isinstance(text, Text) else 0


def _stream_name(output: Output) -> str | None:
    name: str | None = output["name"] if output["output_type"] == "stream" else None
    return name


def shareable(value: Any) -> Any:
    """Return a copy of JSON whose numbers JavaScript can represent."""
    if isinstance(value, dict):
        return {key: shareable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [shareable(item) for item in value]
    if isinstance(value, int) and abs(value) > SAFE_INTEGER:
        return float(value)
    return value


def with_integers(value: Any) -> Any:
    """Return JSON as JavaScript writes it: numbers without a fraction are integers."""
    if isinstance(value, dict):
        return {key: with_integers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [with_integers(item) for item in value]
    if isinstance(value, float) and value.is_integer() and abs(value) <= SAFE_INTEGER:
        return int(value)
    return value


ORIGIN = "jupyter_agent_exec"
"""The origin of our transactions. It keeps them out of the undo histories of the document and the
pages."""

_OURS = "agent_exec"

_IDS = frozenset({"id", "metadata", _OURS})
"""The keys of a cell and its metadata that hold its name."""

_METADATA = (_OURS, "trusted")
"""The keys of a cell's metadata that changes set."""


class LiveCells:
    """The cells of a shared document."""

    def __init__(self, document: YNotebook) -> None:
        self._document = document
        self._cells: Array[Map[Any]] = document.ycells
        self._meta: Map[Any] = document.ydoc.get("meta", type=Map)
        self._order: list[CellId] | None = None  # None: read it again
        self._holds_names = True  # if not, a name may depend on a source
        self.made_up: Set[str] = frozenset()
        """Ids that nbformat gave to cells when it read the file, and that the file has not."""
        self._ends: dict[CellId, End] = {}
        # The document keeps what observes it, and what observes it must not keep the document.
        on_changes = WeakMethod(self._on_changes)
        self._cells.observe_deep(lambda events: (observe := on_changes()) and observe(events))

    async def forget_ids(self, not_in_file: Callable[[Set[str]], Awaitable[Set[str]]]) -> None:
        """Find the ids that nbformat made up when it read the file: they are no names.

        Parameters
        ----------
        not_in_file
            Returns those ids that no cell in the file has.
        """
        made_up = {id for cell in self._cells if is_made_up(id := cell.get("id"))}
        if made_up:
            self.made_up = await not_in_file(made_up)
            self._order = None

    def apply(self, changes: Sequence[Change], expected: Expected) -> None:
        """Make changes in one transaction, all or none.

        Raises
        ------
        Moved
            An expectation does not hold, a cell to change is gone, or someone else has changed its
            outputs.
        """
        with self._document.ydoc.transaction(origin=ORIGIN):
            if expected == Expected() and self._append(changes):
                return
            minor = int(self._meta.get("nbformat_minor", 0))
            before = self._read(changes, expected, minor)
            notebook = {"cells": before, "nbformat_minor": minor}
            after: list[Cell] = apply(notebook, changes, expected)["cells"]
            self._write(before, after, changes)
        self._order = order_of(after)

    def _on_changes(self, events: list[Any]) -> None:
        """Forget the order if cells were added, moved or removed, or may have other names."""
        for event in events:
            is_source = "source" in event.path and not self._holds_names
            if not event.path or is_source or _IDS & set(getattr(event, "keys", ())):
                self._order = None

    def _append(self, changes: Sequence[Change]) -> bool:
        """Add text to the last output, the most frequent change; False if the changes are others.

        It reads neither the outputs nor the other cells.
        """
        match changes:
            case [SetOutputs(cell_id=id, changes=[OutputChange(append=str(more), index=index)])]:
                end, order = self._ends.get(id), self._order or []
            case _:
                return False
        if end is None or end.outputs != index + 1 or id not in order:
            return False
        outputs: Array[Map[Any]] | None = self._cells[order.index(id)].get("outputs")
        if outputs is None or not end.holds(outputs) or outputs[-1]["output_type"] != "stream":
            return False
        text = outputs[-1]["text"]
        written, line = write(end.line, more)
        replace_end(text, end.line.text, written)
        self._ends[id] = End(end.outputs, len(text), line)
        return True

    # -- read --------------------------------------------------------------------------------------

    def _read(self, changes: Sequence[Change], expected: Expected, minor: int) -> list[Cell]:
        """Return plain cells: what the changes need of the cells that they name, ids of others."""
        if self._order is None:
            self._order = self._names(minor)
        named = {*expected.cells, *expected.counts, *map(_named, changes)}
        steps: dict[CellId, list[OutputChange]] = {}
        for change in changes:
            if isinstance(change, SetOutputs):
                steps.setdefault(change.cell_id, []).extend(change.changes)
        cells = []
        for index, id in enumerate(self._order):
            cell: Cell = {"id": id, "metadata": {}}
            if id in named:
                named.remove(id)
                cell |= self._plain(id, self._cells[index], steps.get(id, []))
            cells.append(cell)
        return cells

    def _names(self, minor: int) -> list[CellId]:
        """Return the names of all cells."""
        cells = _as_json(self._cells)
        for cell in cells:
            if cell.get("id") in self.made_up:
                cell["id"] = None
        self._holds_names = holds_names(cells, minor)
        return order_of(with_names(cells, minor))

    def _plain(self, id: CellId, shared: Map[Any], steps: list[OutputChange]) -> Cell:
        metadata = shared["metadata"]
        cell: Cell = {
            "cell_type": shared["cell_type"],
            "source": str(shared["source"]),
            "metadata": {key: metadata.get(key) for key in _METADATA},
        }
        if cell["cell_type"] == "code":
            cell["execution_count"] = shared.get("execution_count")
            cell["outputs"] = self._plain_outputs(id, shared["outputs"], steps)
        return cell

    def _plain_outputs(
        self, id: CellId, shared: Array[Map[Any]], steps: list[OutputChange]
    ) -> list[Any]:
        """Return outputs, plain from the first one that changes on."""
        end = self._ends.get(id)
        if steps and end is not None and not end.holds(shared):
            if not (steps[0].truncate is True and steps[0].index == 0):
                raise Moved("The outputs have changed since the last update.")
            end = None
        first = min((step.index for step in steps), default=len(shared))
        outputs = [_as_plain(each) if at >= first else each for at, each in enumerate(shared)]
        if end is not None and first < len(outputs):
            outputs[-1] = with_cursor(outputs[-1], end.line)
        return outputs

    # -- write -------------------------------------------------------------------------------------

    def _write(self, before: list[Cell], after: list[Cell], changes: Sequence[Change]) -> None:
        """Bring the shared cells from one state to another."""
        removed = self._change(before, after, changes)
        present = {id_of(cell) for cell in before} - removed.keys()
        states = {
            each.cell_id: each.execution_state for each in changes if isinstance(each, SetCell)
        }
        with_outputs = {each.cell_id for each in changes if isinstance(each, SetOutputs)}
        for index, cell in enumerate(after):
            id = id_of(cell)
            if "cell_type" not in cell:  # no change names it
                if not self._holds_names:
                    _set(self._cells[index], "id", id)
                continue
            if id not in present:
                self._insert(index, removed.get(id) or _new(id, cell))
            shared = self._cells[index]
            _set(shared, "id", id)
            if id in states and "execution_state" in shared:
                _set(shared, "execution_state", states[id])
            if id in with_outputs:
                self._ends[id] = End.of(shared["outputs"], cell["outputs"])
            elif id not in present and not removed.get(id):
                self._ends.pop(id, None)

    def _change(
        self, before: list[Cell], after: list[Cell], changes: Sequence[Change]
    ) -> dict[CellId, Cell | None]:
        """Change the cells that stay, and remove those that go or have to be built again.

        Returns
        -------
            The removed cells by id: those to build again whole, None for others.
        """
        deleted = {each.cell_id for each in changes if isinstance(each, DeleteCell)}
        moved = {each.cell_id for each in changes if isinstance(each, MoveCell) and each.moves}
        removed: dict[CellId, Cell | None] = {}
        for index in reversed(range(len(before))):
            cell, id = before[index], id_of(before[index])
            if id in deleted:
                del self._cells[index]
                removed[id] = None
            elif "cell_type" in cell:
                new = find_cell(after, id)
                assert new is not None
                shared = self._cells[index]
                if new is not cell:
                    _update(shared, cell, new)
                # A page reads the trust of a cell only when it builds the cell.
                if id in moved or _trusted(new) != _trusted(cell):
                    removed[id] = shared.to_py()
                    del self._cells[index]
        return removed

    def _insert(self, index: int, cell: Cell) -> None:
        state = cell.pop("execution_state", None)
        self._cells.insert(index, self._document.create_ycell(shareable(cell)))
        inserted = self._cells[index]
        if state is not None and "execution_state" in inserted:
            _set(inserted, "execution_state", state)


def read(document: YNotebook, made_up: Set[str] = frozenset()) -> Callable[[], Notebook]:
    """Copy the current document. Return a function that converts the copy, in any thread.

    Parameters
    ----------
    made_up
        See `LiveCells.made_up`.
    """
    update = document.ydoc.get_update()

    def notebook() -> Notebook:
        copied: Doc[Any] = Doc()
        copied.apply_update(update)
        meta = copied.get("meta", type=Map)
        cells = _as_json(copied.get("cells", type=Array))
        minor = int(meta.get("nbformat_minor", 0))
        return Notebook(
            cells=with_names([repaired(_as_stored(cell, made_up)) for cell in cells], minor),
            nbformat_minor=minor,
        )

    return notebook


def _as_json(cells: Array[Map[Any]]) -> list[Cell]:
    """Return plain cells; much quicker than one by one."""
    plain: list[Cell] = msgspec.json.decode(str(cells))
    return plain


def _as_stored(cell: dict[str, Any], made_up: Set[str]) -> dict[str, Any]:
    """Return a cell as a file stores it, without its trust."""
    if cell.get("id") in made_up:
        cell["id"] = None
    cell = with_integers(cell)
    cell.pop("execution_state", None)
    cell["metadata"].pop("trusted", None)
    if not cell.get("attachments", True):
        del cell["attachments"]
    return cell


def _named(change: Change) -> CellId:
    return CellId(change.cell["id"]) if isinstance(change, PutCell) else change.cell_id


def _trusted(cell: Cell) -> bool:
    return bool(cell["metadata"].get("trusted"))


def _new(id: CellId, cell: Cell) -> Cell:
    """Return a cell to insert."""
    new = {"id": id, **cell}
    if "outputs" in cell:
        new["outputs"] = [as_shown(output) for output in cell["outputs"]]
    return new


def _update(shared: Map[Any], before: Cell, after: Cell) -> None:
    """Bring a shared cell from one state to another."""
    if after["source"] != before["source"]:
        set_text(shared["source"], after["source"])
    for key in _METADATA:
        _set(shared["metadata"], key, after["metadata"].get(key))
    if after["cell_type"] == "code":
        if after["execution_count"] != before["execution_count"]:
            shared["execution_count"] = after["execution_count"]
        sync_outputs(shared["outputs"], before["outputs"], after["outputs"])


def _set(shared: Map[Any], key: str, value: Any) -> None:
    """Set a value if it differs; None removes it."""
    if value is None:
        if key in shared:
            del shared[key]
    elif shared.get(key) != value:
        shared[key] = shareable(value)
