"""What agents may read by a name."""

from __future__ import annotations

import nbformat
import pytest
from mcp_types import BlobResourceContents, TextResourceContents
from msgspec.structs import replace

from jupyter_agent_exec import errors
from jupyter_agent_exec.auth.scopes import Grants
from jupyter_agent_exec.mcp import resources
from jupyter_agent_exec.mcp.resource_uris import execution_uri, image_uri, named, notebook_uri
from jupyter_agent_exec.models import TokenRef
from jupyter_agent_exec.types import ExecutionId, SessionId, TokenId
from tests.mcp.tools_bench import PERSON, Bench, size

PICTURE = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJg"
    "gg=="
)
SHOW = f"from IPython.display import display\ndisplay({{'image/png': {PICTURE!r}}}, raw=True)"


async def text_of(bench: Bench, uri: str) -> str:
    read = await resources.read(bench.begin(), uri)
    assert isinstance(read, TextResourceContents)
    assert read.uri == uri
    assert size(read) < 1_000_000  # type: ignore[arg-type]
    return read.text


def test_names_lead_back_to_what_they_name() -> None:
    assert named(execution_uri(ExecutionId("x_1"))).execution_id == "x_1"
    assert named(execution_uri(ExecutionId("x_1"))).output is None
    assert named(image_uri(ExecutionId("x_1"), 12)).output == 12
    assert named(notebook_uri(SessionId("s_1"))).session_id == "s_1"


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "file:///etc/passwd",
        "jupyter-agent-exec://executions/",
        "jupyter-agent-exec://executions/../x",
        "jupyter-agent-exec://executions/x_1/images/-1",
        "jupyter-agent-exec://executions/x_1/images/1/2",
        "jupyter-agent-exec://sessions/s_1",
        "jupyter-agent-exec://sessions/s_1/notebook\n",
        "JUPYTER-agent-exec://executions/x_1",
    ],
)
def test_other_names_are_of_nothing(uri: str) -> None:
    with pytest.raises(errors.NotFound):
        named(uri)


async def test_an_executions_text_is_read_whole(bench: Bench) -> None:
    session = await bench.open()
    told = await bench.run(session, "for i in range(9000): print('line', i)")
    text = await text_of(bench, execution_uri(told["execution_id"]))
    assert text == "".join(f"line {i}\n" for i in range(9000))


async def test_of_a_huge_text_the_start_is_read_and_how_to_go_on(bench: Bench) -> None:
    session = await bench.open()
    told = await bench.run(session, "print('\\x01é\\n' * 1_000_000)")
    text = await text_of(bench, execution_uri(told["execution_id"]))
    assert "bytes in all; get_execution(" in text


async def test_an_image_is_read_as_it_is(bench: Bench) -> None:
    session = await bench.open()
    told = await bench.run(session, SHOW)
    read = await resources.read(bench.begin(), told["images"][0]["uri"])
    assert isinstance(read, BlobResourceContents)
    assert (read.mime_type, read.blob) == ("image/png", PICTURE)
    with pytest.raises(errors.NotFound):
        await resources.read(bench.begin(), image_uri(told["execution_id"], 1))


async def test_an_image_that_is_too_large_is_to_be_had_over_http(bench: Bench) -> None:
    session = await bench.open()
    source = (
        "import base64\nfrom IPython.display import display\n"
        f"data = base64.b64decode({PICTURE!r}) + bytes(900_000)\n"
        "display({'image/png': base64.b64encode(data).decode()}, raw=True)"
    )
    told = await bench.run(session, source)
    with pytest.raises(errors.PayloadTooLarge, match="Over HTTP, GET /"):
        await resources.read(bench.begin(), told["images"][0]["uri"])


async def test_a_session_is_read_as_a_notebook(bench: Bench) -> None:
    session = await bench.open(title="Sales")
    await bench.run(session, "1 + 1")
    (listed,) = await resources.listed(bench.begin())
    assert (listed.uri, listed.title) == (notebook_uri(SessionId(session)), "Sales")
    notebook = nbformat.reads(await text_of(bench, listed.uri), 4)
    nbformat.validate(notebook)
    assert [cell.source for cell in notebook.cells] == ["1 + 1"]


async def test_a_notebook_that_is_too_large_is_to_be_had_over_http(bench: Bench) -> None:
    session = await bench.open()
    await bench.run(session, "print('\"' * 600_000)")
    with pytest.raises(errors.PayloadTooLarge, match="sessions/"):
        await resources.read(bench.begin(), notebook_uri(SessionId(session)))


async def test_a_token_reads_nothing_of_others(bench: Bench) -> None:
    session = await bench.open()
    told = await bench.run(session, SHOW)
    token = TokenRef(id=TokenId("t_other"), label="other")
    grants = Grants.parse(["exec:scratch"])
    bench.caller = replace(PERSON, access="token", token=token, grants=grants)
    id = ExecutionId(told["execution_id"])
    for uri, error in (
        (execution_uri(id), errors.ExecutionNotFound),
        (image_uri(id, 0), errors.ExecutionNotFound),
        (notebook_uri(SessionId(session)), errors.SessionNotFound),
    ):
        with pytest.raises(error):
            await resources.read(bench.begin(), uri)
    assert await resources.listed(bench.begin()) == []
