"""Check whether an exported notebook agrees with its journal.

Like `verify`, it shares only the definition of a line with the writer: it computes by itself, from
the journal, everything that the notebook should contain.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import math
import re
import sys
from pathlib import Path
from typing import Any, NamedTuple

from .chain import ParsedLine, parse_line
from .verify import Checked, Outcome, Report, check_chain, differing, same, shown

_DEPTH = 20_000
"""How deeply the compared values may be nested, in calls."""

_WRONG_SHAPE = (KeyError, TypeError, ValueError, IndexError, AttributeError)
"""The exceptions from reading an entry that no version writes in this form."""


class _Cell(NamedTuple):
    """The content of an execution's cell according to the journal."""

    n: int
    told: dict[str, Any]
    """The expected fields of the cell itself."""
    metadata: dict[str, Any]
    """The expected `metadata.agent_exec` of the cell, without unknown values."""
    unknown: set[str]
    """Names in `told` or `metadata` that cannot be known, because a payload is missing."""


class _PayloadGoneError(Exception):
    """A payload is missing. The check of the journal itself reports this."""


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
    checked = check_chain(journal, report)
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _DEPTH))
    try:
        _verify(notebook, journal, checked, report)
    except RecursionError:
        report.add(Outcome.ALTERED, notebook, None, "It is nested more deeply than any export.")
    finally:
        sys.setrecursionlimit(before)
    return report


def _verify(notebook: Path, journal: Path, checked: Checked, report: Report) -> None:
    try:
        document = json.loads(notebook.read_text("utf-8"))
        metadata = document["metadata"]
        about = metadata["agent_exec"]
        head, length = about["chain"]["head"], about["chain"]["length"]
        cells: list[dict[str, Any]] = document["cells"]
        if not isinstance(length, int) or length < 1 or not isinstance(head, str):
            raise TypeError("its chain cannot be one")
        if not all(isinstance(cell, dict) for cell in cells):
            raise TypeError("its cells are not cells")
        clean = "session" not in about and "session_id" in about
    except (ValueError, KeyError, TypeError) as error:
        report.add(
            Outcome.ALTERED,
            notebook,
            None,
            f"It is not an exported notebook any more: {shown(repr(error))}.",
        )
        return
    if length > len(checked.hashes):
        report.add(
            Outcome.TRUNCATED, journal, len(checked.hashes), "It ends before the notebook's head."
        )
    elif checked.hashes[length - 1] != head:
        report.add(
            Outcome.ALTERED, notebook, length - 1, "The journal has another head at its place."
        )
    read = _Journal(journal, length, report)
    expected = read.cells()
    _compare_order(notebook, [_execution_id(cell) for cell in cells], list(expected), report)
    for cell in cells:
        _compare(notebook, cell, expected, clean, report)
    for execution_id, gone in expected.items():
        report.add(
            Outcome.ALTERED,
            notebook,
            gone.n,
            f"The cell of execution {shown(execution_id)} is missing.",
        )
    if length <= len(checked.hashes):  # otherwise the journal lacks entries that these come from
        _compare_metadata(notebook, metadata, read, clean, report)


def _compare_metadata(
    notebook: Path, metadata: dict[str, Any], journal: _Journal, clean: bool, report: Report
) -> None:
    """Compare the notebook's metadata about the session."""
    about = metadata["agent_exec"]
    if clean:
        told = {"session_id": journal.session.get("id")}
        differ = differing(about, told, ignored=("chain", "schema_version", "signature"))
    else:
        session = _dict(about.get("session"))
        differ = [f"session.{name}" for name in differing(_clean(session), journal.session)]
        differ += [
            f"{shown(name)} (added)"
            for name in about.keys()
            - {"session", "chain", "schema_version", "events", "environments", "signature"}
        ]
        told = about.get("environments", [] if not journal.environments else None)
        if None not in journal.environments and not same(_clean(told), journal.environments):
            differ.append("environments")
        differ += _differing_events(about.get("events"), journal.events)
    if about.get("schema_version") != 1:
        differ.append("schema_version")
    differ += differing(about["chain"], {}, ignored=("head", "length"))
    differ = [f"agent_exec.{name}" for name in differ]
    for name, value in journal.kernel.items():
        if not same(_clean(metadata.get(name)), value):
            differ.append(name)
    if differ:
        message = f"The notebook's metadata differ from the journal: {', '.join(differ)}."
        report.add(Outcome.ALTERED, notebook, None, message)


def _differing_events(actual: Any, expected: list[dict[str, Any]]) -> list[str]:
    """Return which events differ. An event is an entry that is not part of a cell."""
    events = actual if isinstance(actual, list) else []
    kept = [_clean(event) if isinstance(event, dict) else {} for event in events]
    missing = [f"events[{n}] (missing)" for n in range(len(kept), len(expected))]
    added = [f"events[{n}] (added)" for n in range(len(expected), len(kept))]
    differ: list[str] = []
    for n, (one, other) in enumerate(zip(kept, expected, strict=False)):
        ignored = (
            ("source_text",)
            if other.get("type") == "person_ran" and ("source_text" not in other)
            else ()
        )  # the payload of its source is missing
        differ += [f"events[{n}].{name}" for name in differing(one, other, ignored=ignored)]
    return [*differ, *missing, *added]


def _compare_order(notebook: Path, actual: list[str], expected: list[str], report: Report) -> None:
    place = {execution_id: index for index, execution_id in enumerate(expected)}
    told = dict.fromkeys(actual)
    places = [place[execution_id] for execution_id in told if execution_id in place]
    if places != sorted(places):
        report.add(Outcome.ALTERED, notebook, None, "The cells are not in the journal's order.")


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _execution_id(cell: dict[str, Any]) -> str:
    """Return the id of a cell's execution; in a clean notebook it is the cell's own id."""
    told = _dict(_dict(cell.get("metadata")).get("agent_exec"))
    return str(told.get("execution_id", cell.get("id")))


def _compare(
    notebook: Path, cell: dict[str, Any], expected: dict[str, _Cell], clean: bool, report: Report
) -> None:
    metadata = _dict(cell.get("metadata"))
    execution_id = _execution_id(cell)
    known = expected.pop(execution_id, None) if cell.get("cell_type") == "code" else None
    if known is None:
        kind, id = shown(cell.get("cell_type")), shown(cell.get("id"))
        report.add(
            Outcome.ALTERED,
            notebook,
            None,
            f"The {kind} cell {id} is not in the journal, or here twice.",
        )
        return
    outputs = cell.get("outputs")
    actual = {
        "id": cell.get("id"),
        "source": _text(cell.get("source")),
        "execution_count": cell.get("execution_count"),
        "outputs": [_plain(output) for output in outputs] if isinstance(outputs, list) else outputs,
    }
    differ = [name for name, value in known.told.items() if actual[name] != value]
    differ += [f"{shown(name)} (added)" for name in cell.keys() - _CELL_FIELDS]
    told = metadata.get("agent_exec")
    if not clean:
        kept = _without_sentences(_clean(_dict(told)), known.metadata)
        differ += differing(kept, known.metadata, ignored=known.unknown)
    elif told is not None:
        differ.append("agent_exec (added)")
    if clean and "outputs" in known.told:
        raised = any(output.get("output_type") == "error" for output in known.told["outputs"])
        tags = metadata.get("tags", [])
        if raised != (isinstance(tags, list) and "raises-exception" in tags):
            differ.append("tags")
    if differ:
        report.add(
            Outcome.ALTERED,
            notebook,
            known.n,
            f"The cell of execution {shown(execution_id)} differs from entry {known.n}: "
            f"{', '.join(differ)}.",
        )


def _without_sentences(metadata: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    """Leave out the unrecorded sentence about why an expression was not evaluated."""
    values = dict(_dict(metadata.get("values")))
    for name, value in _dict(known.get("values")).items():
        if value is _NOT_EVALUATED:
            values[name] = {**_dict(values.get(name)), "evalue": None}
    return {**metadata, "values": values} if values else metadata


_GOES_ON = {
    "dispatched": "running",
    "input_asked": "awaiting_input",
    "input_given": "running",
}
"""The status of an execution after each type of entry."""

_IN_CELLS = (
    "accepted",
    "approval_asked",
    "approved",
    "rejected",
    "dispatched",
    "input_asked",
    "input_given",
    "finished",
    "files_written",
    "late_output",
    "cell_written",
    "outputs_accepted",
    "outputs_discarded",
    "outputs_restored",
    "cell_discarded",
    "cell_restored",
    "reviewed",
)
"""Types of entries that become part of their execution's cell, if they name an execution."""

_ABOUT = {"session", "chain", "schema_version", "events", "environments"}
"""The fields of a notebook's `metadata.agent_exec`."""

_CELL_FIELDS = {"cell_type", "execution_count", "id", "metadata", "outputs", "source"}

_NOT_EVALUATED = {"status": "error", "ename": "NotEvaluated"}
"""The value of an expression that was not evaluated, without its sentence."""

_FROM_OPENED = ("agent", "title", "target", "username")


class _Journal:
    """The first entries of a journal, and the notebook that they should give."""

    def __init__(self, path: Path, length: int, report: Report) -> None:
        self.session: dict[str, Any] = {}
        self.kernel: dict[str, Any] = {}
        """The known parts of the notebook's `kernelspec` and `language_info`."""
        self.events: list[dict[str, Any]] = []
        self.environments: list[dict[str, Any] | None] = []
        """None for one that cannot be known, because a payload is missing."""
        self._n = 0
        self._blobs = path.parent / "blobs"
        self._cells: dict[str, _Cell] = {}
        self._asked_for: dict[str, str | None] = {}
        """The source of each execution; None if its payload is missing."""
        self._reviewed: dict[str, Any] = {}
        self._session_reviewed: tuple[int, Any] = (0, None)
        with path.open("rb") as file:
            for n, data in zip(range(length), file, strict=False):
                try:
                    line = parse_line(data)
                except ValueError:
                    continue  # the check of the chain reports this
                self._n = n
                try:
                    self._read(line)
                except _WRONG_SHAPE:
                    message = f"Entry {n} cannot be understood."
                    report.add(Outcome.ALTERED, path, n, message)

    def cells(self) -> dict[str, _Cell]:
        """Return the executions in order, each with what its cell must contain."""
        up_to, review = self._session_reviewed
        for execution_id, cell in self._cells.items():
            of_session = review if cell.metadata["seq"] <= up_to else None
            cell.metadata["review"] = self._reviewed.get(execution_id) or of_session
            if not any(cell.metadata["omitted"].values()):
                del cell.metadata["omitted"]
        return self._cells

    def _read(self, line: ParsedLine) -> None:
        entry = line.entry
        kind = entry.get("type")
        self._tell_event(line)
        if kind == "opened":
            self._open(entry)
        elif kind == "notebook_moved":
            self.session["path"] = entry["path"]
        elif kind == "closed":
            self.session.update(
                status="closed", close_reason=entry["reason"], closed_at=entry["at"]
            )
        elif kind == "kernel_started":
            self._start_kernel(entry)
        elif kind == "accepted":
            self._accept(line)
        elif kind in _GOES_ON:
            self._go_on(entry)
        elif kind == "finished":
            self._finish(line)
        elif kind == "files_written":
            self._change(self._cells[entry["execution_id"]], line, entry["files"])
        elif kind in ("approval_asked", "approved", "rejected"):
            self._decide(line)
        elif kind == "reviewed":
            self._review(line.entry)
        elif kind == "late_output":
            self._append(line)
        elif kind == "display_updated":
            self._update(line)
        elif kind in ("environment_found", "packages_changed"):
            self._change_environment(line)

    def _tell_event(self, line: ParsedLine) -> None:
        """Add an entry that is not part of an execution as an event."""
        entry = line.entry
        kind = entry.get("type")
        if kind in _IN_CELLS and entry.get("execution_id") is not None:
            return
        if kind == "display_updated" and entry.get("targets"):
            return
        event = {**entry, "hash": line.hash}
        if kind == "person_ran":
            with contextlib.suppress(_PayloadGoneError):
                event["source_text"] = self._payload(line, entry["source"]).decode(
                    "utf-8", "replace"
                )
        self.events.append(_clean(event))

    def _change_environment(self, line: ParsedLine) -> None:
        entry = line.entry
        try:
            if entry["type"] == "environment_found":
                told = json.loads(self._payload(line, entry["environment"]))
                told |= {"incarnation": entry["incarnation"], "changes": []}
                self.environments.append(_clean(told))
            elif (last := self.environments[-1]) is not None:
                packages = self._payload(line, entry["packages"]).decode().split("\n")
                change = {"execution_id": entry["execution_id"], "packages": packages}
                last["changes"] = [*last.get("changes", []), change]
        except _PayloadGoneError:
            self.environments.append(None)

    def _open(self, entry: dict[str, Any]) -> None:
        target = entry["target"]
        self.session = {
            **{name: _clean(entry.get(name)) for name in _FROM_OPENED},
            "id": entry["session_id"],
            "path": target.get("path") if target.get("kind") == "notebook" else None,
            "record_people": entry.get("record_people", "off"),
            "approval": entry.get("approval", "none"),
            "status": "open",
            "opened_at": entry["at"],
        }

    def _start_kernel(self, entry: dict[str, Any]) -> None:
        name, language = entry["kernel"]["name"], entry.get("language_info")
        spec = {"name": name, "display_name": entry.get("display_name") or name}
        self.kernel = {"kernelspec": spec}
        if language is not None and "name" in language:
            spec["language"] = language["name"]
            self.kernel["language_info"] = language
        self.kernel = _clean(self.kernel)

    def _accept(self, line: ParsedLine) -> None:
        entry = line.entry
        execution_id = entry["execution_id"]
        told = {"id": execution_id, "execution_count": None, "outputs": []}
        metadata = {
            "session_id": self.session.get("id"),
            "execution_id": execution_id,
            "seq": int(entry["seq"]),
            "agent": self.session.get("agent"),
            "username": self.session.get("username"),
            "status": "queued",
            "accepted_at": entry["at"],
            "outputs_complete": False,
            "init": True if entry.get("init") else None,
            "revises": entry.get("revises"),
            "restores": entry.get("restores"),
            "claim": entry.get("claim"),
            "omitted": {},
            "redacted": None,
            "approval": None,
        }
        cell = _Cell(self._n, told, metadata, set())
        self._cells[execution_id] = cell
        self._take_source(cell, line)
        self._asked_for[execution_id] = told.get("source")
        if entry.get("values") is not None:
            cell.unknown.add("values")  # until the execution has finished
            with contextlib.suppress(_PayloadGoneError):
                metadata["values"] = dict.fromkeys(
                    json.loads(self._payload(line, entry["values"])), _NOT_EVALUATED
                )

    def _go_on(self, entry: dict[str, Any]) -> None:
        metadata = self._cells[entry["execution_id"]].metadata
        metadata["status"] = _GOES_ON[entry["type"]]
        if entry["type"] == "dispatched":
            kernel = entry["kernel"]
            metadata.update(
                started_at=entry["at"], kernel_id=kernel["id"], incarnation=kernel["incarnation"]
            )

    def _finish(self, line: ParsedLine) -> None:
        entry = line.entry
        cell = self._cells[entry["execution_id"]]
        cell.told["execution_count"] = entry.get("execution_count")
        cell.metadata.update(
            status=entry["status"],
            reason=entry.get("reason"),
            entry_hash=line.hash,
            started_at=entry.get("started_at") or cell.metadata.get("started_at"),
            finished_at=entry["at"],
            outputs_complete=entry.get("outputs_complete", True),
            interrupt_ignored=entry.get("interrupt_ignored", False) or None,
        )
        self._cells[entry["execution_id"]] = cell._replace(n=self._n)
        self._append(line)
        self._end_asking(cell.metadata)
        if entry.get("variables") is not None:
            self._change(cell, line, entry["variables"])
        if entry.get("values") is not None:
            with contextlib.suppress(_PayloadGoneError):
                values = json.loads(self._payload(line, entry["values"]))
                cell.metadata["values"] = _clean(values)
                cell.unknown.discard("values")
        elif "values" in cell.metadata:
            cell.unknown.discard("values")

    def _change(self, cell: _Cell, line: ParsedLine, digest: str) -> None:
        """Add what an execution changed: its variables, or files in its folder."""
        try:
            changes = json.loads(self._payload(line, digest))
        except _PayloadGoneError:
            cell.unknown.add("changes")
            return
        cell.metadata["changes"] = {**cell.metadata.get("changes", {}), **_clean(changes)}

    def _decide(self, line: ParsedLine) -> None:
        """Read a request for approval, or a person's decision about it."""
        entry = line.entry
        cell = self._cells[entry["execution_id"]]
        told = cell.metadata
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
                "reasons": entry.get("reasons", []),
            }
        elif approval is not None:
            approval = {
                **approval,
                "status": entry["type"],
                "decided_at": entry["at"],
                "decided_by": _name(entry["by"]),
                "reason": entry.get("reason"),
            }
        told["approval"] = approval
        if "source" in entry:
            self._take_source(cell, line)
        if entry["type"] == "approved":
            told["status"] = "queued"
            asked_for = self._asked_for[entry["execution_id"]]
            if asked_for is None or "source" not in cell.told:
                cell.unknown.add("approval")
            elif approval is not None and asked_for != cell.told["source"]:
                approval["asked_source_sha256"] = _sha256(asked_for)

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
            self._session_reviewed = (int(entry.get("up_to", 0)), said)
        else:
            self._reviewed[execution_id] = said

    def _take_source(self, cell: _Cell, line: ParsedLine) -> None:
        cell.told.pop("source", None)
        cell.metadata["source_sha256"] = None
        cell.unknown.discard("source_sha256")
        try:
            source = self._payload(line, line.entry["source"]).decode("utf-8")
        except _PayloadGoneError:  # the source is then not compared
            cell.unknown.update(("source_sha256", "outputs_complete"))
        else:
            cell.told["source"] = source
            cell.metadata["source_sha256"] = _sha256(source)

    def _append(self, line: ParsedLine) -> None:
        cell = self._cells[line.entry["execution_id"]]
        omitted = cell.metadata["omitted"]
        for name, count in line.entry.get("omitted", {}).items():
            omitted[name] = omitted.get(name, 0) + count
        redacted = (cell.metadata["redacted"] or 0) + line.entry.get("redacted", 0)
        cell.metadata["redacted"] = redacted or None
        try:
            if "outputs" in cell.told:
                cell.told["outputs"] = cell.told["outputs"] + self._outputs(line)
        except _PayloadGoneError:
            self._lose_outputs(cell)

    def _lose_outputs(self, cell: _Cell) -> None:
        cell.told.pop("outputs", None)
        cell.unknown.add("outputs_complete")

    def _update(self, line: ParsedLine) -> None:
        for target in line.entry["targets"]:
            cell = self._cells[target["execution_id"]]
            told = cell.told
            if target["index"] >= len(told.get("outputs", ())):
                continue
            try:
                (update,) = self._outputs(line)
                told["outputs"][target["index"]].update(
                    data=update.get("data", {}), metadata=update.get("metadata", {})
                )
            except _PayloadGoneError:
                self._lose_outputs(cell)

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
        blob = self._blobs / digest
        if not re.fullmatch("[0-9a-f]{64}", digest) or not blob.is_file():
            raise _PayloadGoneError
        return blob.read_bytes()


def _sha256(source: str) -> str:
    return hashlib.sha256(source.encode("utf-8")).hexdigest()


def _name(by: dict[str, Any]) -> str:
    return by.get("display_name") or by.get("username") or "the server"


def _value(data: bytes, encoding: str) -> Any:
    if encoding == "base64":
        return base64.b64encode(data).decode("ascii")
    return data.decode("utf-8") if encoding == "text" else json.loads(data)


def _plain(output: Any) -> Any:
    """Return an output in one form, whatever tool wrote the notebook: joined text, strict JSON."""
    plain = _clean(output)
    if not isinstance(plain, dict):
        return plain
    if "text" in plain:
        plain["text"] = _text(plain["text"])
    if isinstance(plain.get("data"), dict):
        plain["data"] = {
            mimetype: value if mimetype.endswith("json") else _text(value)
            for mimetype, value in plain["data"].items()
        }
    return plain


def _text(value: Any) -> Any:
    """Return text as one string; nbformat may have split it into lines."""
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return "".join(value)
    return value


def _clean(value: Any) -> Any:
    """Return a value without what strict JSON cannot hold: NaN, lone surrogates."""
    if isinstance(value, dict):
        return {_clean(key): _clean(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_clean(item) for item in value]
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
