from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from typing import get_args, get_type_hints

import nbformat
import pytest

from jupyter_agent_exec.journal import chain, checked_chains, verify
from jupyter_agent_exec.journal.findings import Outcome
from jupyter_agent_exec.journal.verify import verify_history, verify_journal, verify_session
from jupyter_agent_exec.journal.verify_notebook import verify_notebook as check_notebook
from jupyter_agent_exec.records import (
    JOURNAL_ENTRY,
    OutputRef,
    Rejected,
    digest_of,
    payload_fields,
)
from jupyter_agent_exec.types import Digest
from tests.journal.recorded import (
    AT,
    PERSON,
    PNG,
    add_late,
    add_update,
    approved,
    ask,
    closed,
    display,
    finished,
    kernel_started,
    new_session_id,
    opened,
    reviewed,
    run,
    stream,
)


@pytest.fixture
def made(history, folder):
    """Entries: 0 opened, 1 kernel, 2-10 three executions, 11 late, 12 update, 13 closed."""
    session = history.open_session(opened())
    session.append([kernel_started()])
    first = run(session, 1, "print(1)", [stream("one\n")])
    run(session, 2, "plot()", [display({"image/png": PNG, "text/html": "<b>" * 4000})])
    run(session, 3, "1/0", [stream("three\n", "stderr")], "error")
    add_late(session, first, [display({"text/plain": "late"})])
    add_update(session, first, display({"text/plain": "updated"}), OutputRef(first, 1))
    session.close(closed())
    return folder / "sessions" / session.session_id / "journal.jsonl"


def read(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def found(report):
    return [(finding.outcome, finding.n) for finding in report.findings]


OWN = ("findings", "checked_chains", "checked_ledgers", "verify")
DEFINITIONS = ("chain", "heads", "models", "records", "text.counts")


@pytest.mark.parametrize("name", OWN)
def test_it_shares_nothing_with_the_writer_but_definitions(name):
    tree = ast.parse(Path(verify.__file__).with_name(f"{name}.py").read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            assert node.module in (*OWN, *DEFINITIONS)
        elif isinstance(node, ast.ImportFrom):
            assert node.module.partition(".")[0] in sys.stdlib_module_names
        elif isinstance(node, ast.Import):
            assert all(name.name in sys.stdlib_module_names for name in node.names)


NO_PAYLOADS = {("accepted", "body_sha256"), ("file_uploaded", "sha256"), ("file_deleted", "sha256")}
"""Digests of what is not kept."""


def test_it_knows_the_payloads_of_each_kind_of_entry():
    digests = {
        (kind.__struct_config__.tag, name)
        for kind in get_args(JOURNAL_ENTRY)
        for name, type_ in get_type_hints(kind).items()
        if Digest in (type_, *get_args(type_))
    }
    known = {
        (kind.__struct_config__.tag, name)
        for kind in get_args(JOURNAL_ENTRY)
        for name in payload_fields(kind)
    }
    assert known == digests - NO_PAYLOADS


def test_only_decisions_and_what_becomes_of_cells_may_follow_a_sessions_end():
    may = {kind.__struct_config__.tag for kind in get_args(JOURNAL_ENTRY) if kind.follows_end}
    decisions = {
        "outputs_accepted",
        "edits_deciding",
        "edits_decided",
        "round_undone",
        "erased",
        "reviewed",
        "undone",
    }
    assert may == decisions | {"cell_written", "notebook_moved"}


def test_it_knows_the_payload_that_only_0_1_wrote_of_a_restore():
    entry = {"type": "restore_ended", "failed": None, "variables": "0" * 64}
    assert checked_chains._named_payloads(entry) == ["0" * 64]


def test_a_whole_history_is_whole(made, folder):
    report = verify_history(folder)
    assert (report.outcome, report.findings) == (Outcome.WHOLE, [])
    assert report.journals == 2
    assert report.entries == len(read(made)) + 3
    assert verify_session(folder, made.parent.name).outcome is Outcome.WHOLE


def test_exit_codes_are_distinct_and_leave_2_to_usage():
    assert {outcome.name: int(outcome) for outcome in Outcome} == {
        "WHOLE": 0,
        "ALTERED": 1,
        "TRUNCATED": 3,
        "TORN": 4,
        "MISSING": 5,
    }


@pytest.mark.parametrize(
    "alter",
    [
        lambda line: line.replace(b'"ada"', b'"eve"'),
        lambda line: line.replace(b'"hash":"' + line[9:10], b'"hash":"' + bytes([line[9] ^ 1])),
        lambda line: line.replace(b'"n":', b'"n":1'),
        lambda line: line.replace(b"09:00", b"10:00"),
        lambda line: line.replace(b'"type"', b'"Type"'),
        lambda line: line[:50] + b"\n",
        lambda line: b"\n",
        lambda line: bytes(len(line) - 1) + b"\n",
    ],
)
def test_an_altered_line_is_found(made, alter):
    lines = read(made)
    for n, line in enumerate(lines[:-1]):
        assert alter(line) != line
        made.write_bytes(b"".join([*lines[:n], alter(line), *lines[n + 1 :]]))
        assert found(verify_journal(made))[0] == (Outcome.ALTERED, n)


def test_only_the_altered_line_is_blamed(made):
    lines = read(made)
    for n, old, new in ((4, b"09:00", b"10:00"), (8, lines[8][9:19], b"0123456789")):
        lines[n] = lines[n].replace(old, new, 1)
    made.write_bytes(b"".join(lines))
    assert found(verify_journal(made)) == [(Outcome.ALTERED, 4), (Outcome.ALTERED, 8)]


def test_a_line_taken_out_put_in_or_moved_is_found(made):
    lines = read(made)
    for n in range(1, 13):
        made.write_bytes(b"".join(lines[:n] + lines[n + 1 :]))
        assert found(verify_journal(made))[0] == (Outcome.ALTERED, n)
        made.write_bytes(b"".join([*lines[:n], lines[n], *lines[n:]]))
        assert found(verify_journal(made))[0] == (Outcome.ALTERED, n + 1)
        made.write_bytes(b"".join([*lines[: n - 1], lines[n], lines[n - 1], *lines[n + 1 :]]))
        assert found(verify_journal(made))[0] == (Outcome.ALTERED, n - 1)


def test_a_payload_altered_on_its_line_is_found(made):
    content = made.read_bytes()
    assert b'"print(1)"' in content
    made.write_bytes(content.replace(b'"print(1)"', b'"print(2)"'))
    assert found(verify_journal(made)) == [(Outcome.ALTERED, 2)]


def test_a_payload_taken_from_its_line_is_missing_not_altered(made):
    lines = read(made)
    parsed = chain.parse_line(lines[2])
    lines[2] = chain.format_line(parsed.hash, parsed.canonical, {})
    made.write_bytes(b"".join(lines))
    assert found(verify_journal(made)) == [(Outcome.MISSING, 2)]


def test_a_payload_that_no_entry_names_is_found(made):
    lines = read(made)
    parsed = chain.parse_line(lines[3])
    lines[3] = chain.format_line(
        parsed.hash, parsed.canonical, {digest_of(b"smuggled"): "smuggled"}
    )
    made.write_bytes(b"".join(lines))
    assert found(verify_journal(made)) == [(Outcome.ALTERED, 3)]


def test_blobs_are_checked_too(made):
    image, *others = sorted((made.parent / "blobs").iterdir())
    assert len(others) == 1
    content = image.read_bytes()
    image.write_bytes(content + b"x")
    assert found(verify_journal(made)) == [(Outcome.ALTERED, 7)]
    image.unlink()
    assert found(verify_journal(made)) == [(Outcome.MISSING, 7)]


def test_a_line_cut_in_its_middle_is_torn(made):
    content = made.read_bytes()
    made.write_bytes(content[:-10])
    assert verify_journal(made).outcome is Outcome.TORN


def test_a_truncated_journal_is_found_by_a_known_head(made, folder):
    lines = read(made)
    head = chain.parse_line(lines[-1]).hash
    assert verify_journal(made, head=head).outcome is Outcome.WHOLE
    assert verify_journal(made, head=chain.parse_line(lines[3]).hash).outcome is Outcome.WHOLE
    assert verify_history(folder, head=head).outcome is Outcome.WHOLE
    made.write_bytes(b"".join(lines[:-2]))
    assert verify_journal(made).outcome is Outcome.WHOLE
    assert found(verify_journal(made, head=head)) == [(Outcome.TRUNCATED, len(lines) - 2)]
    assert verify_history(folder, head=head).outcome is Outcome.TRUNCATED


def test_the_ledger_finds_a_closed_journal_that_was_cut_or_gone_on_with(made, folder):
    lines = read(made)
    made.write_bytes(b"".join(lines[:-1]))
    assert found(verify_history(folder)) == [(Outcome.TRUNCATED, len(lines) - 1)]
    last = chain.parse_line(lines[-1])
    canonical = chain.canonical({**last.entry, "n": len(lines)})
    more = chain.format_line(chain.link(last.hash, canonical), canonical, {})
    made.write_bytes(b"".join([*lines, more]))
    assert verify_journal(made).outcome is Outcome.WHOLE
    assert found(verify_session(folder, made.parent.name)) == [(Outcome.ALTERED, len(lines))]


def test_a_journal_that_was_written_anew_is_not_what_the_ledger_knows(made, folder):
    previous, lines = chain.GENESIS, []
    for line in map(chain.parse_line, read(made)):
        canonical = line.canonical.replace(b'"ada"', b'"eve"')
        previous = chain.link(previous, canonical)
        lines.append(chain.format_line(previous, canonical, line.payloads, line.salts))
    made.write_bytes(b"".join(lines))
    assert verify_journal(made).outcome is Outcome.WHOLE
    assert found(verify_history(folder)) == [(Outcome.ALTERED, len(lines) - 1)]


def test_a_missing_journal_is_known_from_the_ledger(made, folder):
    made.unlink()
    assert found(verify_history(folder)) == [(Outcome.MISSING, None)]
    assert verify_session(folder, made.parent.name).outcome is Outcome.MISSING
    assert verify_session(folder, new_session_id()).outcome is Outcome.MISSING


def test_a_journal_that_no_ledger_lists_is_told(made, folder):
    (ledger,) = folder.glob("ledger-*.jsonl")
    ledger.unlink()
    told = {finding.message: finding.outcome for finding in verify_history(folder).findings}
    assert told["No ledger lists this session."] is Outcome.MISSING
    assert told["The ledger of this head is gone."] is Outcome.MISSING


def test_another_sessions_journal_is_found(made, folder, history):
    other = history.open_session(opened())
    other.close(closed())
    path = folder / "sessions" / other.session_id / "journal.jsonl"
    path.write_bytes(made.read_bytes())
    assert verify_session(folder, other.session_id).outcome is Outcome.ALTERED


def test_an_altered_ledger_is_found(made, folder):
    (ledger,) = folder.glob("ledger-*.jsonl")
    ledger.write_bytes(ledger.read_bytes().replace(b"1.2.3", b"1.2.4"))
    assert found(verify_history(folder)) == [(Outcome.ALTERED, 0)]


# -- notebooks -------------------------------------------------------------------------------------


@pytest.fixture
def notebook(made, history, tmp_path):
    path = tmp_path / "export.ipynb"
    path.write_text("".join(history.notebook(made.parent.name)), "utf-8")
    return path


def test_an_export_agrees_with_its_journal_also_when_saved_again(made, notebook):
    assert check_notebook(notebook, made).findings == []
    document = nbformat.read(notebook, as_version=4)
    document.cells[0].metadata["tags"] = ["mine"]
    document.metadata["mine"] = 1
    nbformat.write(document, notebook)
    assert '"<b><b>' in notebook.read_text("utf-8")
    assert check_notebook(notebook, made).findings == []


@pytest.mark.parametrize("kind", ["markdown", "raw"])
def test_a_cell_that_somebody_inserted_is_told(made, notebook, kind):
    document = nbformat.read(notebook, as_version=4)
    remark = getattr(nbformat.v4, f"new_{kind}_cell")("✅ approved by Ada", id="remark")
    document.cells.insert(0, remark)
    nbformat.write(document, notebook)
    assert [finding.message for finding in check_notebook(notebook, made).findings] == [
        f"The {kind} cell remark is not in the journal, or here twice."
    ]


def test_strange_values_agree(history, session, tmp_path):
    run(
        session, 1, "1", [display({"application/json": [float("nan"), "\ud800"]}), stream("\udfff")]
    )
    path = tmp_path / "export.ipynb"
    path.write_text("".join(history.notebook(session.session_id)), "utf-8")
    assert check_notebook(path, history.journal_path(session.session_id)).findings == []


def test_an_export_agrees_with_a_journal_that_went_on(history, session, tmp_path):
    run(session, 1, "1", [])
    path = tmp_path / "export.ipynb"
    path.write_text("".join(history.notebook(session.session_id)), "utf-8")
    run(session, 2, "2", [])
    assert check_notebook(path, history.journal_path(session.session_id)).findings == []


@pytest.mark.parametrize(
    ("change", "n"),
    [
        (lambda cells: cells[0].update(source="print(2)"), 4),
        (lambda cells: cells[0]["outputs"][0].update(text="two\n"), 4),
        (lambda cells: cells[0]["outputs"][1]["data"].update({"text/plain": "late"}), 4),
        (lambda cells: cells[1]["outputs"][0]["data"].update({"image/png": "AAAA"}), 7),
        (lambda cells: cells[1]["outputs"].append(stream("more")), 7),
        (lambda cells: cells[2].update(outputs=[]), 10),
        (lambda cells: cells[2].update(execution_count=7), 10),
        (lambda cells: cells[2].update(id="x"), 10),
        (lambda cells: cells[2]["metadata"]["agent_exec"].update(status="ok"), 10),
        (lambda cells: cells[2]["metadata"]["agent_exec"].update(execution_count=7), 10),
        (lambda cells: cells[2]["metadata"]["agent_exec"].update(entry_hash="0" * 64), 10),
        (lambda cells: cells.pop(1), 7),
        (lambda cells: cells.append(dict(cells[0])), None),
        (lambda cells: cells.append({"cell_type": "code", "source": "x", "metadata": {}}), None),
    ],
)
def test_a_changed_cell_is_found(made, notebook, change, n):
    document = json.loads(notebook.read_text("utf-8"))
    change(document["cells"])
    notebook.write_text(json.dumps(document), "utf-8")
    assert found(check_notebook(notebook, made)) == [(Outcome.ALTERED, n)]


@pytest.fixture
def decided(history, session, folder):
    """Entries: 0 opened, 1-4 changed and approved, 5-8 rejected, 9 and 10 reviews, 11 closed."""
    changed = ask(session, 1, "asked")
    entry, payload = approved(changed, "changed")
    end, payloads = finished(changed, [])
    session.append([entry, end], [payload, *payloads])
    not_run = ask(session, 2, "rm()", before="ls()")
    no = Rejected(at=AT, by=PERSON, execution_id=not_run, reason="No.")
    session.append([no, finished(not_run, [], "rejected")[0]])
    session.append([reviewed(changed, "flagged", "why?"), reviewed(not_run)])
    session.close(closed())
    return history.journal_path(session.session_id)


@pytest.fixture
def export(history, decided, tmp_path):
    path = tmp_path / "decided.ipynb"
    path.write_text("".join(history.notebook(decided.parent.name)), "utf-8")
    return path


def test_an_export_tells_what_people_decided(decided, export, folder):
    assert verify_history(folder).outcome is Outcome.WHOLE
    assert check_notebook(export, decided).findings == []
    document = json.loads(export.read_text("utf-8"))
    changed, not_run = (cell["metadata"]["agent_exec"] for cell in document["cells"])
    assert (changed["review"]["verdict"], changed["approval"]["status"]) == ("flagged", "approved")
    assert (not_run["review"]["verdict"], not_run["approval"]["reason"]) == ("approved", "No.")
    events = document["metadata"]["agent_exec"]["events"]
    assert [event["type"] for event in events] == ["opened", "closed"]


@pytest.mark.parametrize(
    ("change", "n"),
    [
        (lambda changed, _: changed["review"].update(verdict="approved"), 4),
        (lambda changed, _: changed["review"].update(by="Ada"), 4),
        (lambda changed, _: changed.update(review=None), 4),
        (lambda _, not_run: not_run["review"].update(verdict="flagged"), 8),
        (lambda changed, _: changed["approval"].update(asked_source_sha256=None), 4),
        (lambda changed, _: changed["approval"].update(decided_by="Ada"), 4),
        (lambda changed, _: changed.pop("approval"), 4),
        (lambda _, not_run: not_run["approval"].update(status="approved", reason=None), 8),
    ],
)
def test_a_changed_decision_is_found(decided, export, change, n):
    document = json.loads(export.read_text("utf-8"))
    change(*(cell["metadata"]["agent_exec"] for cell in document["cells"]))
    export.write_text(json.dumps(document), "utf-8")
    assert found(check_notebook(export, decided)) == [(Outcome.ALTERED, n)]


def test_a_review_of_a_whole_session_in_an_export_of_0_1_is_known(history, session, tmp_path):
    run(session, 1, "1", [])
    session.append([reviewed(None, "approved", "all fine", up_to=1)])
    session.close(closed())
    journal, export = history.journal_path(session.session_id), tmp_path / "old.ipynb"
    document = json.loads("".join(history.notebook(session.session_id)))
    about = document["cells"][0]["metadata"]["agent_exec"]
    about["review"] = {
        "verdict": "approved",
        "comment": "all fine",
        "by": "Grace",
        "at": AT,
        "whole_session": True,
    }
    export.write_text(json.dumps(document), "utf-8")
    assert found(check_notebook(export, journal)) == []
    about["review"]["verdict"] = "flagged"
    export.write_text(json.dumps(document), "utf-8")
    assert found(check_notebook(export, journal)) == [(Outcome.ALTERED, 3)]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b'"verdict":"flagged"', b'"verdict":"approved"'),
        (b'"type":"rejected"', b'"type":"approved"'),
        (b'"reason":"No."', b'"reason":"Yes"'),
        (b'"expires_at":"2026', b'"expires_at":"2027'),
    ],
)
def test_a_decision_that_was_altered_in_the_journal_is_found(decided, folder, before, after):
    content = decided.read_bytes()
    assert before in content
    decided.write_bytes(content.replace(before, after))
    assert verify_history(folder).outcome is Outcome.ALTERED


@pytest.mark.parametrize("text", ["asked", "changed", "ls()"])
def test_a_source_that_was_decided_about_is_a_payload_that_is_checked(decided, folder, text):
    content = decided.read_text("utf-8")
    decided.write_text(content.replace(f'"{text}"', '"other"'), "utf-8")
    assert verify_history(folder).outcome is Outcome.ALTERED


def test_cells_in_another_order_are_found(made, notebook):
    document = json.loads(notebook.read_text("utf-8"))
    document["cells"].reverse()
    notebook.write_text(json.dumps(document), "utf-8")
    assert check_notebook(notebook, made).outcome is Outcome.ALTERED


def test_a_journal_shorter_than_the_export_is_truncated(made, notebook):
    made.write_bytes(b"".join(read(made)[:-1]))
    assert check_notebook(notebook, made).outcome is Outcome.TRUNCATED


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"cells":[],"metadata":{}}'])
def test_what_is_no_export_is_told(made, notebook, text):
    notebook.write_text(text, "utf-8")
    assert check_notebook(notebook, made).outcome is Outcome.ALTERED


def test_a_missing_payload_does_not_blame_the_cell(made, notebook):
    for blob in (made.parent / "blobs").iterdir():
        blob.unlink()
    assert check_notebook(notebook, made).outcome is Outcome.MISSING
