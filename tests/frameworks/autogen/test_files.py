from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from autogen_core import CancellationToken
from running import executed

from jupyter_agent_exec.adapters import Target
from jupyter_agent_exec.adapters.autogen import JupyterCodeExecutor
from tests.real_server import RealServer

TOKEN = CancellationToken()


def test_files_go_up_and_down(server: RealServer, tmp_path: Path) -> None:
    there = server.root_dir / "data.csv"
    there.write_text("of somebody else")
    (tmp_path / "data.csv").write_text("a,b\n1,2\n")

    async def all_of_it() -> list[str]:
        async with JupyterCodeExecutor(
            output_dir=tmp_path, target=Target(url=server.url, token=server.token)
        ) as executor:
            await executor.upload_files(["data.csv", tmp_path / "data.csv"], TOKEN)
            read = "text = open('data.csv').read()\nopen('copy.csv', 'w').write(text)\ntext"
            assert (await executed(executor, read)).output == "'a,b\\n1,2\\n'"
            assert {"data.csv", "copy.csv"} <= set(await executor.get_file_list(TOKEN))
            await executed(executor, "import os\nos.mkdir('sub')\nopen('sub/x', 'w').write('x')")
            return await executor.download_files(["copy.csv", Path("sub/x")], TOKEN)

    paths = asyncio.run(all_of_it())
    assert paths == [str(tmp_path / "copy.csv"), str(tmp_path / "sub/x")]
    assert [Path(path).read_text() for path in paths] == ["a,b\n1,2\n", "x"]


def test_what_is_not_there_is_named_and_nothing_is_left_half_done(
    executor: JupyterCodeExecutor,
) -> None:
    (executor.output_dir / "first.txt").write_text("1")

    async def all_of_it() -> None:
        with pytest.raises(FileNotFoundError, match=r"^missing\.txt does not exist$"):
            await executor.upload_files(["first.txt", "missing.txt"], TOKEN)
        assert "first.txt" not in await executor.get_file_list(TOKEN)
        with pytest.raises(FileNotFoundError, match=r"^missing\.txt does not exist$"):
            await executor.download_files(["missing.txt"], TOKEN)
        for outside in ("../secret", "/etc/passwd"):
            with pytest.raises(ConnectionError, match="Error while downloading files: "):
                await executor.download_files([outside], TOKEN)

    asyncio.run(all_of_it())
    assert [each.name for each in executor.output_dir.iterdir()] == ["first.txt"]


def test_packages_are_those_of_the_kernel(executor: JupyterCodeExecutor) -> None:
    packages = asyncio.run(executor.get_available_packages(TOKEN))
    assert {"pandas", "ipykernel", "autogen-core"} <= packages


def test_what_is_cancelled_says_so(executor: JupyterCodeExecutor) -> None:
    cancelled = CancellationToken()
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError, match="Uploading files cancelled"):
        asyncio.run(executor.upload_files(["first.txt"], cancelled))
