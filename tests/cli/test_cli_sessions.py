from __future__ import annotations

import json
import os
import subprocess
from typing import Any

import nbformat
import pytest

from jupyter_agent_exec.cli import exit_codes
from jupyter_agent_exec.client import AgentExecClient, Session
from tests.cli.command import COMMAND, Cli, at_terminal
from tests.real_server import RealServer


@pytest.fixture
def worked(server: RealServer) -> Session:
    """A session, closed, that ran three cells."""
    with AgentExecClient(server.url, server.token) as client:
        with client.open_session("surveyor", title="Quokkas\x1b[2J of Rottnest") as session:
            session.run("quokkas = 12\nprint('seen', quokkas)  # \x1b[2J\x07")
            session.run("quokkas / 0")
            session.run("for i in range(5000): print('quokka', i)", max_output_bytes=1000)
        return client.session(session.id)


def answer(cli: Cli, *words: str) -> Any:
    done = cli(*words, "--json")
    assert done.returncode == 0
    return json.loads(done.stdout)


def test_status_is_told(cli: Cli, server: RealServer) -> None:
    status = answer(cli, "status")
    assert status["address"] == server.url.rstrip("/")
    assert status["history_available"] is True
    done = cli("status")
    assert "history   available" in done.stdout
    assert "people    not recorded" in done.stdout


def test_sessions_are_listed_newest_first(cli: Cli, worked: Session) -> None:
    # Of this agent only: another test's session may be open still, and what is open stands first.
    newest = ("sessions", "--agent", "surveyor", "-n", "1")
    assert answer(cli, *newest)[0]["id"] == worked.id
    assert worked.id not in [session["id"] for session in answer(cli, "sessions", "--open")]
    head, first = cli(*newest).stdout.splitlines()
    assert head.split()[0] == "SESSION"
    assert first.startswith(f"{worked.id}  closed  3")
    assert first.endswith("full access  “surveyor”    scratch  “Quokkas of Rottnest”")


def test_sessions_and_executions_are_narrowed(cli: Cli, worked: Session) -> None:
    def ids(*said: str) -> list[str]:
        return [session["id"] for session in answer(cli, "sessions", *said)]

    assert worked.id in ids("--agent", "surveyor", "--target", "scratch", "--unreviewed")
    assert ids("--agent", "nobody") == []
    assert worked.id not in ids("--target", "notebook")
    assert ids("--until", "2000-01-01") == []
    assert worked.id in ids("--since", "2000-01-01")
    within = ("--session", worked.id, "--target", "scratch")
    assert len(answer(cli, "search", *within, "--review", "none")) == 3
    assert answer(cli, "search", *within, "--review", "flagged") == []
    assert cli("search", "--review", "fine").returncode == exit_codes.USAGE


def test_a_session_is_shown_with_what_it_ran(cli: Cli, worked: Session) -> None:
    shown = answer(cli, "show", worked.id)
    assert [execution["status"] for execution in shown["executions"]] == ["ok", "error", "ok"]
    text = cli("show", worked.id).stdout
    assert "  | quokkas = 12\n" in text
    assert "quokkas)  # ␇\n" in text
    assert "\nseen 12\n" in text
    assert "ZeroDivisionError" in text
    assert "\x1b" not in text


def test_an_execution_is_shown_whole(cli: Cli, worked: Session) -> None:
    *_, last = answer(cli, "show", worked.id)["executions"]
    assert answer(cli, "show", last["id"])["id"] == last["id"]
    assert "quokka 2500" not in cli("show", last["id"]).stdout
    whole = cli("show", last["id"], "--whole")
    assert whole.stdout.splitlines() == [f"quokka {i}" for i in range(5000)]


def test_search_finds_and_filters(cli: Cli, worked: Session) -> None:
    hits = answer(cli, "search", "quokkas", "--session", worked.id)
    assert {hit["seq"] for hit in hits} == {1, 2}
    hits = answer(cli, "search", "--session", worked.id, "--status", "error")
    assert [hit["seq"] for hit in hits] == [2]
    assert answer(cli, "search", "quokkas", "--agent", "nobody") == []
    assert len(answer(cli, "search", "--session", worked.id, "-n", "2")) == 2
    listed = cli("search", "quokkas", "--session", worked.id, "--until", "2000-01-01T00:00:00Z")
    assert listed.stdout.splitlines() == ["EXECUTION  STATUS  TIME  CALLS ITSELF  MATCH"]


def test_a_session_is_exported_with_its_journal(cli: Cli, worked: Session) -> None:
    beside = ("--journal", "out.jsonl", "--requirements", "out.txt")
    told = answer(cli, "export", worked.id, "-o", "out.ipynb", *beside)
    notebook = nbformat.read(cli.folder / "out.ipynb", as_version=4)
    nbformat.validate(notebook)
    assert len(notebook.cells) == 3
    assert told["chain"]["length"] == len((cli.folder / "out.jsonl").read_bytes().splitlines())
    assert "ipykernel==" in (cli.folder / "out.txt").read_text()
    assert "chain head" in cli("export", worked.id).stderr
    assert (cli.folder / f"{worked.id}.ipynb").is_file()
    piped = cli("export", worked.id, "-o", "-")
    assert len(json.loads(piped.stdout)["cells"]) == 3


def test_an_export_shows_the_bytes_that_it_has_on_a_terminal(cli: Cli, worked: Session) -> None:
    code, shown = at_terminal(cli, "export", worked.id, "--journal", "out.jsonl")
    files = (f"{worked.id}.ipynb", "out.jsonl")
    exported = sum((cli.folder / name).stat().st_size for name in files)
    assert (code, f"export: {exported / 1000:.1f}kB" in shown) == (0, True), shown
    for words in (["--json"], ["-q"]):
        assert "export:" not in at_terminal(cli, "export", worked.id, "-f", *words)[1]


def test_no_file_is_overwritten_by_accident(cli: Cli, worked: Session) -> None:
    export = ("export", worked.id, "-o", "kept.ipynb")
    kept = cli.folder / "kept.ipynb"
    kept.write_text("mine")
    done = cli(*export)
    assert (done.returncode, kept.read_text()) == (2, "mine")
    assert "kept.ipynb exists; --force overwrites it." in done.stderr
    code, shown = at_terminal(cli, *export, typed="n")
    assert (code, kept.read_text()) == (5, "mine")
    assert "Overwrite kept.ipynb? [y/N]" in shown
    assert at_terminal(cli, *export, typed="y")[0] == 0
    assert kept.read_text() != "mine"
    assert cli(*export, "--force").returncode == 0


def test_a_reader_who_leaves_is_no_error_message(cli: Cli, worked: Session) -> None:
    environ = {name: cli.environ[name] for name in cli.environ if name != "PYTHONUNBUFFERED"}
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as nobody:
        done = subprocess.run(
            [*COMMAND, "show", worked.id],
            env=environ,
            stdout=nobody,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert (done.returncode, done.stderr) == (141, b"")


def test_a_shared_export_says_whether_it_runs(cli: Cli, worked: Session) -> None:
    """What run-again.md says of a colleague."""
    done = cli("export", worked.id, "--share", "-o", "shared.ipynb")
    cells = json.loads((cli.folder / "shared.ipynb").read_text("utf-8"))["cells"]
    about = "".join(cells[1]["source"])
    assert "hecked" in about
    assert about in done.stderr
    assert cli("export", worked.id, "--share", "--clean").returncode == 2


def test_a_clean_export_verifies_by_the_record(
    cli: Cli, worked: Session, server: RealServer
) -> None:
    cli("export", worked.id, "--clean", "-o", "clean.ipynb")
    text = (cli.folder / "clean.ipynb").read_text("utf-8")
    assert text.startswith('{\n "cells": [\n  {\n')
    assert cli("export", worked.id, "--clean", "-o", "-").stdout == text
    history = str(server.history_dir)
    report = answer(cli, "verify", "clean.ipynb", "--history", history)
    assert (report["outcome"], report["findings"]) == ("whole", [])
    (cli.folder / "clean.ipynb").write_text(text.replace("quokkas = 12", "quokkas = 13"))
    assert cli("verify", "clean.ipynb", "--history", history).returncode == 1
