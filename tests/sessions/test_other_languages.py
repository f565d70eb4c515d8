"""Kernels of other languages do what docs/reference/kernels-of-other-languages.md says.

bash_kernel comes with the tests. The others are tried where they are installed.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from jupyter_client.kernelspec import KernelSpecManager

from jupyter_agent_exec.client import AgentExecClient, Session
from jupyter_agent_exec.errors import LanguageNotSupported
from tests.real_server import real_server


class Language(NamedTuple):
    hello: str
    wrong: str
    assign: str
    show: str
    endless: str
    keeps_variables: bool = True
    """Whether they stay after an interrupt."""


LANGUAGES = {
    "bash": Language("echo hello", "false", "x=42", "echo $x", "sleep 600"),
    "ir": Language('cat("hello")', 'stop("no")', "x <- 42", "x", "while (TRUE) Sys.sleep(0.1)"),
    "deno": Language(
        'console.log("hello")',
        'throw new Error("no")',
        "let x = 42",
        "x",
        "while (true) {}",
        keeps_variables=False,
    ),
    "xpython": Language(
        'print("hello")', "1 / 0", "x = 42", "x", "while True: pass", keeps_variables=False
    ),
}


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for JUPYTER_PATH, with bash's kernelspec."""
    folder = tmp_path_factory.mktemp("kernels")
    spec = {
        "argv": [sys.executable, "-m", "bash_kernel", "-f", "{connection_file}"],
        "display_name": "Bash",
        "language": "bash",
        "env": {"PS1": "$"},
    }
    (folder / "kernels" / "bash").mkdir(parents=True)
    (folder / "kernels" / "bash" / "kernel.json").write_text(json.dumps(spec))
    return folder


@pytest.fixture(scope="module")
def client(kernels: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentExecClient]:
    places = os.pathsep.join(filter(None, [str(kernels), os.environ.get("JUPYTER_PATH")]))
    folder = tmp_path_factory.mktemp("server")
    with (
        real_server(folder, environ={"JUPYTER_PATH": places}) as server,
        AgentExecClient(server.url, server.token) as client,
    ):
        yield client


@pytest.fixture(scope="module", params=LANGUAGES)
def kernel_name(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    if name != "bash" and name not in KernelSpecManager().find_kernel_specs():
        pytest.skip(f"there is no kernel {name} here")
    return name


@pytest.fixture(scope="module")
def session(client: AgentExecClient, kernel_name: str) -> Iterator[Session]:
    with client.open_session(agent="tester", kernel_name=kernel_name) as session:
        yield session


def test_code_runs_and_errors_are_results(session: Session, kernel_name: str) -> None:
    language = LANGUAGES[kernel_name]
    said = session.run(language.hello)
    assert (said.status, said.text.strip()) == ("ok", "hello")
    assert said.execution.outputs_complete
    assert session.run(language.wrong).status == "error"
    assert session.run(language.assign).status == "ok"
    assert "42" in session.run(language.show).text


def test_what_needs_python_is_refused_and_runs_nothing(session: Session, kernel_name: str) -> None:
    before = session.run(LANGUAGES[kernel_name].hello).execution.seq
    for ask in (
        lambda: session.run("x", values={"x": "x"}),
        lambda: session.variables(),
        lambda: session.packages(),
    ):
        with pytest.raises(LanguageNotSupported):
            ask()
    assert session.run(LANGUAGES[kernel_name].hello).execution.seq == before + 1


def test_its_environment_is_said_as_far_as_it_is_known(session: Session, kernel_name: str) -> None:
    session.run(LANGUAGES[kernel_name].hello)
    [told] = session.export()["metadata"]["agent_exec"]["environments"]
    assert told["language"]
    assert told["reason"] == "Only Python's kernel (ipykernel) tells which packages it has."
    assert session.requirements() == f"# {told['reason']}\n"


def test_an_interrupt_ends_code_and_the_answer_says_if_variables_are_gone(
    session: Session, kernel_name: str
) -> None:
    language = LANGUAGES[kernel_name]
    session.run(language.assign)
    assert session.run(language.endless, timeout=2).status == "timed_out"
    after = session.run(language.show)
    assert after.execution.kernel.restarted is not language.keeps_variables
    assert ("42" in after.text) is language.keeps_variables


def test_its_cell_and_its_language_are_in_the_export(
    session: Session, kernel_name: str, tmp_path: Path
) -> None:
    session.run(LANGUAGES[kernel_name].hello)
    path = tmp_path / "session.ipynb"
    session.export(path)
    assert f'"name": "{kernel_name}"' in path.read_text().replace('":"', '": "')
