from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from jupyter_agent_exec.client import AgentExecClient, InvalidAddress
from jupyter_agent_exec.client.servers import (
    TOKEN_VARIABLE,
    URL_VARIABLE,
    Server,
    found,
    named,
    running,
)


def write_info(folder: Path, name: str, modified: float, **info: Any) -> None:
    file = folder / f"jpserver-{name}.json"
    file.write_text(json.dumps({"pid": os.getpid(), **info}))
    os.utime(file, (modified, modified))


@pytest.fixture
def runtime_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("url", "base", "token"),
    [
        ("http://localhost:8888", "http://localhost:8888", None),
        ("http://localhost:8888/", "http://localhost:8888", None),
        ("http://127.0.0.1:8888/user/ada/lab?token=abc", "http://127.0.0.1:8888/user/ada", "abc"),
        ("http://127.0.0.1:8888/lab/tree/a%20b/x.ipynb", "http://127.0.0.1:8888", None),
        ("http://h/user/lab/lab/tree/lab/tree/x.ipynb", "http://h/user/lab", None),
        ("http://h/base/lab/workspaces/auto-c/tree/x.ipynb?reset", "http://h/base", None),
        ("http://h/doc/tree/x.py", "http://h", None),
        ("http://h/notebooks/reports/x.ipynb", "http://h", None),
        ("http://h/user/notebooks/lab", "http://h/user/notebooks", None),
        ("https://hub.example/user/ada/tree?", "https://hub.example/user/ada", None),
        ("http://[::1]:8888/", "http://[::1]:8888", None),
    ],
)
def test_an_address_is_read_as_people_have_it(url: str, base: str, token: str | None) -> None:
    assert Server.at(url) == Server(url=base, token=token)


def test_a_unix_socket_is_an_address_too() -> None:
    server = Server.at("http+unix://%2Frun%2Fjupyter.sock/base/")
    assert (server.url, server.socket_path) == ("http://localhost/base", "/run/jupyter.sock")
    assert server.address == "http+unix://%2Frun%2Fjupyter.sock/base"


@pytest.mark.parametrize("url", ["localhost:8888", "", "ftp://x/", "http://", "http://x:port/"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(InvalidAddress):
        Server.at(url)


def test_a_token_that_no_header_can_hold_is_refused() -> None:
    with pytest.raises(InvalidAddress, match="token"):
        AgentExecClient("http://127.0.0.1:1", "a\r\nX-Other: 1")


def test_running_servers_come_newest_first(runtime_dir: Path) -> None:
    write_info(runtime_dir, "1", 100, url="http://127.0.0.1:1/", token="one")
    write_info(runtime_dir, "2", 300, url="http://127.0.0.1:2/", token="two")
    write_info(runtime_dir, "3", 200, url="http://127.0.0.1:3/", token="")
    assert [(server.url[-1], server.token) for server in running()] == [
        ("2", "two"),
        ("3", None),
        ("1", "one"),
    ]


def test_a_given_token_is_used_for_the_servers_that_run_here(runtime_dir: Path) -> None:
    write_info(runtime_dir, "1", 100, url="http://127.0.0.1:1/", token="full access")
    assert [server.token for server in found("agent", {})] == ["agent"]
    assert [server.token for server in found(None, {TOKEN_VARIABLE: "env"})] == ["env"]
    assert [server.token for server in found(None, {})] == ["full access"]


def test_files_that_name_no_living_server_are_passed_over(runtime_dir: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    write_info(runtime_dir, "ended", 1, url="http://127.0.0.1:1/", pid=ended.pid)
    write_info(runtime_dir, "nonsense", 1, url="http://127.0.0.1:1/", pid="many")
    write_info(runtime_dir, "no-url", 1)
    (runtime_dir / "jpserver-torn.json").write_text('{"pid": ')
    (runtime_dir / "jpserver-list.json").write_text("[]")
    (runtime_dir / "kernel-1.json").write_text("{}")
    assert running() == []


def test_a_runtime_folder_that_is_not_there_has_no_servers(tmp_path: Path) -> None:
    assert running(tmp_path / "missing") == []


def test_arguments_come_before_the_environment(runtime_dir: Path) -> None:
    environ = {URL_VARIABLE: "http://127.0.0.1:9/", TOKEN_VARIABLE: "env"}
    assert named(None, None, environ) == Server(url="http://127.0.0.1:9", token="env")
    assert named("http://127.0.0.1:8/", "arg", environ) == Server(
        url="http://127.0.0.1:8", token="arg"
    )
    assert named(None, None, {}) is None


def test_the_token_in_a_given_address_comes_before_the_environments(runtime_dir: Path) -> None:
    url = "http://127.0.0.1:8/?token=in-url"
    assert named(url, None, {TOKEN_VARIABLE: "env"}) == Server.at(url)
    assert named(url, "in-url", {}) == Server.at(url)
    with pytest.raises(InvalidAddress, match="token: the URL has another one"):
        named(url, "arg", {})


def test_the_token_of_a_running_server_is_found_for_its_address(runtime_dir: Path) -> None:
    write_info(runtime_dir, "1", 100, url="http://127.0.0.1:1/base/", token="one")
    assert named("http://127.0.0.1:1/base", None, {}) == Server(
        url="http://127.0.0.1:1/base", token="one"
    )
    other = named("http://127.0.0.1:2/", None, {})
    assert other is not None
    assert other.token is None
