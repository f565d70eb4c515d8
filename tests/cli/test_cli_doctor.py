"""`doctor` names what is wrong with an installation. Each test breaks something on purpose."""

from __future__ import annotations

import json
import os
import re
import site
import subprocess
import sys
import threading
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import msgspec
import pytest

from jupyter_agent_exec import __version__
from jupyter_agent_exec.client import AgentExecClient
from tests.cli.command import Cli
from tests.real_server import PROJECT, RealServer

pytestmark = pytest.mark.timeout(300)


def diagnosed(cli: Cli, *words: str, **environ: str) -> tuple[int, dict[str, list[dict[str, Any]]]]:
    """Run the command; return its exit code, and the findings of each check."""
    done = cli("doctor", "--json", *words, **environ)
    assert done.returncode in (0, 1), done.stderr
    answer = json.loads(done.stdout)
    found: dict[str, list[dict[str, Any]]] = {}
    for finding in answer["findings"]:
        found.setdefault(finding["check"], []).append(finding)
        assert (finding["advice"] is None) == (finding["level"] == "ok")
    levels = [finding["level"] for finding in answer["findings"]]
    assert answer["problems"] == levels.count("problem")
    assert done.returncode == int("problem" in levels)
    return done.returncode, found


def configure(cli: Cli, file: str, content: str) -> None:
    path = Path(cli.environ["JUPYTER_CONFIG_DIR"]) / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


def without_own_server(cli: Cli) -> None:
    """Disable the extension, so that no own server is started: the other checks need none."""
    switched_off = {"ServerApp": {"jpserver_extensions": {"jupyter_agent_exec": False}}}
    configure(cli, "jupyter_server_config.json", json.dumps(switched_off))


def test_settings_that_hold_agents_back_do_not_hold_back_its_own_server(
    cli: Cli, cli_alone: Cli
) -> None:
    configure(
        cli_alone,
        "jupyter_server_config.py",
        "c.AgentExecApp.approval = {'scratch': 'always'}\n"
        "c.AgentExecApp.allow_full_access = False\n"
        "c.AgentExecApp.isolation = 'off'\n",
    )
    runtime = cli.environ["JUPYTER_RUNTIME_DIR"]
    done = cli_alone("doctor", JUPYTER_RUNTIME_DIR=runtime)
    assert done.returncode == 0, done.stdout
    assert "problem" not in done.stdout
    assert "ok       server: " in done.stdout
    assert "ok       own server: " in done.stdout
    assert re.search("warning  isolation: .*isolation='off'", done.stdout)
    assert "No problem was found" in done.stderr


def test_a_setting_with_which_no_server_starts_is_named(cli_alone: Cli) -> None:
    configure(cli_alone, "jupyter_server_config.py", "c.AgentExecApp.default_timeout = -1\n")
    code, found = diagnosed(cli_alone)
    assert code == 1
    assert "default_timeout" in found["own server"][0]["message"]


def test_a_configuration_file_that_is_broken_is_named(cli_alone: Cli) -> None:
    configure(cli_alone, "jupyter_server_config.py", "c.AgentExecApp. = 1\n")
    code, found = diagnosed(cli_alone)
    assert code == 1
    assert "SyntaxError" in found["configuration"][0]["message"]
    assert "own server" not in found


def test_a_disabled_extension_is_named(cli_alone: Cli) -> None:
    without_own_server(cli_alone)
    configure(
        cli_alone,
        "labconfig/page_config.json",
        json.dumps({"disabledExtensions": {"jupyter-agent-exec": True}}),
    )
    code, found = diagnosed(cli_alone)
    assert code == 1
    assert "is disabled" in found["server extension"][0]["message"]
    assert "is disabled" in found["lab extension"][0]["message"]


def test_an_extension_that_a_file_disables_in_place_is_named(cli_alone: Cli) -> None:
    update = "c.ServerApp.jpserver_extensions.update({'jupyter_agent_exec': False})\n"
    configure(cli_alone, "jupyter_server_config.py", update)
    code, found = diagnosed(cli_alone)
    assert code == 1
    assert "is disabled" in found["server extension"][0]["message"]


def test_an_extension_that_cannot_be_imported_is_named(cli_alone: Cli, tmp_path: Path) -> None:
    (tmp_path / "nh3.py").write_text("raise ImportError('built for another machine')\n")
    path = os.pathsep.join([str(tmp_path), cli_alone.environ["PYTHONPATH"]])
    code, found = diagnosed(cli_alone, PYTHONPATH=path)
    assert code == 1
    assert "built for another machine" in found["server extension"][0]["message"]


def test_old_and_missing_packages_are_named(cli_alone: Cli, tmp_path: Path) -> None:
    without_own_server(cli_alone)
    for name, version in (("jupyter_server", "2.0.0"), ("jupyterlab", "3.6"), ("mcp", "1.9")):
        metadata = tmp_path / f"{name}-{version}.dist-info" / "METADATA"
        metadata.parent.mkdir()
        metadata.write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    path = os.pathsep.join([str(tmp_path), cli_alone.environ["PYTHONPATH"]])
    code, found = diagnosed(cli_alone, PYTHONPATH=path)
    assert code == 1
    assert "jupyter-server<3,>=2.16 (installed: 2.0.0)" in found["packages"][0]["message"]
    assert found["lab extension"][0]["level"] == "warning"
    assert "installed: 3.6" in found["lab extension"][0]["message"]
    assert "installed: 1.9" in found["mcp"][0]["message"]
    assert "jupyter-agent-exec[mcp]" in found["mcp"][0]["advice"]


def test_a_lab_extension_of_another_version_is_named(cli_alone: Cli, tmp_path: Path) -> None:
    without_own_server(cli_alone)
    package = tmp_path / "labextensions" / "jupyter-agent-exec" / "package.json"
    package.parent.mkdir(parents=True)
    package.write_text(json.dumps({"version": "0.0.1"}))
    _, found = diagnosed(cli_alone, JUPYTER_PATH=str(tmp_path))
    message = found["lab extension"][0]["message"]
    assert "0.0.1" in message
    assert str(package.parent) in message


def test_another_environment_than_jupyters_is_noticed(cli_alone: Cli, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=False)
    python = tmp_path / "venv" / "bin" / "python"
    done = subprocess.run(
        [python, "-m", "jupyter_agent_exec.cli", "doctor", "--json"],
        env={
            **cli_alone.environ,
            "PYTHONPATH": os.pathsep.join([str(PROJECT), *site.getsitepackages()]),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    said = {each["check"]: each["message"] for each in json.loads(done.stdout)["findings"]}
    assert "does not know the extension" in said["server extension"]
    assert "does not find the extension" in said["lab extension"]


def test_kernels_that_are_missing_or_broken_are_named(cli_alone: Cli) -> None:
    without_own_server(cli_alone)
    spec = Path(cli_alone.environ["JUPYTER_DATA_DIR"]) / "kernels" / "broken" / "kernel.json"
    spec.parent.mkdir(parents=True)
    spec.write_text(json.dumps({"argv": ["/nowhere/python"], "display_name": "Broken"}))
    _, found = diagnosed(cli_alone)
    (broken,) = found["kernels"]
    assert "broken cannot start" in broken["message"]
    configure(
        cli_alone,
        "jupyter_server_config.py",
        "c.KernelSpecManager.allowed_kernelspecs = {'of-no-kernel'}\n",
    )
    _, found = diagnosed(cli_alone)
    assert found["kernels"][0]["level"] == "problem"
    assert "There is no kernel" in found["kernels"][0]["message"]


def test_a_history_that_cannot_be_written_is_named(cli_alone: Cli, tmp_path: Path) -> None:
    without_own_server(cli_alone)
    file = tmp_path / "file"
    file.touch()
    configure(
        cli_alone,
        "jupyter_agent_exec_config.py",
        f"c.AgentExecApp.history_dir = {str(file / 'history')!r}\n",
    )
    code, found = diagnosed(cli_alone)
    assert code == 1
    assert "Not a directory" in found["history"][0]["message"]
    assert not (tmp_path / "fine").exists()
    _, found = diagnosed(cli_alone, "--history", str(tmp_path / "fine" / "history"))
    assert found["history"][0]["level"] == "ok"
    assert not (tmp_path / "fine").exists()


def test_a_full_disk_is_named(cli_alone: Cli, tmp_path: Path) -> None:
    without_own_server(cli_alone)
    script = (
        f"mount -t tmpfs -o size=8k none {tmp_path} && "
        f"exec {sys.executable} -m jupyter_agent_exec.cli doctor --json --history {tmp_path}"
    )
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script],
        env=cli_alone.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    if "unshare" in done.stderr or "mount" in done.stderr:
        pytest.skip("no file system can be mounted here")
    (found,) = [each for each in json.loads(done.stdout)["findings"] if each["check"] == "history"]
    assert "No space left" in found["message"]
    assert "Free space" in found["advice"]


def test_a_token_that_was_revoked_is_named(cli_alone: Cli, server: RealServer) -> None:
    without_own_server(cli_alone)
    with AgentExecClient(server.url, server.token) as client:
        minted = client.mint_token("analyst", ["exec:scratch"])
        client.revoke_token(minted.token.id)
    code, found = diagnosed(cli_alone, "--url", server.url, "--token", minted.secret)
    assert code == 1
    assert "was revoked" in found["token"][0]["message"]


def test_a_server_that_tells_nothing_without_a_token_is_no_problem(
    cli_alone: Cli, server: RealServer
) -> None:
    without_own_server(cli_alone)
    info = Path(cli_alone.environ["JUPYTER_RUNTIME_DIR"]) / "jpserver-1.json"
    info.parent.mkdir(parents=True, exist_ok=True)
    info.write_text(json.dumps({"pid": os.getpid(), "url": server.url, "token": ""}))
    _, found = diagnosed(cli_alone)
    [told] = found["server"]
    assert (told["level"], "token" in found) == ("warning", False)
    assert "tells nothing without a token" in told["message"]
    for words, environ in (
        (("--token", server.token), {}),
        ((), {"JUPYTER_AGENT_EXEC_TOKEN": server.token}),
    ):
        _, found = diagnosed(cli_alone, *words, **environ)
        assert found["server"][0]["level"] == "ok"


def test_a_server_that_does_not_answer_is_named(cli_alone: Cli) -> None:
    without_own_server(cli_alone)
    _, found = diagnosed(cli_alone, "--url", "http://127.0.0.1:9")
    assert "does not answer" in found["server"][0]["message"]


STATUS = {
    "version": __version__,
    "history_available": True,
    "open_sessions": 0,
    "kernels": 0,
    "running": 0,
    "queued": 0,
    "ledger": {"head": "0" * 64, "length": 0},
    "search_ready": True,
}


@contextmanager
def answering(status: dict[str, Any] | None) -> Iterator[str]:
    """Answer as a Jupyter server does."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = b"{}" if status is None else msgspec.json.encode(status)
            self.send_response_only(404 if status is None else 200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            serving.join()


@pytest.mark.parametrize(
    ("status", "told"),
    [
        (None, "no jupyter-agent-exec at this address"),
        ({**STATUS, "version": "0.0.1"}, "runs 0.0.1"),
        ({**STATUS, "history_available": False}, "cannot write its history"),
        (
            {**STATUS, "broken": {"name": "b_1", "found": ["ledger-1 is gone."], "at": ""}},
            "does not sign its record any more: ledger-1 is gone.",
        ),
        (STATUS, "answers"),
    ],
    ids=["no extension", "other version", "no history", "broken", "well"],
)
def test_what_is_wrong_with_a_server_is_named(
    cli_alone: Cli, status: dict[str, Any] | None, told: str
) -> None:
    without_own_server(cli_alone)
    with answering(status) as url:
        _, found = diagnosed(cli_alone, "--url", url)
    assert told in found["server"][0]["message"]
