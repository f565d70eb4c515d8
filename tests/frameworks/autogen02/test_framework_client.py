"""AutoGen's own remote client, unchanged, against a server with this extension."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from autogen.coding.jupyter import JupyterCodeExecutor, JupyterConnectionInfo
from blocks import run, text

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
