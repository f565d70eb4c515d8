"""The examples of client.md, files.md, notebooks.md and run-again.md run, as they stand there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from jupyter_agent_exec.client import AgentExecClient
from tests.client.test_client_in_notebooks import person
from tests.person import Person, runs
from tests.real_server import RealServer
from tests.test_code_blocks import BLOCKS

__all__ = ["person"]

SALES = "region,revenue\nnorth,12.5\nsouth,8\nnorth,3\n"


def example(page: str, having: str) -> str:
    (found,) = (
        block.text
        for block in BLOCKS
        if block.page.name == page and block.language == "python" and having in block.text
    )
    return found


def run(server: RealServer, source: str, **environ: str) -> str:
    """Run a program as a user does who has set the server's address and token."""
    named = {"JUPYTER_AGENT_EXEC_URL": server.url, "JUPYTER_AGENT_EXEC_TOKEN": server.token}
    done = subprocess.run(
        [sys.executable, "-c", source],
        env=server.environ | named | environ,
        cwd=server.root_dir,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def sales(server: RealServer) -> None:
    (server.root_dir / "sales.csv").write_text(SALES)


def test_variables_come_back(client: AgentExecClient, capsys: pytest.CaptureFixture[str]) -> None:
    with client.open_session("analyst") as session:
        ran = session.run("x = 1")
    given = {"client": client, "session_id": session.id}
    exec(example("run-again.md", "session.restore("), given)
    assert capsys.readouterr().out == f"{ran.id} x = 1\n"
    given["session"].close()


@pytest.mark.usefixtures("sales")
def test_the_first_example_of_the_client(server: RealServer) -> None:
    assert "north    15.5" in run(server, example("client.md", 'title="Sales by region"'))


def test_a_single_source(server: RealServer) -> None:
    (server.root_dir / "report.py").write_text("print('done')")
    assert run(server, example("client.md", "run(Path(")) == "done\n\n"
    with AgentExecClient(server.url, server.token) as client:
        assert [each.info.status for each in client.sessions(agent="python-client")] == ["closed"]


def test_the_asynchronous_client(server: RealServer) -> None:
    body = example("client.md", "async with AsyncAgentExecClient()")
    lines = "\n".join(f"    {line}" for line in [*body.splitlines(), "print(result.text)"])
    imports = "import asyncio\nfrom jupyter_agent_exec.client import AsyncAgentExecClient\n"
    assert run(server, f"{imports}async def main():\n{lines}\nasyncio.run(main())") == "2\n"


def test_a_refusal(client: AgentExecClient, capsys: pytest.CaptureFixture[str]) -> None:
    exec(example("client.md", "errors.KernelSpecNotFound"), {"client": client})
    assert "python3" in capsys.readouterr().out


def test_files(
    server: RealServer, client: AgentExecClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (server.root_dir / "sales.csv").unlink(missing_ok=True)
    (tmp_path / "sales.csv").write_text(SALES)
    (tmp_path / "plots").mkdir()
    exec(example("files.md", "session.upload("), {"client": client})
    assert (tmp_path / "plots" / "q3.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.usefixtures("sales")
def test_a_session_in_a_notebook(server: RealServer, person: Person) -> None:
    load = "import pandas as pd; sales = pd.read_csv('../sales.csv')"
    person.writes("work/sales.ipynb", load)
    with person.at(person.opens("work/sales.ipynb")) as kernel:
        assert runs(kernel, load) == "ok"
    source = "from jupyter_agent_exec.client import AgentExecClient\n"
    told = run(server, source + example("notebooks.md", "sales.groupby("))
    assert "north    15.5" in told
    assert "work/sales.ipynb" in told
