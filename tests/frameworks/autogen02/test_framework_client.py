"""AutoGen's own remote client, unchanged, against a server with this extension."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from autogen.coding.jupyter import JupyterCodeExecutor, JupyterConnectionInfo
from blocks import run, text

from jupyter_agent_exec.client import AgentExecClient
from jupyter_agent_exec.models import KernelTarget
from tests.real_server import RealServer


@pytest.fixture
def executor(server: RealServer, tmp_path: Path) -> Iterator[JupyterCodeExecutor]:
    parts = urlsplit(server.url)
    assert parts.hostname is not None
    info = JupyterConnectionInfo(
        host=parts.hostname, use_https=False, port=parts.port, token=server.token
    )
    with JupyterCodeExecutor(info, timeout=30, output_dir=tmp_path) as opened:
        yield opened


def test_it_runs_blocks_restarts_and_saves_images(
    executor: JupyterCodeExecutor,
) -> None:
    assert text(executor, "x = 20", "x + 1") == "21"
    assert run(executor, "1 / 0").exit_code == 1
    saved = run(
        executor,
        "from IPython.display import display\ndisplay({'image/png': 'iVBORw=='}, raw=True)",
    )
    assert Path(saved.output_files[0]).read_bytes() == b"\x89PNG"
    executor.restart()
    assert text(executor, "'x' in dir()") == "False"


def test_what_it_runs_is_recorded_where_people_are(
    executor: JupyterCodeExecutor, server: RealServer
) -> None:
    text(executor, "x = 6", "print(x * 7)")
    with AgentExecClient(server.url, server.token) as client:
        ran: list[dict[str, Any]] = []
        while len(ran) < 2:
            for session in client.sessions(target="kernel", status="open"):
                assert isinstance(session.info.target, KernelTarget)
                if session.info.target.kernel_id == executor._kernel_id:
                    events = session.export()["metadata"]["agent_exec"]["events"]
                    ran = [event for event in events if event["type"] == "person_ran"]
    assert [event["source_text"] for event in ran] == ["x = 6", "print(x * 7)"]
    assert [event["status"] for event in ran] == ["ok", "ok"]
