"""Input, steps and preload by the client, against a real server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jupyter_agent_exec.client import (
    AgentExecClient,
    AsyncAgentExecClient,
    Input,
    PreloadFunction,
    PreloadModule,
    Session,
    Step,
    function,
)
from jupyter_agent_exec.client.requests import to_preload
from jupyter_agent_exec.errors import InputNotAsked, InvalidRequest
from tests.real_server import RealServer

ASKS_TWICE = "print(input('First? '), input('Second? '))"


def shout(text: str) -> str:
    """Return it louder."""
    return re.sub("$", "!", text.upper())  # type: ignore[name-defined]  # noqa: F821


def test_what_code_asks_is_answered_by_a_function(client: AgentExecClient) -> None:
    asked: list[Input] = []

    def answer(each: Input) -> str:
        asked.append(each)
        return each.prompt[0]

    with client.open_session("tester", allow_stdin=True) as session:
        result = session.run(ASKS_TWICE, on_input=answer)
    assert (result.ok, result.text.split()) == (True, ["F", "S"])
    assert [each.prompt for each in asked] == ["First? ", "Second? "]


def test_an_answer_that_comes_second_is_refused_and_run_goes_on(client: AgentExecClient) -> None:
    with client.open_session("tester", allow_stdin=True) as session:

        def is_late(asked: Input) -> str:
            running = next(each for each in session.executions() if not each.finished)
            assert running.input == asked
            assert "it asks" in running.summary
            client.give_input(running.id, "quick", asked_at=asked.asked_at)
            with pytest.raises(InputNotAsked):
                client.give_input(running.id, "quick", asked_at="2020")
            return "late"

        assert session.run("input('Only? ')", on_input=is_late).text.strip() == "'quick'"


def test_the_client_that_awaits_answers_with_a_coroutine(server: RealServer) -> None:
    async def answer(asked: Input) -> str:
        await asyncio.sleep(0)
        return asked.prompt[0]

    async def run() -> list[str]:
        async with (
            AsyncAgentExecClient(server.url, server.token) as client,
            await client.open_session("tester", allow_stdin=True, preload=["json as j"]) as session,
        ):
            result = await session.run(ASKS_TWICE, on_input=answer)
            steps = await session.run_steps(["x = j.dumps(1)", "x"])
            return [*result.text.split(), steps[1].text.strip()]

    assert asyncio.run(run()) == ["F", "S", "'1'"]


def test_a_file_with_code_is_run(session: Session, tmp_path: Path) -> None:
    code, notebook, latin = (tmp_path / name for name in ("a.py", "a.ipynb", "latin.py"))
    code.write_bytes("\ufeffprint('größer')".encode())
    notebook.write_text("{}")
    latin.write_bytes(b"# caf\xe9")
    assert session.run(code).text == "größer\n"
    assert [each.text for each in session.run_steps([code, "1"])] == ["größer\n", "1"]
    for path in (notebook, latin):
        with pytest.raises(InvalidRequest) as refused:
            session.run(path)
        assert refused.value.detail["field"] == "source"
    with pytest.raises(FileNotFoundError):
        session.run(tmp_path / "none.py")


def test_steps_come_back_as_results_in_order(session: Session) -> None:
    first, second, third = session.run_steps(
        ["x = 1", Step(source="1 / 0", values={"x": "x"}), "x"], idempotency_key="k"
    )
    assert [each.status for each in (first, second, third)] == ["ok", "error", "cancelled"]
    again = session.run_steps(
        ["x = 1", Step(source="1 / 0", values={"x": "x"}), "x"], idempotency_key="k"
    )
    assert [each.id for each in again] == [first.id, second.id, third.id]
    on = session.run_steps(["1 / 0", "2"], stop_on_error=False)
    assert [each.status for each in on] == ["error", "ok"]


def test_functions_and_modules_are_there_and_described(client: AgentExecClient) -> None:
    preload = ["statistics as st", "os.path", function(shout, imports=["re"])]
    with client.open_session("tester", preload=preload) as session:
        assert session.run("shout('x'), st.mean([1, 3]), os.path.sep").text.strip() == (
            "('X!', 2, '/')"
        )
        assert "def shout(text: str) -> str:" in session.guide()
        assert session.info.preloaded[0] == "import statistics as st"


def test_what_can_be_preloaded_is_sent_as_its_source() -> None:
    def inner() -> int:
        return 1

    assert to_preload(["a.b", inner, PreloadModule(name="x"), "numpy  as  np"]) == [
        PreloadModule(name="a.b"),
        PreloadFunction(source="def inner() -> int:\n    return 1\n"),
        PreloadModule(name="x"),
        PreloadModule(name="numpy", alias="np"),
    ]
    made = function("  def f(): ...", requirements=("a>1",), imports=["b", "from c import d"])
    assert made == PreloadFunction(
        source="def f(): ...", requirements=["a>1"], imports=["import b", "from c import d"]
    )


class Has:
    def method(self) -> None:
        """Do nothing."""


def closing_over(outside: int) -> Callable[[], int]:
    def closure() -> int:
        return outside

    return closure


@pytest.mark.parametrize(
    ("item", "said"),
    [
        (lambda: 1, "is a lambda"),
        (closing_over(1), "is a closure over outside"),
        (Has().method, "is a method"),
        (Has, "is a type"),
        (len, "is a builtin_function_or_method"),
        (eval("compile('def f(): pass', 'x', 'exec')"), "is a code"),
        ("def f(): pass", "is not the name of a module"),
    ],
)
def test_what_has_no_source_of_its_own_is_refused_with_a_sentence(item: Any, said: str) -> None:
    with pytest.raises(InvalidRequest, match=said) as refused:
        to_preload([item])
    assert refused.value.detail["field"] == "preload"
