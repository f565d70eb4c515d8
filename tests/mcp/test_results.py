"""What is told of an execution, of records as they may be."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from mcp_types import TextContent

from jupyter_agent_exec import errors
from jupyter_agent_exec.auth.tokens import TokenRefused
from jupyter_agent_exec.mcp import budget
from jupyter_agent_exec.mcp.results import ExecutionAnswer, cut, execution_answer, fitting
from jupyter_agent_exec.mcp.tool import Failure, refusal
from jupyter_agent_exec.models import (
    Agent,
    Chain,
    Changes,
    Document,
    Omitted,
    Value,
    VariableChange,
    VariableState,
    WaitingFor,
)
from jupyter_agent_exec.records import ExecutionRecord, digest_of
from jupyter_agent_exec.types import CellId, Digest, ExecutionId, SessionId
from tests.mcp.tools_bench import size

RECORD = ExecutionRecord(
    id=ExecutionId("x_1"),
    session_id=SessionId("s_1"),
    seq=3,
    init=False,
    status="ok",
    reason=None,
    source="1",
    agent=Agent(name="analyst"),
    username="ada",
    timeout=None,
    kernel=None,
    values=None,
    token=None,
    duration=None,
    waiting_for=None,
    document=None,
    execution_count=3,
    outputs=[],
    blobs=(),
    error=None,
    accepted_at="2026-11-21T09:00:00.000Z",
    started_at="2026-11-21T09:00:00.000Z",
    finished_at="2026-11-21T09:00:01.500Z",
    outputs_complete=True,
    omitted=Omitted(),
    interrupt_ignored=False,
    text=None,
    text_bytes=0,
    omitted_text_bytes=0,
    entry_hash=None,
    chain=Chain(head=Digest("0" * 64), length=1),
)


async def told(**changed: Any) -> tuple[str, ExecutionAnswer]:
    """Return what a model reads first of a record, and what is structured."""
    answered = await execution_answer(msgspec.structs.replace(RECORD, **changed))
    assert isinstance(answered.structured, ExecutionAnswer)
    return answered.text, answered.structured


def change(
    name: str, *, kind: str = "changed", was: dict[str, Any] | None = None, **now: Any
) -> VariableChange:
    before = None if was is None else VariableState(**{"type": "T", **was})
    return msgspec.convert(
        {"name": name, "change": kind, "type": "T", "before": before, **now}, VariableChange
    )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (None, "[It is not known which variables it would change]"),
        (
            Changes(),
            "and the kernel is as it was]\n[execution",
        ),
        (Changes(not_compared=12), "[Not compared: 12 variables]"),
        (
            Changes(
                variables=[
                    change("tmp", kind="added"),
                    change("sales", was={"shape": [400, 3]}, shape=[0, 3]),
                    change("wide", was={"shape": [4, 3]}, shape=[4, 5]),
                    change("names", was={"length": 1}, length=2),
                    change("x0", was={"preview": "0"}, preview="1"),
                    change("gone", was={"type": "DataFrame"}),
                    change("inside", was={}),
                    change("pd", kind="removed", was={}),
                ],
                more_variables=3,
            ),
            "[It would change tmp: new, sales: 400 → 0 rows, wide: 4 × 3 → 4 × 5, names: 1 → 2, "
            "x0: 0 → 1, gone: DataFrame → T, inside: changed, pd: deleted, 3 more]",
        ),
    ],
)
async def test_a_trial_tells_the_model_what_it_would_change(
    changes: Changes | None, words: str
) -> None:
    text, answer = await told(trial=True, changes=changes)
    assert words in text
    assert answer.notes


async def test_a_source_that_had_a_secret_has_no_hash() -> None:
    document = Document(
        path="a.ipynb",
        cell_id=CellId("c1"),
        via="contents",
        status="written",
        outputs="inert",
        reason=None,
    )
    text, answer = await told(document=document, source="key = '[redacted: token]'")
    assert answer.cell is not None
    assert answer.cell.source_sha256 is None
    assert text.endswith("; its cell has id c1]")
    text, _ = await told(document=document)
    assert text.endswith(f"; its cell has id c1, source_sha256 {digest_of(b'1')}]")


@pytest.mark.parametrize(("recorded", "duration"), [(1.5, 1.5), (None, None)])
async def test_a_clock_that_was_set_back_does_not_count(
    recorded: float | None, duration: float | None
) -> None:
    set_back = "2026-11-21T07:00:01.500Z"
    text, _ = await told(duration=recorded, finished_at=set_back)
    took = "" if duration is None else ", 1.50 s"
    assert f"[execution x_1 (#3): ok{took}, no output]" in text


@pytest.mark.parametrize(
    ("waiting_for", "said"),
    [
        (None, "It waits; do not send it again."),
        (("agent", "other"), "behind another agent, which calls itself 'other' (execution x_2)"),
        (("person", None), "while the user runs code"),
        (("kernel", None), "for its kernel to be ready"),
        (("pause", None), "since the user has paused all agents"),
    ],
)
async def test_what_waits_says_behind_whom(
    waiting_for: tuple[Any, str | None] | None, said: str
) -> None:
    behind = None
    if waiting_for is not None:
        who, agent = waiting_for
        id = ExecutionId("x_2") if who == "agent" else None
        behind = WaitingFor(who=who, agent=agent, execution_id=id, since=None)
    text, _ = await told(status="queued", finished_at=None, waiting_for=behind)
    assert said in text
    assert 'get_execution(execution_id="x_1", wait=30)' in text


async def test_a_status_that_is_not_well_says_why_and_when() -> None:
    text, _ = await told(status="kernel_died", reason="The kernel ended: signal 9.")
    assert "[The kernel ended: signal 9.]" in text
    assert text.endswith("[execution x_1 (#3): kernel_died, 1.50 s]")


async def test_what_was_not_kept_is_told_exactly() -> None:
    omitted = Omitted(bytes=1234567, lines=5)
    text, structured = await told(outputs_complete=False, omitted=omitted)
    assert "[1,234,567 bytes of output were not kept]" in text
    assert structured.notes == ["1,234,567 bytes of output were not kept"]
    text, _ = await told(omitted=omitted, text=Digest("0" * 64))
    assert 'are not in the cell; get_execution(execution_id="x_1", offset=0)]' in text
    _, structured = await told(outputs_complete=False, omitted=Omitted(unknown=True))
    assert structured.notes == ["Some output may be missing; nobody knows how much"]


async def test_values_share_their_room() -> None:
    large = Value(status="ok", json=["é" * 50] * 5000)
    values = {"small": Value(status="ok", json=1), "large": large}
    values["error"] = Value(status="error", ename="E" * 5000, evalue="v" * 500_000)
    values["table"] = Value(status="ok", type="DataFrame", dtypes={"c" * 90_000: "int64"})
    text, structured = await told(values=values)
    assert structured.values is not None
    assert structured.values["small"] == Value(status="ok", json=1)
    shortened = structured.values["large"]
    assert shortened.truncated is True
    assert shortened.repr is not None
    assert shortened.repr.startswith('["ééé')
    assert "characters left out]" in shortened.repr
    assert structured.values["error"].status == "error"
    assert structured.values["table"].type == "DataFrame"
    assert len(msgspec.json.encode(structured.values)) <= budget.VALUES_BYTES * 1.1
    assert len(text) <= budget.VALUES_BYTES * 1.1
    assert "small = 1" in text


async def test_a_hundred_large_values_are_still_told() -> None:
    values = {f"{i:03}" + "n" * 197: Value(status="ok", json="\0" * 9000) for i in range(100)}
    text, structured = await told(values=values)
    assert structured.values is not None
    assert list(structured.values) == list(values)
    assert len(msgspec.json.encode(structured)) < 100_000
    assert len(msgspec.json.encode(text)) < 100_000


def test_a_cut_list_has_at_least_one_item() -> None:
    assert fitting([], 10) == []
    assert fitting(["a" * 100, "b"], 10) == ["a" * 100]
    assert fitting(["aaa", "bbb", "ccc"], 12) == ["aaa", "bbb"]
    assert fitting(["aaa", "bbb"], 12) == ["aaa", "bbb"]


def test_a_text_that_is_cut_says_how_much_is_missing() -> None:
    assert cut("abc", 3) == "abc"
    assert cut("abcdef", 3) == "abc[… 3 characters left out]"


def test_a_refusal_is_far_below_a_mebibyte_too() -> None:
    huge = {"cells": [{"source": "é" * 1000}] * 5000, "field": "hash"}
    result = refusal(Failure.of(errors.DocumentChanged("It has changed. " + "m" * 90_000, **huge)))
    assert size(result) < 50_000
    (first,) = result.content
    assert isinstance(first, TextContent)
    assert first.text.startswith("document_changed: It has changed. ")
    assert '{"field":"hash","left_out":["cells"]}' in first.text


NOT_OF_TOOLS = {
    errors.AlreadyDecided,
    errors.ApprovalChanged,
    errors.Conflict,
    errors.InitFailed,
    errors.MethodNotAllowed,
    errors.NotInstalled,
    errors.RangeNotSatisfiable,
    errors.Unauthenticated,
    TokenRefused,
}
"""Errors that no tool answers with."""


def test_each_refusal_says_what_to_do_next() -> None:
    found: list[type[errors.AgentExecError]] = [errors.AgentExecError]
    for kind in found:
        found += [each for each in kind.__subclasses__() if "hub_service" not in each.__module__]
    silent = {kind for kind in found if Failure.of(kind("no")).next is None}
    assert silent == {errors.AgentExecError, *NOT_OF_TOOLS}
