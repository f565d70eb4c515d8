"""`jupyter agent-exec files`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command import Cli
from tests.real_server import RealServer


@pytest.fixture
def folder(server: RealServer) -> Path:
    """The session's, which no other test has files in."""
    path = server.root_dir / "files"
    path.mkdir(exist_ok=True)
    return path


@pytest.fixture
def session_id(cli: Cli, folder: Path) -> str:
    done = cli("run", "1", "--keep", "--json", "--cwd", folder.name)
    assert done.returncode == 0, done.stderr
    return str(json.loads(done.stdout)["session_id"])


def test_files_are_put_listed_got_and_deleted(cli: Cli, folder: Path, session_id: str) -> None:
    (cli.folder / "sales.csv").write_text("a,b\n1,2\n")
    done = cli("files", session_id, "put", "sales.csv", "data/in.csv")
    assert (done.returncode, done.stdout) == (0, "data/in.csv  8 B\n")
    assert (folder / "data" / "in.csv").read_text() == "a,b\n1,2\n"
    listed = cli("files", session_id, "list", "--recursive").stdout.splitlines()
    assert listed[0].split() == ["SIZE", "WRITTEN", "FILE"]
    assert [line.split()[-1] for line in listed[1:]] == ["data/", "data/in.csv"]
    told = json.loads(cli("files", "--json", session_id, "list", "data").stdout)
    assert [file["path"] for file in told] == ["data/in.csv"]
    assert cli("files", session_id, "get", "data/in.csv").stdout == "in.csv  8 B\n"
    assert (cli.folder / "in.csv").read_text() == "a,b\n1,2\n"
    assert cli("files", session_id, "get", "data/in.csv", "--to", "-").stdout == "a,b\n1,2\n"
    done = cli("files", session_id, "delete", "data/in.csv")
    assert (done.returncode, done.stdout) == (0, "deleted data/in.csv\n")
    assert cli("files", session_id, "delete", "data").returncode == 0


def test_a_persons_file_is_replaced_only_if_that_is_said(
    cli: Cli, folder: Path, session_id: str
) -> None:
    (folder / "theirs.txt").write_text("1")
    (cli.folder / "theirs.txt").write_text("2")
    refused = cli("files", session_id, "put", "theirs.txt")
    assert refused.returncode == 4
    assert "somebody has changed it since" in refused.stderr
    assert cli("files", session_id, "put", "theirs.txt", "--replace").returncode == 0
    assert (folder / "theirs.txt").read_text() == "2"
    assert cli("files", session_id, "delete", "theirs.txt").returncode == 0


def test_what_makes_no_sense_is_said(cli: Cli, session_id: str) -> None:
    assert cli("files", session_id, "put", "nowhere.csv").returncode == 2
    assert cli("files", session_id).returncode == 2
    missing = cli("files", session_id, "get", "nowhere.csv")
    assert missing.returncode == 4
    assert "nowhere.csv" in missing.stderr
