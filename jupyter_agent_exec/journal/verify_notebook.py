"""Whether an exported notebook tells what its journal tells.

Like `verify`, it shares nothing with the writer but the definition of a line: it reads outputs out
of the journal by itself.
"""

from __future__ import annotations

import base64
import contextlib
import json
import math
from pathlib import Path
from typing import Any, NamedTuple

from .chain import ParsedLine, parse_line
from .verify import Outcome, Report, check_chain


class _Cell(NamedTuple):
    """What the journal says of an execution, as far as the notebook could know."""

    n: int
    told: dict[str, Any]


class _PayloadGoneError(Exception):
    """A payload is missing, which the check of the journal itself tells."""


def verify_notebook(notebook: Path, journal: Path) -> Report:
    """Check a journal, and that an exported notebook's cells agree with it.

    Sources, outputs, statuses, counts, entry hashes, approvals and reviews are compared, in order;
    cells that are not code are not looked at. The journal may have grown since the export.

    Parameters
    ----------
    notebook
        The exported file.
    journal
        The session's `journal.jsonl`, with its blobs beside it.
    """
    report = Report()
    checked = check_chain(journal, report)
    try:
        document = json.loads(notebook.read_text("utf-8"))
        chain = document["metadata"]["agent_exec"]["chain"]
        head, length = str(chain["head"]), int(chain["length"])
        cells = [cell for cell in document["cells"] if cell["cell_type"] == "code"]
    except (ValueError, KeyError, TypeError) as error:
        report.add(
            Outcome.ALTERED, notebook, None, f"It is not an exported notebook any more: {error!r}."
        )
        return report
    if head not in checked.hashes[:length]:
        report.add(
            Outcome.TRUNCATED, journal, len(checked.hashes), "It ends before the notebook's head."
        )
    expected = _Journal(journal, length).cells()
    _compare_order(notebook, cells, list(expected), report)
    for cell in cells:
        _compare(notebook, cell, expected, report)
    for execution_id, gone in expected.items():
        report.add(
            Outcome.ALTERED, notebook, gone.n, f"The cell of execution {execution_id} is missing."
        )
    return report


def _compare_order(
    notebook: Path, cells: list[dict[str, Any]], expected: list[str], report: Report
) -> None:
    told = dict.fromkeys(_execution_id(cell) for cell in cells)
    place = {execution_id: index for index, execution_id in enumerate(expected)}
    places = [place[execution_id] for execution_id in told if execution_id in place]
    if places != sorted(places):
        report.add(Outcome.ALTERED, notebook, None, "The cells are not in the journal's order.")


def _execution_id(cell: dict[str, Any]) -> Any:
    return cell.get("metadata", {}).get("agent_exec", {}).get("execution_id")


def _compare(
    notebook: Path, cell: dict[str, Any], expected: dict[str, _Cell], report: Report
) -> None:
    metadata = cell.get("metadata", {}).get("agent_exec", {})
    execution_id = _execution_id(cell)
    known = expected.pop(execution_id, None)
    if known is None:
        report.add(
            Outcome.ALTERED,
            notebook,
            None,
            f"Cell {cell.get('id')} is not in the journal, or here twice.",
        )
        return
    actual = {
        "id": cell.get("id"),
        "source": _text(cell.get("source")),
        "execution_count": cell.get("execution_count"),
        "status": metadata.get("status"),
        "entry_hash": metadata.get("entry_hash"),
        "review": metadata.get("review"),
        "approval": metadata.get("approval"),
        "outputs": [_plain(output) for output in cell.get("outputs", ())],
    }
    differ = [name for name, value in known.told.items() if actual[name] != value]
    if differ:
        report.add(
            Outcome.ALTERED,
            notebook,
            known.n,
            f"The cell of execution {execution_id} differs from entry {known.n}: "
            f"{', '.join(differ)}.",
        )


_GOES_ON = {
    "dispatched": "running",
    "input_asked": "awaiting_input",
    "input_given": "running",
}
"""The status that an entry gives an execution."""


class _Journal:
    """A journal's first entries, read for what cells they make."""

    def __init__(self, path: Path, length: int) -> None:
        self._blobs = path.parent / "blobs"
        self._cells: dict[str, _Cell] = {}
        self._seqs: dict[str, int] = {}
        self._asked_for: dict[str, str] = {}
        self._reviewed: dict[str, Any] = {}
        self._session_reviewed: tuple[int, Any] = (0, None)
        with path.open("rb") as file:
            for _, data in zip(range(length), file, strict=False):
                try:
                    self._read(parse_line(data))
                except ValueError:
                    continue  # told by the check of the chain

    def cells(self) -> dict[str, _Cell]:
        """Return the executions in order, with what each cell must hold."""
        up_to, review = self._session_reviewed
        for execution_id, cell in self._cells.items():
            of_session = review if self._seqs[execution_id] <= up_to else None
            cell.told["review"] = self._reviewed.get(execution_id) or of_session
        return self._cells

    def _read(self, line: ParsedLine) -> None:
        entry = line.entry
        kind = entry.get("type")
        if kind == "accepted":
            self._cells[entry["execution_id"]] = _Cell(entry["n"], self._asked(line))
        elif kind in _GOES_ON:
            self._cells[entry["execution_id"]].told["status"] = _GOES_ON[kind]
        elif kind == "finished":
            told = self._cells[entry["execution_id"]].told
            told.update(status=entry["status"], entry_hash=line.hash)
            told["execution_count"] = entry.get("execution_count")
            self._cells[entry["execution_id"]] = _Cell(entry["n"], told)
            self._append(line)
            self._end_asking(told)
        elif kind in ("approval_asked", "approved", "rejected"):
            self._decide(line)
        elif kind == "reviewed":
            self._review(line.entry)
        elif kind == "late_output":
            self._append(line)
        elif kind == "display_updated":
            self._update(line)

    def _asked(self, line: ParsedLine) -> dict[str, Any]:
        told = {
            "id": line.entry["execution_id"],
            "status": "queued",
            "execution_count": None,
            "entry_hash": None,
            "approval": None,
            "outputs": [],
        }
        self._seqs[line.entry["execution_id"]] = line.entry["seq"]
        self._asked_for[line.entry["execution_id"]] = line.entry["source"]
        self._take_source(told, line)
        return told

    def _decide(self, line: ParsedLine) -> None:
        """Take what asked for approval, or what a person decided about that."""
        entry = line.entry
        told = self._cells[entry["execution_id"]].told
        approval = told["approval"]
        if entry["type"] == "approval_asked":
            told["status"] = "awaiting_approval"
            approval = {
                "status": "asked",
                "asked_at": entry["at"],
                "expires_at": entry["expires_at"],
                "kernel_id": entry.get("kernel_id"),
                "incarnation": entry["incarnation"],
                "decided_at": None,
                "decided_by": None,
                "reason": None,
                "asked_source_sha256": None,
            }
        elif approval is not None:
            approval = {
                **approval,
                "status": entry["type"],
                "decided_at": entry["at"],
                "decided_by": _name(entry["by"]),
                "reason": entry.get("reason"),
            }
        if entry["type"] == "approved":
            told["status"] = "queued"
            asked_for = self._asked_for[entry["execution_id"]]
            if approval is not None and asked_for != entry["source"]:
                approval["asked_source_sha256"] = asked_for
        told["approval"] = approval
        if "source" in entry:
            self._take_source(told, line)

    def _end_asking(self, told: dict[str, Any]) -> None:
        if told["approval"] is not None and told["approval"]["status"] == "asked":
            expired = told["status"] == "rejected"
            told["approval"]["status"] = "expired" if expired else "withdrawn"

    def _review(self, entry: dict[str, Any]) -> None:
        execution_id, comment = entry.get("execution_id"), entry.get("comment")
        review = {
            "verdict": entry.get("verdict"),
            "comment": comment,
            "by": _name(entry["by"]),
            "at": entry["at"],
            "whole_session": execution_id is None,
        }
        said = review if review["verdict"] or comment else None
        if execution_id is None:
            self._session_reviewed = (entry.get("up_to", 0), said)
        else:
            self._reviewed[execution_id] = said

    def _take_source(self, told: dict[str, Any], line: ParsedLine) -> None:
        told.pop("source", None)
        with contextlib.suppress(_PayloadGoneError):  # then the source is not compared
            told["source"] = self._payload(line, line.entry["source"]).decode("utf-8")

    def _append(self, line: ParsedLine) -> None:
        told = self._cells[line.entry["execution_id"]].told
        try:
            if "outputs" in told:
                told["outputs"] = told["outputs"] + self._outputs(line)
        except _PayloadGoneError:
            del told["outputs"]

    def _update(self, line: ParsedLine) -> None:
        for target in line.entry["targets"]:
            told = self._cells[target["execution_id"]].told
            if target["index"] >= len(told.get("outputs", ())):
                continue
            try:
                (update,) = self._outputs(line)
                told["outputs"][target["index"]].update(
                    data=update.get("data", {}), metadata=update.get("metadata", {})
                )
            except _PayloadGoneError:
                del told["outputs"]

    def _outputs(self, line: ParsedLine) -> list[dict[str, Any]]:
        digest = line.entry.get("outputs")
        if digest is None:
            return []
        outputs = json.loads(self._payload(line, digest))
        for blob in line.entry.get("blobs", ()):
            *way, last = blob["at"]
            place: Any = outputs
            for step in way:
                place = place[step]
            place[last] = _value(self._payload(line, blob["sha256"]), blob["encoding"])
        return [_plain(output) for output in outputs]

    def _payload(self, line: ParsedLine, digest: str) -> bytes:
        if digest in line.payloads:
            return line.payloads[digest].encode("utf-8")
        try:
            return (self._blobs / digest).read_bytes()
        except FileNotFoundError:
            raise _PayloadGoneError from None


def _name(by: dict[str, Any]) -> str:
    return by.get("display_name") or by.get("username") or "the server"


def _value(data: bytes, encoding: str) -> Any:
    if encoding == "base64":
        return base64.b64encode(data).decode("ascii")
    return data.decode("utf-8") if encoding == "text" else json.loads(data)


def _plain(output: dict[str, Any]) -> dict[str, Any]:
    """Return an output as any notebook writer may have left it: texts joined, strict JSON."""
    plain: dict[str, Any] = _clean(output)
    if "text" in plain:
        plain["text"] = _text(plain["text"])
    if isinstance(plain.get("data"), dict):
        plain["data"] = {
            mimetype: value if mimetype.endswith("json") else _text(value)
            for mimetype, value in plain["data"].items()
        }
    return plain


def _text(value: Any) -> Any:
    """Return text that nbformat may have split into lines."""
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return "".join(value)
    return value


def _clean(value: Any) -> Any:
    """Return what strict JSON keeps of a value: no NaN, no lone surrogates."""
    if isinstance(value, dict):
        return {_clean(key): _clean(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_clean(item) for item in value]
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
