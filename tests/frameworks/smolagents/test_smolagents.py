from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from smolagents import AgentError, ChatMessage, CodeAgent, LogLevel, MessageRole, Model, tool

from examples.frameworks import smolagents_fibonacci
from jupyter_agent_exec.adapters import Target
from jupyter_agent_exec.adapters.smolagents import JupyterExecutor
from jupyter_agent_exec.client import AgentExecClient
from tests.frameworks.sources import CRASH, PNG, PROCESSES, SHOW_IMAGE, documented, runs
from tests.real_server import real_server


class Replay(Model):
    """A model that says what it was given to say, and keeps what it was asked."""

    def __init__(self, *sources: str) -> None:
        super().__init__(model_id="replay")
        self.sources = list(sources)
        self.asked: list[list[Any]] = []

    def generate(self, messages: list[Any], **_: Any) -> ChatMessage:
        self.asked.append(messages)
        said = f"Thought: go on.\n<code>\n{self.sources.pop(0)}\n</code>"
        return ChatMessage(role=MessageRole.ASSISTANT, content=said)

    def read(self, asked: int = -1) -> str:
        content = self.asked[asked][-1].content
        return "\n".join(part["text"] for part in content if part["type"] == "text")


@pytest.fixture(scope="module")
def executor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JupyterExecutor]:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("work"))
        executor = JupyterExecutor(timeout=30)
        yield executor
        executor.cleanup()


def agent_of(model: Model, executor: JupyterExecutor, **options: Any) -> CodeAgent:
    return CodeAgent(
        tools=options.pop("tools", []),
        model=model,
        executor=executor,
        additional_authorized_imports=["*"],
        verbosity_level=LogLevel.OFF,
        **options,
    )


def test_an_agent_works_step_by_step_to_its_final_answer(executor: JupyterExecutor) -> None:
    model = Replay("x = 20\nprint('printed')\nx + 1", "final_answer({'twice': x * 2})")
    assert agent_of(model, executor).run("Compute.") == {"twice": 40}
    assert model.read().endswith("logs:\nprinted\nLast output from code snippet:\n21")


def test_what_comes_after_a_final_answer_does_not_run(executor: JupyterExecutor) -> None:
    model = Replay("y = 1\nfinal_answer(y)\ny = 2")
    assert agent_of(model, executor).run("Answer.") == 1
    assert executor("y").output == "1"


def test_code_that_raises_is_told_and_the_agent_goes_on(executor: JupyterExecutor) -> None:
    model = Replay("print('before')\n1 / 0", "final_answer('recovered')")
    assert agent_of(model, executor).run("Divide.") == "recovered"
    assert "before" in model.read()
    assert "ZeroDivisionError" in model.read()


def test_tools_and_variables_are_there_and_come_back_after_a_crash(
    executor: JupyterExecutor,
) -> None:
    @tool
    def double(number: int) -> int:
        """Double a number.

        Args:
            number: The number.
        """
        return number * 2

    model = Replay(
        "print(double(start))",
        CRASH,
        "print('state', 'start' in dir())",
        "final_answer(double(start))",
    )
    answer = agent_of(model, executor, tools=[double]).run("Double.", additional_args={"start": 4})
    assert answer == 8
    assert "8" in model.read(1)
    assert "died" in model.read(2)
    assert "variables are gone" in model.read(3)
    assert "state True" in model.read(3)


def test_a_model_is_shown_images(executor: JupyterExecutor) -> None:
    model = Replay(SHOW_IMAGE, "final_answer('seen')")
    agent_of(model, executor, step_callbacks=[executor.show_images]).run("Draw.")
    images = [
        part["image"]
        for message in model.asked[-1]
        for part in message.content
        if part["type"] == "image"
    ]
    assert [each.size for each in images] == [(1, 1)]
    assert PNG[:20] not in model.read()


def test_a_final_answer_may_be_a_large_image(executor: JupyterExecutor) -> None:
    model = Replay(
        "import os, PIL.Image\n"
        "final_answer(PIL.Image.frombytes('RGB', (800, 600), os.urandom(1_440_000)))"
    )
    answer = agent_of(model, executor).run("Draw.")
    assert answer.to_raw().size == (800, 600)


def test_text_about_a_final_answer_is_none(executor: JupyterExecutor) -> None:
    output = executor("print('FinalAnswerException: safe:1')")
    assert not output.is_final_answer


def test_nothing_is_installed_and_a_missing_package_is_named(executor: JupyterExecutor) -> None:
    @tool
    def look_up() -> str:
        """Look something up."""
        import a_package_that_nobody_has

        return a_package_that_nobody_has.look_up()

    with pytest.raises(AgentError, match="No module named 'a_package_that_nobody_has'"):
        agent_of(Replay(), executor, tools=[look_up]).run("Look up.")


def test_a_managed_agent_is_refused_by_name(executor: JupyterExecutor) -> None:
    managed = agent_of(Replay(), executor, name="helper", description="Helps.")
    with pytest.raises(ValueError, match="helper: a managed agent"):
        agent_of(Replay(), executor, managed_agents=[managed]).run("Delegate.")


def test_a_timeout_is_told_and_the_state_survives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    model = Replay(
        "kept = 1\nsent += 1\nwhile True: pass",
        "print('kept', kept, sent)",
        PROCESSES,
        "final_answer(1)",
    )
    with agent_of(model, JupyterExecutor(timeout=2)) as agent:
        agent.run("Loop.", additional_args={"sent": 4})
    assert "2 s" in model.read(1)
    assert "kept 1 5" in model.read(2)
    server, kernel = (word for word in model.read(3).split() if word.isdigit())
    assert not runs(server)
    assert not runs(kernel)


def test_after_its_session_was_closed_an_agent_is_told_and_can_answer(tmp_path: Path) -> None:
    with real_server(tmp_path) as server, AgentExecClient(*server[:2]) as client:

        class Closing(Replay):
            def generate(self, messages: list[Any], **options: Any) -> ChatMessage:
                if self.asked:
                    for session in client.sessions(agent="smolagents"):
                        session.close()
                return super().generate(messages, **options)

        model = Closing("own = 1", "print(sent, 'own' in dir())", "final_answer(sent)")
        with agent_of(
            model, JupyterExecutor(target=Target(url=server.url, token=server.token))
        ) as agent:
            assert agent.run("Answer.", additional_args={"sent": 4}) == 4
    assert "variables are gone" in model.read(2)
    assert "4 False" in model.read(2)


def test_in_a_notebook_there_are_cells_of_the_agents_code_and_no_others(tmp_path: Path) -> None:
    with real_server(tmp_path) as server:
        nbformat.write(nbformat.v4.new_notebook(), server.root_dir / "work.ipynb")
        executor = JupyterExecutor(
            target=Target(url=server.url, token=server.token, notebook="work.ipynb")
        )
        with agent_of(Replay("x = 1", "final_answer(x)"), executor, name="Analyst") as agent:
            assert agent.run("Answer.") == 1
        with AgentExecClient(server.url, server.token) as client:
            cells = client.cells("work.ipynb").cells
            (session,) = client.sessions(agent="smolagents")
    assert [cell.source for cell in cells] == ["x = 1", "final_answer(x)"]
    assert session.info.target.path == "work.ipynb"


def test_the_example_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    model = Replay("a, b = 0, 1\nfor _ in range(117):\n    a, b = b, a + b", "final_answer(b)")
    assert smolagents_fibonacci.main(model) == 2046711111473984623691759


def test_the_example_of_the_documentation_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(documented("smolagents"), {"model": Replay("final_answer(6 * 7)")})
    assert capsys.readouterr().out.endswith("42\n")
