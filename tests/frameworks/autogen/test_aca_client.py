"""AutoGen's executor for Azure's dynamic sessions, as it is, against this server."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar
from urllib.request import Request, urlopen

import pytest
from autogen_core import CancellationToken
from autogen_core.code_executor import CodeBlock, CodeResult, with_requirements
from autogen_ext.code_executors.azure import ACADynamicSessionsCodeExecutor
from azure.core.credentials import AccessToken

from tests.real_server import PROJECT, RealServer

T = TypeVar("T")

NOW = CancellationToken()
"""Nobody cancels."""


class Credential:
    """Has a token of this server instead of Azure's."""

    def __init__(self, token: str) -> None:
        self._token = token

    def get_token(self, *scopes: str, **options: Any) -> AccessToken:
        return AccessToken(self._token, 0)


class Client:
    """An executor, from this thread."""

    def __init__(self, server: RealServer, token: str, work_dir: Path, **named: Any) -> None:
        self.executor = ACADynamicSessionsCodeExecutor(
            f"{server.url}api/agent-exec/aca",
            Credential(token),
            work_dir=work_dir,
            **{"timeout": 30, **named},
        )

    def run(self, *sources: str) -> CodeResult:
        return self.now(self.running(*sources))

    def running(
        self, *sources: str, language: str = "python", token: CancellationToken = NOW
    ) -> Coroutine[Any, Any, CodeResult]:
        blocks = [CodeBlock(code=source, language=language) for source in sources]
        return self.executor.execute_code_blocks(blocks, token)

    def now(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run(work)


def ask(server: RealServer, method: str, path: str, body: Any = None) -> Any:
    """Ask as the person does."""
    request = Request(
        f"{server.url}api/agent-exec/{path}",
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": f"token {server.token}"},
    )
    with urlopen(request, timeout=30) as answer:
        return json.load(answer)


def mint(server: RealServer, *scopes: str) -> str:
    minted = ask(server, "POST", "tokens", {"label": "AutoGen", "scopes": scopes})
    return str(minted["secret"])


@pytest.fixture(scope="module")
def token(server: RealServer) -> str:
    return mint(server, "exec:scratch", "files")


@pytest.fixture(scope="module")
def client(server: RealServer, token: str, tmp_path_factory: pytest.TempPathFactory) -> Client:
    """One whose session all tests share that leave it as it is."""
    return Client(server, token, tmp_path_factory.mktemp("work"), session_id="shared")


def test_blocks_run_and_the_session_keeps_its_variables(client: Client) -> None:
    assert client.run("x = 20", "print('one')\nx + 1") == CodeResult(0, "one\n21")
    assert client.run("x * 2") == CodeResult(0, "40")


def test_a_block_that_fails_is_told_with_the_others(client: Client) -> None:
    result = client.run("print('kept')", "print('seen')\n1/0", "print('after')")
    assert result.exit_code == 1
    assert "kept\n" in result.output
    assert "seen\n" in result.output
    assert "ZeroDivisionError: division by zero\n" in result.output
    assert "\x1b" not in result.output
    assert "after\n" in result.output


def test_packages_are_those_of_the_kernel(client: Client) -> None:
    packages = client.now(client.executor.get_available_packages(NOW))
    assert {"ipykernel", "pandas", "matplotlib"} <= packages
    result = client.run("! pip install no-such-package")
    assert result.exit_code == 1
    assert "Python packages unavailable in environment: {'no-such-package'}" in result.output


def test_files_go_up_are_listed_and_come_down(
    server: RealServer, token: str, tmp_path: Path
) -> None:
    client = Client(server, token, tmp_path)
    (tmp_path / "sales of März.csv").write_text("a,b\n1,2\n")
    upload = client.executor.upload_files(["sales of März.csv"], NOW)
    client.now(upload)
    read = "import pandas as pd; print(pd.read_csv('sales of März.csv').b.sum())"
    assert client.run(read) == CodeResult(0, "2\n")
    client.run("open('out.bin', 'wb').write(bytes(range(256)) * 1000)")
    listed = client.now(client.executor.get_file_list(NOW))
    assert listed == ["out.bin", "sales of März.csv"]
    (tmp_path / "sales of März.csv").write_text("a,b\n1,40\n")
    client.now(client.executor.upload_files(["sales of März.csv"], NOW))
    assert client.run(read) == CodeResult(0, "40\n")
    (path,) = client.now(client.executor.download_files(["out.bin"], NOW))
    assert Path(path).read_bytes() == bytes(range(256)) * 1000
    with pytest.raises(FileNotFoundError, match="no-such"):
        client.now(client.executor.download_files(["no-such"], NOW))


def test_a_plot_is_a_file_to_be_downloaded(server: RealServer, token: str, tmp_path: Path) -> None:
    client = Client(server, token, tmp_path)
    result = client.run(
        "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()\nprint('drawn')"
    )
    assert result.exit_code == 0, result.output
    assert "png" in result.output
    assert len(result.output) < 200
    (name,) = client.now(client.executor.get_file_list(NOW))
    assert f"[image {name}: " in result.output
    (path,) = client.now(client.executor.download_files([name], NOW))
    assert Path(path).read_bytes().startswith(b"\x89PNG")


def double(value: int) -> int:
    """Double a number."""
    return value * 2


@with_requirements(python_packages=["pandas"], global_imports=["pandas"])
def rows() -> int:
    """Count the rows of a table."""
    return len(pandas.DataFrame({"a": [1, 2]}))  # type: ignore[name-defined] # noqa: F821


def test_functions_are_there(server: RealServer, token: str, tmp_path: Path) -> None:
    client = Client(server, token, tmp_path, functions=[double, rows])
    assert client.run("print(double(21), rows())") == CodeResult(0, "42 2\n")
    assert client.now(client.executor.restart()) is None
    assert client.run("print(double(4))") == CodeResult(0, "8\n")


@pytest.fixture
def started(tmp_path: Path) -> Path:
    """A pipe into which code writes once it runs."""
    path = tmp_path / "started"
    os.mkfifo(path)
    return path


def endless(started: Path) -> str:
    """Return code that says that it runs, and whether it was interrupted."""
    return (
        "import time\n"
        "kept = 'kept'\n"
        "try:\n"
        f"    open({str(started)!r}, 'w').close()\n"
        "    time.sleep(600)\n"
        "except KeyboardInterrupt:\n"
        "    interrupted = True\n"
        "    raise\n"
    )


def test_cancelling_stops_the_code_and_keeps_the_state(client: Client, started: Path) -> None:
    token = CancellationToken()

    async def cancelled() -> None:
        running = asyncio.ensure_future(client.running(endless(started), token=token))
        await asyncio.to_thread(started.read_text)
        token.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    client.now(cancelled())
    assert client.run("print(kept, interrupted)") == CodeResult(0, "kept True\n")


def test_each_block_is_in_the_history(server: RealServer, client: Client) -> None:
    client.run("print('recorded')")
    sessions = ask(server, "GET", "sessions?agent=AutoGen&limit=100")["sessions"]
    (session,) = [each for each in sessions if each["client_id"] == "aca:shared"]
    executions = ask(server, "GET", f"sessions/{session['id']}/executions?limit=100")["executions"]
    assert executions[-1]["source"] == "print('recorded')"
    assert executions[-1]["status"] == "ok"


def test_the_pages_example_runs(
    server: RealServer, token: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = PROJECT / "docs" / "how-to" / "frameworks" / "azure-dynamic-sessions.md"
    (example,) = re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    for shown, here in (
        ("http://localhost:8888/", server.url),
        ("jaex_…", token),
        ('"work"', repr(str(tmp_path))),
    ):
        assert shown in example
        example = example.replace(shown, here)
    exec(example, {"__name__": "example"})
    assert capsys.readouterr().out == "0 42\n\n"
