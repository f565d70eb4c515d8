"""Clean exports, in the hands of the tools that they are made for."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import jupytext
import nbformat
import papermill
import pytest

from jupyter_agent_exec.journal.findings import Outcome
from jupyter_agent_exec.journal.verify_notebook import verify_notebook
from tests.journal.recorded import (
    closed,
    display,
    kernel_started,
    run,
    stream,
)
from tests.journal.test_notebook import SCHEMA

ERROR = {"output_type": "error", "ename": "ZeroDivisionError", "evalue": "no", "traceback": []}
RAISES = {"tags": ["raises-exception"]}
OURS: dict[str, Any] = {"agent_exec": {}}
MARKUP = "<b>\n</b>\x1d\u2028x"


@pytest.fixture
def journal(history, session) -> Path:
    """The journal of a session with two lines, an error, and an output of each kind."""
    session.append([kernel_started()])
    run(session, 1, "a = 1\nprint(a)\n", [stream("1\n2\n")])
    run(session, 2, "1 / 0", [ERROR], "error")
    data = {"text/html": MARKUP, "application/json": {"b": [], "a": 1.5}, "image/png": "iVBO\n"}
    run(session, 3, "a + 1", [display(data), stream("é\ud800")])
    run(session, 4, "", [])
    session.close(closed())
    return history.journal_path(session.session_id)


@pytest.fixture
def export(history, journal, tmp_path) -> Path:
    path = tmp_path / "clean.ipynb"
    path.write_text("".join(history.notebook(journal.parent.name, clean=True)), "utf-8")
    return path


def read(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def test_it_is_valid_and_what_nbformat_would_write(export, tmp_path):
    notebook = nbformat.read(export, as_version=nbformat.NO_CONVERT)
    nbformat.validate(notebook)
    nbformat.write(notebook, tmp_path / "again.ipynb")
    assert (tmp_path / "again.ipynb").read_bytes() == export.read_bytes()
    jsonschema.Draft202012Validator(SCHEMA).validate(read(export))


def test_one_without_cells_is_too(history, session, tmp_path):
    path = tmp_path / "empty.ipynb"
    path.write_text("".join(history.notebook(session.session_id, clean=True)), "utf-8")
    notebook = nbformat.read(path, as_version=nbformat.NO_CONVERT)
    nbformat.write(notebook, tmp_path / "again.ipynb")
    assert (tmp_path / "again.ipynb").read_bytes() == path.read_bytes()


def test_its_cells_lead_to_the_record_and_tag_errors(history, journal, export):
    document = read(export)
    assert [cell["metadata"] for cell in document["cells"]] == [
        {}, {"tags": ["raises-exception"]}, {}, {},
    ]  # fmt: skip
    found = [history.execution(cell["id"]).seq for cell in document["cells"]]
    assert found == [1, 2, 3, 4]
    about = document["metadata"]["agent_exec"]
    assert about.keys() == {"schema_version", "session_id", "chain"}
    assert about["session_id"] == journal.parent.name


def test_it_costs_no_metadata(history, journal, export):
    def bytes_of(text: str) -> int:
        cells = json.loads(text)["cells"]
        return sum(len(json.dumps(cell["metadata"])) for cell in cells) // len(cells)

    plain = "".join(history.notebook(journal.parent.name))
    assert bytes_of(export.read_text("utf-8")) < 20 < 500 < bytes_of(plain)


def test_it_agrees_with_the_record_beside_it(journal, export):
    assert verify_notebook(export, journal).findings == []
    document = nbformat.read(export, as_version=4)
    nbformat.write(document, export)
    assert verify_notebook(export, journal).findings == []


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda document: document["cells"][0].update(source="print(2)"), "source"),
        (lambda document: document["cells"][0]["outputs"][0].update(text="2\n"), "outputs"),
        (lambda document: document["cells"][1].update(metadata={}), "tags"),
        (lambda document: document["cells"][0].update(metadata=RAISES), "tags"),
        (lambda document: document["cells"][0].update(metadata=OURS), "agent_exec (added)"),
        (lambda document: document["cells"][2].update(execution_count=9), "execution_count"),
        (lambda document: document["cells"].pop(0), "is missing"),
        (lambda document: document["cells"].reverse(), "not in the journal's order"),
        (lambda document: document["cells"][0].update(id="x"), "not in the journal"),
        (lambda document: document["metadata"]["kernelspec"].update(name="r"), "kernelspec"),
        (lambda document: document["metadata"]["agent_exec"].update(by="Ada"), "by (added)"),
        (
            lambda document: document["metadata"]["agent_exec"].update(session_id="s_1"),
            "agent_exec.session_id",
        ),
    ],
)  # fmt: skip
def test_what_was_changed_in_it_is_told(journal, export, change, named):
    document = read(export)
    change(document)
    export.write_text(json.dumps(document), "utf-8")
    report = verify_notebook(export, journal)
    assert report.outcome is Outcome.ALTERED
    assert named in " ".join(finding.message for finding in report.findings)


# -- other programs --------------------------------------------------------------------------------


def test_nbconvert_runs_it_to_its_end(export, tmp_path):
    command = [
        sys.executable, "-m", "nbconvert", "--to", "notebook", "--execute", str(export),
        "--output", "ran.ipynb",
    ]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    ran = nbformat.read(tmp_path / "ran.ipynb", as_version=4)
    assert ran.cells[2].outputs[0].data["text/plain"] == "2"


def test_papermill_reports_a_recorded_error_at_the_end(export, tmp_path):
    target = tmp_path / "ran.ipynb"
    with pytest.raises(papermill.PapermillExecutionError, match="ZeroDivisionError"):
        papermill.execute_notebook(export, target, progress_bar=False)
    ran = {cell.id: cell for cell in nbformat.read(target, as_version=4).cells}
    cells = [ran[cell["id"]] for cell in read(export)["cells"]]
    assert cells[2].outputs[0].data["text/plain"] == "2"
    assert [cell.metadata.papermill.status for cell in cells[:3]] == ["completed"] * 3


def test_jupytext_takes_it_there_and_back(export, tmp_path):
    notebook = jupytext.read(export)
    jupytext.write(notebook, tmp_path / "clean.py", fmt="py:percent")
    text = (tmp_path / "clean.py").read_text("utf-8")
    assert '# %% tags=["raises-exception"]\n1 / 0\n' in text
    again = jupytext.read(tmp_path / "clean.py")
    assert [cell.source for cell in again.cells] == [
        cell.source.rstrip("\n") for cell in notebook.cells
    ]
