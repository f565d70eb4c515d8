"""Check whether an exported notebook agrees with its journal: export it again, and compare.

The journal's chain and payloads are checked by `verify`, which shares only definitions with the
writer.
"""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import product
from pathlib import Path
from typing import Any, Final

from msgspec import MsgspecError

from ..records import KINDS
from .blobs import BlobStore
from .checked_chains import Checked, check_chain
from .findings import Outcome, Report, differing, shown
from .heads import recorded
from .notebook import journal_notebook

_WRONG_SHAPE: Final = (
    AttributeError, LookupError, MsgspecError, RecursionError, TypeError, ValueError,
)  # fmt: skip
"""The exceptions from reading what no version writes in this form."""

_CELL_FIELDS: Final = {"cell_type", "execution_count", "id", "metadata", "outputs", "source"}

_OUTPUTS: Final = {"outputs", "tags"}

_ONLY_IN_0_1: Final = {"files_changed_meanwhile"}
"""Metadata of cells that this version does not export."""

_FROM_PAYLOADS: Final[dict[str, set[str]]] = {
    "source": {"source", "agent_exec.source_sha256", "agent_exec.approval"},
    "before": {"agent_exec.approval"},
    "values": {"agent_exec.values"},
    "variables": {"agent_exec.changes"},
    "preview": set(),
    "prompt": set(),
    "text": set(),
    "widgets": set(),
}
"""What is not known of a cell if the payload in this field of an entry is missing. All other fields
hold its outputs."""


def verify_notebook(notebook: Path, journal: Path) -> Report:
    """Check a journal, and check that an exported notebook agrees with it.

    Everything that came from the record is compared: each cell's source, outputs, count and
    metadata, in order, and the notebook's session, events and kernel. Cells that are not in the
    record are reported, whatever their type. Metadata that others added (tags, a tool's own) are
    ignored. The journal may have grown since the export.

    Parameters
    ----------
    notebook
        The exported file, plain or clean.
    journal
        The session's `journal.jsonl`, with its blobs beside it.
    """
    report = Report()
    checked = check_chain(journal, report, whole=True)
    try:
        document = json.loads(notebook.read_text("utf-8"))
        metadata = document["metadata"]
        about = metadata["agent_exec"]
        _leave_out_reviews(document, checked)
        head, length = about["chain"]["head"], about["chain"]["length"]
        if not isinstance(length, int) or length < 1 or not isinstance(head, str):
            raise TypeError("its chain cannot be one")
        clean = "session" not in about and "session_id" in about
        cells = [(_execution_id(cell), cell, _fields(cell, clean)) for cell in document["cells"]]
        exported = _metadata_fields(metadata)
    except _WRONG_SHAPE as error:
        message = f"It is not an exported notebook any more: {shown(repr(error))}."
        report.add(Outcome.ALTERED, notebook, None, message)
        return report
    if length > len(checked.hashes):
        message = "It ends before the notebook's head."
        report.add(Outcome.TRUNCATED, journal, len(checked.hashes), message)
        return report
    if checked.hashes[length - 1] != head:
        message = "The journal has another head at its place."
        report.add(Outcome.ALTERED, notebook, length - 1, message)
    blobs = BlobStore(journal.parent / "blobs")
    try:
        text = "".join(journal_notebook(journal, blobs, clean=clean, length=length))
        again = json.loads(text)
        _leave_out(again, document)
        expected = {_execution_id(cell): _fields(cell, clean) for cell in again["cells"]}
        known_about = _metadata_fields(again["metadata"])
        unknown = _unknown(checked, again["metadata"]["agent_exec"])
        numbers = _numbers(checked.entries[:length])
    except _WRONG_SHAPE as error:
        message = f"It cannot be exported: {shown(repr(error))}."
        report.add(Outcome.ALTERED, journal, None, message)
        return report
    _compare_cells(notebook, cells, expected, numbers, unknown, report)
    differ = differing(exported, known_about, ignored=unknown[None])
    if differ:
        message = f"The notebook's metadata differ from the journal: {', '.join(differ)}."
        report.add(Outcome.ALTERED, notebook, None, message)
    return report


def _leave_out_reviews(document: dict[str, Any], checked: Checked) -> None:
    """Remove reviews of the whole session, which 0.1 exported with each execution.

    They are an event of the session now. One that is not in the journal stays, and is found.
    """
    said = [
        [entry.get(name) for name in ("at", "verdict", "comment")]
        for entry in checked.entries
        if entry.get("type") == "reviewed" and entry.get("execution_id") is None
    ]
    cells = [_metadata(cell).get("agent_exec") for cell in document["cells"]]
    for each in (*cells, *document["metadata"]["agent_exec"].get("trials", [])):
        review = each.get("review") if isinstance(each, dict) else None
        if not isinstance(review, dict) or not review.get("whole_session"):
            continue
        if [review.get(name) for name in ("at", "verdict", "comment")] in said:
            del each["review"]


def _leave_out(again: dict[str, Any], document: dict[str, Any]) -> None:
    """Remove what an export of 0.1 lacks: events that were parts of cells, and counts."""
    about = again["metadata"]["agent_exec"]
    told = [event["n"] for event in document["metadata"]["agent_exec"].get("events", [])]
    about["events"] = [
        event for event in about.get("events", []) if event["type"] in KINDS or event["n"] in told
    ]
    cells = [_metadata(cell).get("agent_exec") for cell in document["cells"]]
    if not any("execution_count" in each for each in cells if isinstance(each, dict)):
        for cell in again["cells"]:
            _metadata(cell).get("agent_exec", {}).pop("execution_count", None)


def _compare_cells(
    notebook: Path,
    cells: list[tuple[str, dict[str, Any], dict[str, Any]]],
    expected: dict[str, dict[str, Any]],
    numbers: dict[str, int],
    unknown: defaultdict[str | None, set[str]],
    report: Report,
) -> None:
    order = dict.fromkeys(id for id, _, _ in cells if id in expected)
    if list(order) != [id for id in expected if id in order]:
        report.add(Outcome.ALTERED, notebook, None, "The cells are not in the journal's order.")
    for id, cell, fields in cells:
        recorded_fields = expected.pop(id, None) if cell.get("cell_type") == "code" else None
        if recorded_fields is None:
            kind, name = shown(cell.get("cell_type")), shown(cell.get("id"))
            message = f"The {kind} cell {name} is not in the journal, or here twice."
            report.add(Outcome.ALTERED, notebook, None, message)
            continue
        differ = differing(fields, recorded_fields, ignored=unknown[id])
        if differ:
            named = ", ".join(name.removeprefix("agent_exec.") for name in differ)
            message = f"The cell of execution {id} differs from entry {numbers.get(id)}: {named}."
            report.add(Outcome.ALTERED, notebook, numbers.get(id), message)
    for id in expected:
        message = f"The cell of execution {id} is missing."
        report.add(Outcome.ALTERED, notebook, numbers.get(id), message)


def _numbers(entries: list[dict[str, Any]]) -> dict[str, int]:
    """Return the number of the entry that finished each execution, or else accepted it."""
    kinds = ("accepted", "finished")
    numbered = enumerate(entries)
    return {str(entry["execution_id"]): n for n, entry in numbered if entry.get("type") in kinds}


def _unknown(checked: Checked, about: dict[str, Any]) -> defaultdict[str | None, set[str]]:
    """Return what is not known of each execution, since payloads are missing; None: of the rest."""
    events, trials = about.get("events", []), about.get("trials", [])
    unknown: defaultdict[str | None, set[str]] = defaultdict(set)
    for n, name in checked.missing:
        entry = checked.entries[n]
        kind, execution_id = entry["type"], entry.get("execution_id")
        if kind in ("environment_found", "packages_changed"):
            unknown[None].add("agent_exec.environments")
        elif kind == "person_ran":
            places = (place for place, event in enumerate(events) if event["n"] == n)
            unknown[None] |= {f"agent_exec.events[{place}].source_text" for place in places}
        elif name == entry.get("widgets"):
            unknown[None] |= {"widgets", "agent_exec.widgets_left_out"}
        named = [field for field in entry if entry[field] == name] or ["blobs"]
        targets = [each["execution_id"] for each in entry.get("targets", ())]
        for id, field in product(targets or [execution_id], named):
            unknown[id] |= {"agent_exec.outputs_complete", *_FROM_PAYLOADS.get(field, _OUTPUTS)}
    for n, trial in enumerate(trials):  # which has no cell
        names = (name.partition(".")[2] for name in unknown[trial["execution_id"]])
        unknown[None] |= {f"agent_exec.trials[{n}].{name}" for name in names}
    return unknown


def _execution_id(cell: dict[str, Any]) -> str:
    """Return the id of a cell's execution; in a clean notebook it is the cell's own id."""
    about = _metadata(cell).get("agent_exec")
    return str((about if isinstance(about, dict) else {}).get("execution_id", cell.get("id")))


def _metadata(cell: dict[str, Any]) -> dict[str, Any]:
    metadata = cell.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _fields(cell: dict[str, Any], clean: bool) -> dict[str, Any]:
    """Return what came from the record in a cell, by name: `agent_exec.…` for its metadata."""
    fields = recorded(cell)
    fields["outputs"] = json.dumps(fields.get("outputs"), sort_keys=True)  # to the last zero
    about = fields.get("agent_exec")
    if clean:
        tags = _metadata(cell).get("tags")
        fields["tags"] = isinstance(tags, list) and "raises-exception" in tags
        fields["agent_exec"] = "there" if "agent_exec" in _metadata(cell) else None
    elif isinstance(about, dict):
        del fields["agent_exec"]
        fields |= {f"agent_exec.{name}": about[name] for name in about if name not in _ONLY_IN_0_1}
    return fields | dict.fromkeys(cell.keys() - _CELL_FIELDS, "there")


def _metadata_fields(metadata: dict[str, Any]) -> dict[str, Any]:
    """Return what came from the record in a notebook's metadata, by name."""
    fields = {name: metadata.get(name) for name in ("kernelspec", "language_info", "widgets")}
    for name, value in metadata["agent_exec"].items():
        if name == "session":
            fields |= {f"agent_exec.session.{key}": item for key, item in value.items()}
        elif name in ("events", "trials"):
            for n, each in enumerate(value):
                fields |= {f"agent_exec.{name}[{n}].{key}": each[key] for key in each}
        elif name != "signature":
            fields[f"agent_exec.{name}"] = value
    return fields
