"""Widgets, papermill's and nbclient's own notebooks: the record has what nbclient would store."""

from __future__ import annotations

import json
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import nbformat
import pytest
import zmq
from nbclient import NotebookClient
from nbclient.output_widget import OutputWidget
from nbformat.v4 import new_code_cell, new_notebook

from jupyter_agent_exec.journal.findings import Outcome
from jupyter_agent_exec.journal.verify_notebook import verify_notebook
from jupyter_agent_exec.text.widgets import STATE, VIEW
from tests.server_process import server_process

PAPERMILL = [
    "broken", "broken1", "broken2", "complex_parameters", "line_magic_error", "nb_version_4.4",
    "no_parameters", "report_mode_test", "result_no_exec", "simple_execute", "sysexit", "sysexit0",
    "sysexit1", "systemexit", "test_logging", "test_notebooknode_io",
]  # fmt: skip
"""Those that neither wait, read files nor end the kernel."""

ROOT = Path(__file__).parents[2]

NBCLIENT = [
    "Check History in Memory", "Clear Output", "Empty Cell", "Error", "Factorials", "HelloWorld",
    "Inline Image", "JupyterWidgets", "Other Comms", "Output", "SVG", "Skip Exceptions",
    "Skip Exceptions with Cell Tags", "Skip Execution with Cell Tag", "Unicode", "UnicodePy3",
    "update-display-id",
]  # fmt: skip
"""Those that neither wait, ask for input nor end the kernel."""

WIDGETS = {
    "setup": "import ipywidgets as w\nfrom IPython.display import *\nout = w.Output()\nout",
    "captured": "with out:\n    print('in')\n    display(1)\nprint('beside')",
    "read in the kernel": "[each['output_type'] for each in out.outputs]",
    "an error is captured": "with out:\n    1 / 0",
    "cleared": "with out:\n    clear_output()\n    print('again')",
    "cleared by the next": "with out:\n    clear_output(wait=True)\n    print('and again')",
    "shown at once": "more = w.Output()\nwith more: print('first')\nmore",
    "appended in the kernel": "more.append_stdout('second\\n')\n"
    "more.append_display_data(HTML('x'))",
    "nested": "inner = w.Output()\nwith out:\n    display(inner)\n    with inner:\n"
    "        print('inner')\n    print('outer')",
    "two in turn": "one, two = w.Output(), w.Output()\nwith one: print(1)\nwith two: print(2)\n"
    "with one: print(3)\nprint(4)\nw.VBox([one, two])",
    "slider": "slider = w.IntSlider(value=1, description='n'); slider",
    "moved": "slider.value = 7; never = w.Text('not shown')",
    "binary": "w.Image(value=b'GIF89a' * 9)",
    "linked": "w.HBox([slider, w.Label('text'), w.HTML('<b>bold</b>')])",
    "progress": "from tqdm.notebook import tqdm\nfor _ in tqdm(range(4), desc='Work'): pass",
    "interact": "w.interactive(lambda x: print('got', x), x=3)",
    "cut in the output": "with one: print('a'); clear_output(); print('b')",
}  # fmt: skip


pytestmark = [  # nbclient's own
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]


class Ran(NamedTuple):
    outputs: list[list[Any]]
    """The outputs of each cell."""
    models: dict[str, Any]
    """The widgets' models."""
    texts: list[str]
    """Our texts for language models."""


class HeedingOutputWidget(OutputWidget):
    """nbclient's, which misses an answer that comes while it sends: its loop is told only once."""

    def send(self, *args: Any, **more: Any) -> None:
        super().send(*args, **more)
        self.kernel_client.shell_channel.socket.get(zmq.EVENTS)


def papermill_notebooks() -> Path:
    found = find_spec("papermill")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent / "tests" / "notebooks"


def code(folder: Path, names: list[str]) -> list[str]:
    """Return the sources of notebooks' code cells; the names are without `.ipynb`."""
    return [
        cell.source
        for name in names
        for cell in nbformat.read(folder / f"{name}.ipynb", as_version=4).cells
        if cell.cell_type == "code"
    ]


@pytest.fixture(scope="module")
def sources() -> list[str]:
    return [
        *WIDGETS.values(),
        *code(papermill_notebooks(), PAPERMILL),
        *code(ROOT / ".make" / "nbclient" / "files", NBCLIENT),
    ]


@pytest.fixture(scope="module")
def theirs(sources: list[str], tmp_path_factory: pytest.TempPathFactory) -> Ran:
    notebook = new_notebook(cells=[new_code_cell(source) for source in sources])
    with pytest.MonkeyPatch.context() as patch:  # no history on disk that kernels share
        patch.setenv("IPYTHONDIR", str(tmp_path_factory.mktemp("ipython")))
        client = NotebookClient(notebook, kernel_name="python3", allow_errors=True, timeout=60)
        client.widget_registry["@jupyter-widgets/output"]["OutputModel"] = HeedingOutputWidget
        client.execute()
    document = json.loads(nbformat.writes(notebook))
    outputs = [cell["outputs"] for cell in document["cells"]]
    return Ran(outputs, document["metadata"]["widgets"][STATE]["state"], [])


class Recorded(NamedTuple):
    folder: Path
    session: str
    ran: Ran


@pytest.fixture(scope="module")
def recorded(sources: list[str], tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """The record of the same sources, exported by a later server."""
    folder = tmp_path_factory.mktemp("widgets")
    with server_process(folder) as server:
        session = server.open()
        texts = [server.run(session, source, wait=60).json()["text"] for source in sources]
    with server_process(folder) as server:
        for name, query in (("plain", ""), ("clean", "?clean=true")):
            text = server.ask("GET", f"sessions/{session}/notebook{query}").text
            (folder / f"{name}.ipynb").write_text(text, "utf-8")
    document = json.loads((folder / "plain.ipynb").read_text("utf-8"))
    outputs = [cell["outputs"] for cell in document["cells"]]
    assert "widgets_left_out" not in document["metadata"]["agent_exec"]
    models = document["metadata"]["widgets"][STATE]["state"]
    return Recorded(folder, session, Ran(outputs, models, texts))


def comparable(value: Any, models: dict[str, Any]) -> Any:
    """Return a value with models in place of their ids, without what differs between processes."""
    if isinstance(value, str):
        if value.startswith("IPY_MODEL_"):
            return comparable(models[value.removeprefix("IPY_MODEL_")], models)
        value = re.sub(r"0x[0-9a-f]+|ipykernel_\d+|\d\d:\d\d\S*|[\d.?]+(it/s|s/it)", "…", value)
        return re.sub(r"[\d-]+ [\d:,]+", "…", value)
    if isinstance(value, list) and all(is_text(item) for item in value):
        return comparable("".join(value), models)  # nbformat splits texts into lines
    if isinstance(value, list):
        return [comparable(item, models) for item in merged(value)]
    if isinstance(value, dict):
        if VIEW in value:
            value = {**value, VIEW: models[value[VIEW]["model_id"]]}
        return {key: comparable(item, models) for key, item in value.items()}
    return value


def is_text(value: Any) -> bool:
    return isinstance(value, str) and not value.startswith("IPY_MODEL_")


def merged(outputs: list[Any]) -> list[Any]:
    """Merge neighbouring streams of one name, with their lines as one text."""
    result: list[Any] = []
    for output in outputs:
        if isinstance(output, dict) and output.get("output_type") == "stream":
            output = {**output, "text": "".join(output["text"])}
            last = result[-1] if result else {}
            if last.get("name") == output["name"]:
                last["text"] += output["text"]
                continue
        result.append(output)
    return result


def test_each_cell_has_the_outputs_and_widgets_that_nbclient_gives_it(
    recorded: Recorded, theirs: Ran, sources: list[str]
) -> None:
    ours = recorded.ran
    for source, one, other in zip(sources, ours.outputs, theirs.outputs, strict=True):
        # nbclient leaves out an error that only a reply tells.
        told = [output for output in one if output.get("traceback") != []]
        assert comparable(told, ours.models) == comparable(other, theirs.models), source


def test_the_export_has_only_models_that_are_shown_and_their_parts(
    recorded: Recorded, theirs: Ran
) -> None:
    assert 10 < len(recorded.ran.models) < len(theirs.models)
    assert all(model["model_module"] for model in recorded.ran.models.values())


def test_an_export_with_widgets_verifies_and_one_with_another_state_does_not(
    recorded: Recorded,
) -> None:
    journal = recorded.folder / "history" / "sessions" / recorded.session / "journal.jsonl"
    for name in ("plain", "clean"):
        path = recorded.folder / f"{name}.ipynb"
        nbformat.validate(nbformat.read(path, as_version=4))
        assert verify_notebook(path, journal).findings == []
        changed = recorded.folder / "changed.ipynb"
        text = path.read_text("utf-8")
        forged = re.sub('("value": ?"<b>)bold', r"\1sold", text)
        assert forged != text
        changed.write_text(forged, "utf-8")
        report = verify_notebook(changed, journal)
        assert report.outcome is Outcome.ALTERED
        assert report.findings[0].message.endswith(": widgets.")


def test_models_read_what_widgets_showed_at_the_end(recorded: Recorded) -> None:
    texts = dict(zip(WIDGETS, recorded.ran.texts, strict=False))
    assert re.match(r"Work: 100% \|█{10}\| 4/4 \[", texts["progress"])
    assert texts["linked"] == "IntSlider(description='n', value=7) text bold"
    assert texts["two in turn"] == "4\n1\n3\n2"
    assert texts["captured"] == "beside\n[captured by an Output widget]\nin\n1"
    assert "ZeroDivisionError" in texts["an error is captured"]
    assert "got 3" in texts["interact"]


def test_a_widget_that_was_closed_is_not_in_the_export(tmp_path: Path) -> None:
    with server_process(tmp_path) as server:
        session = server.open()
        for source in (WIDGETS["slider"].replace("slider", "import ipywidgets as w; slider", 1),
                       "slider.close()"):  # fmt: skip
            assert server.run(session, source, wait=60).json()["status"] == "ok"
        assert "Slider" in server.ask("GET", f"sessions/{session}/notebook").text
        metadata = server.get(f"sessions/{session}/notebook")["metadata"]
        names = {m["model_name"] for m in metadata["widgets"][STATE]["state"].values()}
        assert "IntSliderModel" not in names
