"""Sinks as they are configured: what is wrong is named."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from jupyter_agent_exec.audit.sink_settings import make_sinks


@pytest.mark.parametrize(
    ("sinks", "message"),
    [
        ([{"path": "/mnt"}], "sinks[0]: Object missing required field `kind`."),
        ([{"kind": "fax"}], "sinks[0].kind: Invalid value 'fax'."),
        ([{"kind": "folder"}], "sinks[0]: Object missing required field `path`."),
        ([{"kind": "folder", "path": 1}], "sinks[0].path: Expected `str`, got `int`."),
        (
            [{"kind": "folder", "path": "/mnt", "way": 1}],
            "sinks[0]: Object contains unknown field `way`.",
        ),
        (
            [{"kind": "folder", "path": "/mnt", "content": "all"}],
            "sinks[0].content: Invalid enum value 'all'.",
        ),
        (
            [{"kind": "folder", "path": "/mnt", "max_lag": 0}],
            "sinks[0].max_lag: Expected `float` > 0.0.",
        ),
        (
            [{"kind": "folder", "path": "/mnt", "name": "../up"}],
            "sinks[0].name: Expected `str` matching regex",
        ),
        ([{"kind": "object-store", "url": "fax://a"}], "sinks[0]: Generic URL error"),
        (
            [{"kind": "object-store", "url": "s3://a", "options": {"colour": "red"}}],
            "sinks[0]: Configuration key: 'colour' is not valid",
        ),
        (
            [{"kind": "syslog", "host": "localhost"}],
            "sinks[0].kind: there is no 'syslog' any more. Use a 'folder'",
        ),
        (
            [{"kind": "otlp", "address": "http://collector:4318/v1/logs"}],
            "sinks[0].kind: there is no 'otlp' any more. Use a 'folder'",
        ),
        (
            [{"kind": "folder", "path": "/a"}, {"kind": "folder", "path": "/b"}],
            "sinks[1].name: another sink is named 'folder'; give each a name.",
        ),
    ],
)
def test_what_is_wrong_is_named(sinks: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(ValueError, match="sinks") as caught:
        make_sinks(sinks)
    assert str(caught.value).startswith(message)


def test_a_wrong_sink_stops_the_start_with_a_sentence(tmp_path: Path) -> None:
    config = tmp_path / "config.py"
    config.write_text("c.AgentExecApp.sinks = [{'kind': 'fax'}]")
    done = subprocess.run(
        [sys.executable, "-m", "jupyter", "server", "--ServerApp.jpserver_extensions",
         "jupyter_agent_exec=True", "--no-browser", "--allow-root", f"--config={config}"],
        capture_output=True,
        text=True,
        timeout=120,
    )  # fmt: skip
    assert done.returncode == 1
    assert "sinks[0].kind: Invalid value 'fax'" in done.stderr


def test_a_kind_whose_package_is_missing_names_the_extra() -> None:
    code = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from jupyter_agent_exec.audit.sink_settings import make_sinks\n"
        "make_sinks([{'kind': 'postgresql', 'address': ''}])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "pip install 'jupyter-agent-exec[postgresql]'" in done.stderr
