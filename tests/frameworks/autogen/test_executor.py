from __future__ import annotations

import asyncio
import re
from pathlib import Path

import autogen_ext.code_executors.jupyter as originals
import pytest
from autogen_core import CancellationToken
from autogen_core.code_executor import CodeBlock
from running import executed, run, until

from jupyter_agent_exec.adapters import Target
from jupyter_agent_exec.adapters.autogen import CodeTimeout, JupyterCodeExecutor
from jupyter_agent_exec.client import AgentExecClient
from jupyter_agent_exec.errors import KernelNotOwned, KernelSpecNotFound
from tests.real_server import RealServer

PLOT = """\
import matplotlib
import matplotlib.pyplot as plt
plt.plot([1, 2, 3])
plt.show()"""

SAME: list[list[str]] = [
    [],
    ["1 + 1"],
    ["print('a')\n5"],
    ["x = 1", "x + 1", "print(x)"],
    ["print('before')\n1 / 0", "print('never')"],
    ["from IPython.display import HTML, Markdown, display\ndisplay(HTML('<b>b</b>'))"],
    ["Markdown('# title')"],
    ["%matplotlib inline\n" + PLOT],
    ["import sys\nprint('out')\nsys.stdout.flush()\nprint('err', file=sys.stderr)"],
    ["def f(:"],
    ["None"],
]
"""Blocks that are answered as AutoGen's own executor answers them."""


def test_what_it_answers_is_what_the_original_answers(
    executor: JupyterCodeExecutor, tmp_path: Path
) -> None:
    async def original() -> list[tuple[object, ...]]:
        async with originals.JupyterCodeExecutor(output_dir=tmp_path) as one:
            return [told(await executed(one, *sources)) for sources in SAME]

    def told(result: originals.JupyterCodeResult) -> tuple[object, ...]:
        assert type(result) is originals.JupyterCodeResult
        assert all(file.is_absolute() and file.stat().st_size for file in result.output_files)
        output = re.sub(r"0x\w+", "0x", result.output)
        return result.exit_code, output, [file.suffix for file in result.output_files]

    assert [told(run(executor, *sources)) for sources in SAME] == asyncio.run(original())


def test_what_is_no_text_is_not_told_as_text(executor: JupyterCodeExecutor) -> None:
    result = run(
        executor,
        "from IPython.display import SVG, display\n"
        "display(SVG('<svg xmlns=\"http://www.w3.org/2000/svg\"/>'))\n"
        "display({'application/pdf': 'QUJD', 'application/vnd.plotly.v1+json': {'data': [1]},"
        " 'application/json': {'a': 1}, 'text/plain': 'shown', 'image/png': '%%%'}, raw=True)",
    )
    assert result.output == '<IPython.core.display.SVG object>\nshown\n{"a": 1}'
    assert [file.suffix for file in result.output_files] == [".svg"]


def test_before_its_start_and_after_its_end_it_executes_nothing(server: RealServer) -> None:
    async def all_of_it() -> None:
        executor = JupyterCodeExecutor(target=Target(url=server.url, token=server.token))
        with pytest.raises(RuntimeError, match="must be started"):
            await executed(executor, "1")
        async with executor:
            await executor.start()
            assert (await executed(executor, "1")).output == "1"
        with pytest.raises(RuntimeError, match="must be started"):
            await executor.get_file_list(CancellationToken())
        await executor.stop()

    asyncio.run(all_of_it())


def test_a_timeout_tells_what_came_before_it_and_keeps_the_variables(
    server: RealServer, tmp_path: Path
) -> None:
    async def all_of_it() -> None:
        async with JupyterCodeExecutor(
            timeout=1,
            output_dir=tmp_path,
            target=Target(url=server.url, token=server.token),
            agent="slow",
        ) as executor:
            loop = "kept = 1\nprint('second')\nwhile True: pass"
            with pytest.raises(asyncio.TimeoutError, match=r"(?s)^first\n\nsecond\n.* 1 sec") as e:
                await executed(executor, "print('first')", loop, "never = 1")
            assert isinstance(e.value, CodeTimeout)
            assert e.value.partial.exit_code == 1
            again = await executed(executor, "kept, 'never' in dir()")
            assert again.output == "(1, False)"

    asyncio.run(all_of_it())
    with AgentExecClient(server.url, server.token) as client:
        (session,) = client.sessions(agent="slow")
        assert [each.status for each in session.executions()] == [
            "ok", "timed_out", "cancelled", "ok",
        ]  # fmt: skip
        assert "second" in list(session.executions())[1].text


def test_a_restart_gives_a_fresh_kernel_and_says_nothing_of_it(
    server: RealServer, marked: Path
) -> None:
    async def all_of_it() -> None:
        executor = JupyterCodeExecutor(
            target=Target(url=server.url, token=server.token), agent="restarted"
        )
        await executor.restart()
        loop = f"x = 1\nopen({str(marked)!r}, 'w').close()\nwhile True: pass"
        running = asyncio.create_task(executed(executor, loop))
        await until(marked)
        await executor.restart()
        assert (await running).exit_code == 1
        assert (await executed(executor, "'x' in dir()")).output == "False"
        await executed(executor, "import os\nos._exit(1)")
        assert "variables are gone" in (await executed(executor, "1")).output
        running = asyncio.create_task(executed(executor, loop))
        await until(marked)
        await executor.stop()
        assert "The session was closed" in (await running).output

    asyncio.run(all_of_it())
    with AgentExecClient(server.url, server.token) as client:
        (session,) = client.sessions(agent="restarted")
        assert session.info.status == "closed"


def test_a_block_in_another_language_is_refused_after_those_before_it(
    executor: JupyterCodeExecutor,
) -> None:
    blocks = [
        CodeBlock(code="'ran'", language="Python"),
        CodeBlock(code="ls", language="bash"),
        CodeBlock(code="'never'", language="python"),
    ]
    result = asyncio.run(executor.execute_code_blocks(blocks, CancellationToken()))
    assert (result.exit_code, result.output) == (1, "'ran'\nunknown language bash")
    result = asyncio.run(executor.execute_code_blocks(blocks[1:], CancellationToken()))
    assert (result.exit_code, result.output) == (1, "unknown language bash")


def test_pip_is_asked_to_say_nothing(executor: JupyterCodeExecutor, server: RealServer) -> None:
    run(executor, "if False:\n    pass\n! pip install -h\n!pip install -qqq -h\n#!pip install")
    with AgentExecClient(server.url, server.token) as client:
        hit = next(iter(client.search("pip")))
        assert client.execution(hit.execution_id).cell["source"].splitlines()[2:] == [
            "! pip install -qqq -h", "!pip install -qqq -h", "#!pip install",
        ]  # fmt: skip


def test_blocks_become_cells_of_a_persons_notebook(server: RealServer) -> None:
    async def all_of_it() -> None:
        with AgentExecClient(server.url, server.token) as client:
            client.open_session("setup", notebook="work.ipynb", create=True).close()
        async with JupyterCodeExecutor(
            target=Target(url=server.url, token=server.token, notebook="work.ipynb")
        ) as executor:
            assert (await executed(executor, "x = 40", "x + 2")).output == "\n42"
            with pytest.raises(KernelNotOwned):
                await executor.restart()
        async with JupyterCodeExecutor(
            target=Target(url=server.url, token=server.token, notebook="work.ipynb")
        ) as executor:
            assert (await executed(executor, "x + 3")).output == "43"

    asyncio.run(all_of_it())
    with AgentExecClient(server.url, server.token) as client:
        sources = [each.source for each in client.cells("work.ipynb").cells]
        assert sources == ["x = 40", "x + 2", "x + 3"]


def test_what_is_wrong_with_arguments_is_said_at_once(server: RealServer) -> None:
    with pytest.raises(ValueError, match="Timeout must be greater than or equal to 1"):
        JupyterCodeExecutor(timeout=0)
    with pytest.raises(ValueError, match="functions_module"):
        JupyterCodeExecutor(functions_module="my functions")
    with pytest.raises(ValueError, match="Not the address"):
        JupyterCodeExecutor(target=Target(url="localhost"))
    unknown = JupyterCodeExecutor(
        "no-such-kernel", target=Target(url=server.url, token=server.token)
    )
    with pytest.raises(KernelSpecNotFound):
        asyncio.run(unknown.start())
    asyncio.run(unknown.stop())
