"""From a record to what a client is answered, without a server."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from msgspec.structs import replace

from jupyter_agent_exec.aca.outcome import outcome
from jupyter_agent_exec.journal.outputs import kept_images
from jupyter_agent_exec.models import Agent, Chain, ExecutionError, ExecutionKernel, Omitted
from jupyter_agent_exec.records import ExecutionRecord
from jupyter_agent_exec.types import Digest, ExecutionId, SessionId

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
    "+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
NOTE = f"1\N{MULTIPLICATION SIGN}1 png, {len(base64.b64decode(PIXEL))} bytes]"


def record(*outputs: dict[str, Any], **more: Any) -> ExecutionRecord:
    said: dict[str, Any] = {
        "status": "ok",
        "reason": None,
        "error": None,
        "kernel": None,
        "values": None,
        "token": None,
        "duration": None,
        "waiting_for": None,
        "document": None,
        **more,
    }
    return ExecutionRecord(
        id=ExecutionId("x_1"),
        session_id=SessionId("s_1"),
        seq=1,
        init=False,
        source="",
        agent=Agent(name="a"),
        username="ada",
        timeout=None,
        execution_count=1,
        outputs=list(outputs),
        blobs=(),
        accepted_at="",
        started_at=None,
        finished_at=None,
        outputs_complete=True,
        omitted=Omitted(),
        interrupt_ignored=False,
        text=None,
        text_bytes=0,
        omitted_text_bytes=0,
        entry_hash=None,
        chain=Chain(head=Digest("0" * 64), length=1),
        **said,
    )


def stream(name: str, text: str) -> dict[str, Any]:
    return {"output_type": "stream", "name": name, "text": text}


def shown(data: dict[str, Any], kind: str = "display_data") -> dict[str, Any]:
    return {"output_type": kind, "data": data, "metadata": {}}


ERROR = {
    "output_type": "error",
    "ename": "ValueError",
    "evalue": "no",
    "traceback": ["\x1b[31mValueError\x1b[0m: no"],
}


def test_streams_and_the_value_are_apart() -> None:
    told = outcome(
        record(
            stream("stdout", "one "),
            stream("stderr", "careful"),
            stream("stdout", "two\n"),
            shown({"text/plain": "42"}, "execute_result"),
        ),
        {},
    )
    assert (told.status, told.stdout, told.stderr, told.result) == (
        "Success",
        "one two\n",
        "careful\n",
        "42",
    )


def test_nothing_is_nothing() -> None:
    told = outcome(record(), {})
    assert (told.stdout, told.stderr, told.result) == ("", "", "")


def test_what_is_displayed_stands_between_what_is_written() -> None:
    told = outcome(
        record(stream("stdout", "a"), shown({"text/plain": "b"}), stream("stdout", "c")), {}
    )
    assert told.stdout == "a\nb\nc"


def test_an_image_is_where_it_is_kept_and_never_its_data() -> None:
    figure = {"image/png": PIXEL, "text/plain": "<Figure size 1x1>"}
    outputs = [shown(figure), shown(figure, "execute_result")]
    told = outcome(record(*outputs), {0: "x_1-1.png", 1: "/api/agent-exec/blobs/0"})
    assert told.stdout == f"[image x_1-1.png: {NOTE}"
    assert told.result == f"[image /api/agent-exec/blobs/0: {NOTE}"
    assert len(kept_images(outputs, ())) == 2


def test_a_failure_has_its_traceback_without_colours_and_no_result() -> None:
    told = outcome(
        record(
            stream("stdout", "before\n"),
            shown({"text/plain": "1"}, "execute_result"),
            ERROR,
            status="error",
            error=ExecutionError(ename="ValueError", evalue="no", traceback=[]),
        ),
        {},
    )
    assert (told.status, told.stdout, told.stderr, told.result) == (
        "Failure",
        "before\n",
        "ValueError: no\n",
        "",
    )


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ("timed_out", "timed out"),
        ("interrupted", "was interrupted"),
        ("kernel_died", "The kernel died"),
        ("cancelled", "was cancelled"),
        ("rejected", "was rejected"),
        ("lost", "server died"),
    ],
)
def test_an_end_that_is_no_exception_is_a_sentence(status: str, said: str) -> None:
    told = outcome(record(stream("stderr", "so far"), status=status), {})
    assert told.status == "Failure"
    first, last = told.stderr.splitlines()
    assert first == "so far"
    assert last.startswith("[")
    assert said in last
    reason = outcome(record(status=status, reason="It was so."), {})
    assert reason.stderr == "[It was so.]\n"


def test_that_variables_are_gone_is_told_also_of_a_success() -> None:
    kernel = ExecutionKernel(
        id="k", name="python3", incarnation=2, restarted=True, reason="crashed"
    )
    told = outcome(replace(record(), kernel=kernel), {}, ["And more."])
    assert told.status == "Success"
    assert told.stderr.splitlines() == [
        "[And more.]",
        "[The kernel is a fresh one (crashed); earlier variables are gone.]",
    ]
