from __future__ import annotations

import asyncio
import threading
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from langchain_core.language_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import BaseTool
from langchain_tests.integration_tests import ToolsIntegrationTests
from langchain_tests.unit_tests import ToolsUnitTests

from examples.frameworks import langchain_csv
from jupyter_agent_exec.adapters import Target
from jupyter_agent_exec.adapters.langchain import JupyterPythonTool
from tests.frameworks.sources import CRASH, PNG, PROCESSES, SHOW_IMAGE, documented, endless, runs


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JupyterPythonTool]:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("work"))
        with JupyterPythonTool(timeout=30) as tool:
            yield tool


def call(code: str) -> dict[str, Any]:
    return {"name": "run_python", "args": {"code": code}, "id": "1", "type": "tool_call"}


def invoke(tool: BaseTool, code: str) -> ToolMessage:
    message = tool.invoke(call(code))
    assert isinstance(message, ToolMessage)
    return message


class Standard:
    @property
    def tool_constructor(self) -> type[JupyterPythonTool]:
        return JupyterPythonTool

    @property
    def tool_invoke_params_example(self) -> dict[str, str]:
        return {"code": "1 + 1"}


class TestUnit(Standard, ToolsUnitTests):
    @property
    def init_from_env_params(self) -> tuple[dict[str, str], dict[str, Any], dict[str, Any]]:
        # The client reads its environment itself, when it connects.
        return {"JUPYTER_AGENT_EXEC_TOKEN": "secret"}, {}, {"target": Target()}


@pytest.mark.anyio
class TestIntegration(Standard, ToolsIntegrationTests):
    @pytest.fixture
    def tool(self, ours: JupyterPythonTool) -> BaseTool:
        return ours

    @pytest.fixture
    def anyio_backend(self) -> str:
        return "asyncio"


def test_variables_stay_and_the_cell_is_the_artifact(ours: JupyterPythonTool) -> None:
    invoke(ours, "x = 20")
    message = invoke(ours, "print('printed')\nx + 1")
    assert message.content == "printed\n21"
    assert message.status == "success"
    assert message.artifact["cell"]["source"] == "print('printed')\nx + 1"
    nbformat.validate(
        nbformat.v4.new_notebook(cells=[nbformat.from_dict(message.artifact["cell"])])
    )


def test_images_are_blocks_and_never_text(ours: JupyterPythonTool) -> None:
    text, image = invoke(ours, SHOW_IMAGE).content
    assert text["type"] == "text"
    assert PNG[:20] not in text["text"]
    assert (image["type"], image["mime_type"]) == ("image", "image/png")
    assert b64decode(image["base64"]) == b64decode(PNG)


def test_code_that_fails_is_a_message_with_what_it_showed_before(ours: JupyterPythonTool) -> None:
    message = invoke(ours, f"print('before')\n{SHOW_IMAGE}\n1 / 0")
    assert message.status == "error"
    assert [block["type"] for block in message.content] == ["text", "image"]
    assert "before" in message.content[0]["text"]
    assert "ZeroDivisionError" in message.content[0]["text"]


def test_where_errors_are_words_there_are_no_images_in_them(ours: JupyterPythonTool) -> None:
    plain = ours.model_copy(update={"handle_tool_error": True})
    drawn = "display(PIL.Image.new('RGB', (40, 40)))"
    content = invoke(plain, f"import PIL.Image\n{drawn}\n1 / 0").content
    assert isinstance(content, str)
    assert "ZeroDivisionError" in content
    assert PNG[:11] not in content


def test_a_crash_is_named_and_lost_state_is_reported(
    ours: JupyterPythonTool,
) -> None:
    crashed = invoke(ours, CRASH)
    assert crashed.status == "error"
    assert "died" in str(crashed.content)
    assert "variables are gone" in str(invoke(ours, "1").content)


def test_cancelling_an_awaited_call_stops_the_code(ours: JupyterPythonTool, tmp_path: Path) -> None:
    async def cancelled() -> None:
        started = tmp_path / "started"
        task = asyncio.create_task(ours.ainvoke(call(f"kept = 1\n{endless(started)}")))
        while not started.exists():
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert invoke(ours, "kept").content == "1"


def test_threads_may_call_it_at_once(ours: JupyterPythonTool) -> None:
    said: list[Any] = []
    threads = [
        threading.Thread(target=lambda n=n: said.append(invoke(ours, f"'thread {n}'").content))
        for n in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(said) == ["'thread 0'", "'thread 1'", "'thread 2'"]


def test_a_server_that_is_not_there_is_told_and_raises_nothing() -> None:
    with JupyterPythonTool(target=Target(url="http://127.0.0.1:9", token="secret")) as tool:
        message = invoke(tool, "1")
        assert message.status == "error"
        assert "127.0.0.1:9" in str(message.content)
        assert "secret" not in repr(tool)


def test_nothing_is_left_after_close(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    async def used() -> list[str]:
        async with JupyterPythonTool() as tool:
            message = await tool.ainvoke(call(PROCESSES))
            return str(message.content).split()

    server, kernel = asyncio.run(used())
    assert not runs(server)
    assert not runs(kernel)


class Replay(FakeMessagesListChatModel):
    def bind_tools(self, tools: Any, **_: Any) -> Replay:
        assert [tool.name for tool in tools] == ["run_python"]
        return self


def test_the_example_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sales.csv").write_text("region,revenue\nNorth,3\nSouth,5\nNorth,4\n")
    code = "import pandas as pd\npd.read_csv('sales.csv').groupby('region').revenue.sum().idxmax()"
    model = Replay(
        responses=[AIMessage("", tool_calls=[call(code)]), AIMessage("It is the North.")]
    )
    *_, told, answer = langchain_csv.main(model, "Which region?")
    assert told.content == "'North'"
    assert answer.content == "It is the North."


def test_the_example_of_the_documentation_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(documented("langchain"), {})
    assert capsys.readouterr().out == "42\n"


def test_what_a_model_cannot_look_at_is_told_in_the_text_only(ours: JupyterPythonTool) -> None:
    source = """\
import os, PIL.Image
from IPython.display import SVG, display
display(PIL.Image.frombytes('RGB', (1200, 1200), os.urandom(4_320_000)))
display(SVG('<svg xmlns="http://www.w3.org/2000/svg"/>'))
display({'image/png': 'bm8gaW1hZ2U='}, raw=True)
display({'image/bmp': 'Qk0='}, raw=True)
"""
    message = invoke(ours, source)
    assert isinstance(message.content, str)
    assert "4.3 MB" in message.content
    assert "svg" in message.content
