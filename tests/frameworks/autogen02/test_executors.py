"""The executors as `autogen.coding` has them: results, texts, refusals."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from autogen.coding import CodeBlock, CodeExecutor, MarkdownCodeExtractor
from autogen.coding.base import IPythonCodeResult
from autogen.coding.jupyter import JupyterConnectionInfo
from blocks import run, text

from jupyter_agent_exec.adapters import Target
from jupyter_agent_exec.adapters.autogen02 import EmbeddedIPythonCodeExecutor, JupyterCodeExecutor
from jupyter_agent_exec.client import AgentExecClient
from jupyter_agent_exec.errors import InitFailed
from tests.real_server import RealServer

PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
    "+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
SHOW = "from IPython.display import HTML, SVG, Image, Latex, display\nimport base64\n"


@pytest.fixture(scope="module")
def executor(folder: Path) -> Iterator[EmbeddedIPythonCodeExecutor]:
    with EmbeddedIPythonCodeExecutor() as opened:
        yield opened


@pytest.fixture
def quick(folder: Path) -> Iterator[EmbeddedIPythonCodeExecutor]:
    with EmbeddedIPythonCodeExecutor(timeout=1) as opened:
        yield opened


def test_it_is_a_code_executor_of_the_framework(executor: EmbeddedIPythonCodeExecutor) -> None:
    assert isinstance(executor, CodeExecutor)
    assert isinstance(executor.code_extractor, MarkdownCodeExtractor)
    message = "Try this:\n```python\nx = 1\n```\nand\n```python\nprint(x + 41)\n```"
    result = executor.execute_code_blocks(executor.code_extractor.extract_code_blocks(message))
    assert type(result) is IPythonCodeResult
    assert (result.exit_code, result.output.strip(), result.output_files) == (0, "42", [])


def test_texts_are_joined_by_newlines_and_state_stays(
    executor: EmbeddedIPythonCodeExecutor,
) -> None:
    assert run(executor, "print('a')\n'b'", "kept = 7", "kept").output == "a\n\n'b'\n7"
    assert text(executor, "kept") == "7"
    assert executor.execute_code_blocks([]) == IPythonCodeResult(exit_code=0, output="")


def test_the_first_failure_stops_and_tells_what_came_before(
    executor: EmbeddedIPythonCodeExecutor, folder: Path
) -> None:
    result = run(executor, "print('first')", "print('before')\n1 / 0", "open('never', 'w')")
    assert result.exit_code == 1
    assert result.output.startswith("first\n\nbefore\n\nERROR: ZeroDivisionError: division by zero")
    assert "----> 2 1 / 0" in result.output
    assert result.output.endswith("\nZeroDivisionError: division by zero")
    assert "\x1b" not in result.output
    assert not (folder / "never").exists()


def test_no_escape_sequence_reaches_the_model(executor: EmbeddedIPythonCodeExecutor) -> None:
    shown = "type('C', (), {'__repr__': lambda self: '\\x1b[1mbold\\x1b[0m'})()"
    told = run(executor, f"print('\\x1b[31mred\\x1b[0m')\n{shown}").output
    assert told == "red\n\nbold"


def test_what_was_shown_before_a_failure_is_saved_and_named(tmp_path: Path) -> None:
    with EmbeddedIPythonCodeExecutor(output_dir=tmp_path) as executor:
        result = run(executor, f"{SHOW}display(Image(base64.b64decode('{PNG}')))\n1 / 0")
    assert result.exit_code == 1
    assert [Path(file) for file in result.output_files] == list(tmp_path.iterdir())


def test_the_code_starts_in_the_current_folder(
    executor: EmbeddedIPythonCodeExecutor, folder: Path
) -> None:
    assert text(executor, "import os\nos.getcwd()") == repr(str(folder))


def test_images_and_html_are_files_and_never_text(tmp_path: Path) -> None:
    sources = [
        f"{SHOW}data = base64.b64decode('{PNG}')\ndisplay(Image(data))",
        "display({'image/jpeg': base64.b64encode(b'jpeg').decode()}, raw=True)",
        "display(SVG('<svg xmlns=\"http://www.w3.org/2000/svg\"/>'))",
        "display(HTML('<b>été</b>'))",
        "display({'application/pdf': 'JVBERi0', 'text/plain': 'a document'}, raw=True)",
        "Latex('$x$')",
    ]
    with EmbeddedIPythonCodeExecutor(output_dir=tmp_path) as executor:
        result = run(executor, *sources)
    assert result.exit_code == 0, result.output
    assert [Path(file).suffix for file in result.output_files] == [".png", ".jpg", ".svg", ".html"]
    image, _, _, html = map(Path, result.output_files)
    assert image.parent == tmp_path
    assert image.read_bytes().startswith(b"\x89PNG")
    assert html.read_text(encoding="utf-8") == "<b>été</b>"
    lines = result.output.splitlines()
    for file in result.output_files:
        what = "HTML" if file.endswith(".html") else "Image"
        assert f"{what} data saved to {file}" in lines
    assert "a document" in lines
    assert "$x$" in lines
    for base64 in ("iVBOR", "anBlZw", "JVBER"):
        assert base64 not in result.output


def test_what_cannot_be_saved_is_told_beside_the_rest(tmp_path: Path) -> None:
    (gone := tmp_path / "gone").mkdir()
    with EmbeddedIPythonCodeExecutor(output_dir=gone) as executor:
        gone.rmdir()
        result = run(executor, f"{SHOW}display(HTML('<b>'))\nprint('after')")
    assert (result.exit_code, result.output_files) == (0, [])
    assert "HTML data could not be saved: [Errno 2]" in result.output
    assert result.output.endswith("after\n")


@pytest.mark.parametrize(
    ("code", "language", "sent"),
    [
        ("!pip install a\n! pip install b", "python", "!pip install -qqq a\n! pip install -qqq b"),
        ("%pip install a", "python", "%pip install -qqq a"),
        ("!pip install -qqq a", "python", "!pip install -qqq a"),
        ("pip install a", "sh", "pip install -qqq a"),
        ("pip install a", "python", "pip install a"),
        ("'see !pip install a'", "python", "'see !pip install a'"),
    ],
)
def test_installations_say_little(code: str, language: str, sent: str) -> None:
    from jupyter_agent_exec.adapters.autogen02.ipython_results import source_of

    assert source_of(CodeBlock(code=code, language=language)) == sent


def test_a_timeout_ends_the_code_and_the_state_stays(quick: EmbeddedIPythonCodeExecutor) -> None:
    chatty = "kept = 1\nimport time\nwhile True:\n    print('.', end='', flush=True)\n"
    result = run(quick, chatty + "    time.sleep(0.05)", "kept = 2")
    assert result.exit_code == 1
    assert result.output.startswith("....")
    assert f"ERROR: Timeout waiting for output from code block: {chatty}" in result.output
    assert text(quick, "kept") == "1"


def test_restart_is_a_fresh_kernel_and_nothing_is_told_of_it(
    executor: EmbeddedIPythonCodeExecutor,
) -> None:
    run(executor, "gone = 1")
    executor.restart()
    assert run(executor, "'gone' in dir()").output == "False"


def test_stopped_is_stopped(folder: Path) -> None:
    executor = EmbeddedIPythonCodeExecutor()
    pid = int(text(executor, "import os\nos.getpid()"))
    executor.stop()
    executor.stop()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    for work in (lambda: run(executor, "1"), executor.restart):
        with pytest.raises(RuntimeError, match="was stopped"):
            work()


def test_modules_are_preloaded_also_after_a_restart(folder: Path) -> None:
    def twice(x: int) -> int:
        return 2 * x

    with EmbeddedIPythonCodeExecutor(preload_modules=["json", "textwrap as tw", twice]) as executor:
        assert text(executor, "json.dumps(twice(21)), tw.dedent(' a')") == "('42', 'a')"
        executor.restart()
        assert text(executor, "json.dumps(twice(21))") == "'42'"
    with pytest.raises(InitFailed, match="no_such_module"):
        EmbeddedIPythonCodeExecutor(preload_modules=["no_such_module"])


BOTH: list[Callable[..., Any]] = [EmbeddedIPythonCodeExecutor, JupyterCodeExecutor]


@pytest.mark.parametrize("make", BOTH)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"timeout": 0}, "Timeout must be greater than or equal to 1."),
        ({"output_dir": "/not/there"}, "Output directory /not/there does not exist."),
        ({"kernel_name": "nope"}, "Kernel nope is not installed."),
    ],
)
def test_what_may_not_be_is_refused(
    make: Callable[..., Any], options: dict[str, Any], message: str
) -> None:
    before = set(threading.enumerate())
    with pytest.raises(ValueError, match="^" + re.escape(message)):
        make(**options)
    assert set(threading.enumerate()) <= before


def test_a_server_of_a_wrong_type_is_refused(server: RealServer) -> None:
    message = "jupyter_server must be a JupyterConnectable or JupyterConnectionInfo"
    with pytest.raises(ValueError, match=message):
        JupyterCodeExecutor(jupyter_server=1)  # type: ignore[arg-type]
    info = JupyterConnectionInfo(host="127.0.0.1", use_https=False)
    with pytest.raises(ValueError, match="not by both"):
        JupyterCodeExecutor(info, target=Target(url=server.url))


def test_executions_are_recorded_with_their_agent(server: RealServer) -> None:
    target = Target(url=server.url, token=server.token)
    with (
        JupyterCodeExecutor(target=target, agent="coder") as executor,
        AgentExecClient(*server[:2]) as client,
    ):
        run(executor, "1", "2 / 0", "3")
        (session,) = client.sessions(agent="coder")
        recorded = [(each.execution.source, each.status) for each in session.executions()]
    assert recorded == [("1", "ok"), ("2 / 0", "error"), ("3", "cancelled")]
