from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from tests.real_server import PROJECT, RealServer

EXAMPLES = PROJECT / "examples" / "frameworks"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, which is empty."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def named_server(server: RealServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the examples use a server that runs."""
    monkeypatch.setenv("JUPYTER_AGENT_EXEC_URL", server.url)
    monkeypatch.setenv("JUPYTER_AGENT_EXEC_TOKEN", server.token)


def told(name: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Run an example, and return what it prints."""
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    return capsys.readouterr().out


def test_fibonacci_on_a_server_of_its_own(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert told("autogen_fibonacci.py", capsys).splitlines()[-1] == (
        "assistant: The 10th Fibonacci number is 55."
    )


@pytest.mark.usefixtures("named_server")
def test_a_chart_of_stocks(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    printed = told("autogen_stock_plot.py", capsys)
    assert re.search(r"^NVDA +\d\.\d+$", printed, re.MULTILINE)
    assert (folder / "coding" / "change.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.usefixtures("named_server")
def test_functions(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    printed = told("autogen_functions.py", capsys)
    assert "def load_data() -> pandas" in printed
    assert "\nJohn\n" in printed
    assert re.search(r"^mean +30\.75", printed, re.MULTILINE)


@pytest.mark.usefixtures("named_server")
def test_the_example_of_the_documentation(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = (PROJECT / "docs" / "how-to" / "frameworks" / "autogen.md").read_text(encoding="utf-8")
    source = page.partition("```python\n")[2].partition("```")[0]
    (folder / "example.py").write_text(source, encoding="utf-8")
    runpy.run_path(str(folder / "example.py"), run_name="__main__")
    assert capsys.readouterr().out == "42\n"
