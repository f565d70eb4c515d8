"""The client in a person's notebook: a real server, a real kernel, a notebook that is not open."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from jupyter_agent_exec.client import (
    AgentExecClient,
)
from tests.person import Person, person_at, runs
from tests.real_server import PROJECT, RealServer


@pytest.fixture
def person(server: RealServer) -> Iterator[Person]:
    with person_at(server) as person:
        yield person


def sources(notebook: Any) -> list[str]:
    return [cell.source for cell in notebook.cells]


def test_an_agent_shares_the_users_variables_and_notebook(
    client: AgentExecClient, person: Person
) -> None:
    person.writes("shared.ipynb", "x = 20")
    kernel_id = person.opens("shared.ipynb")
    with person.at(kernel_id) as kernel:
        assert runs(kernel, "x = 20") == "ok"
    with client.open_session("tester", notebook="shared.ipynb") as session:
        assert session.info.path == "shared.ipynb"
        result = session.run("x + 1")
        # A file is written in its own time; what is known of the cell is told all the while.
        looks = [result, client.execution(result.id), *session.executions()]
        assert [look.document is not None for look in looks] == [True, True, True]
    assert result.execution.kernel is not None
    assert result.execution.kernel.id == kernel_id
    assert result.text.strip() == "21"
    document = client.execution(result.id).document
    assert document is not None
    assert (document.path, document.via, document.status) == ("shared.ipynb", "contents", "written")
    notebook = person.reads("shared.ipynb")
    assert sources(notebook) == ["x = 20", "x + 1"]
    assert notebook.metadata.person == "ada"
    assert notebook.cells[1].id == document.cell_id
    assert notebook.cells[1].outputs[0].data["text/plain"] == "21"
    with person.at(kernel_id) as kernel:
        assert runs(kernel, "assert x == 20") == "ok", "the kernel outlives the session"


def test_the_examples_in_the_docs_work_in_a_notebook(
    client: AgentExecClient, person: Person, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (PROJECT / "docs" / "reference" / "client.md").read_text() + (
        PROJECT / "docs" / "explanation" / "notebooks.md"
    ).read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    in_notebook, edits = (block for block in blocks if "InsertCell(" in block)
    person.writes("work/sales.ipynb", "import collections\nsales = collections.Counter('abc')")
    exec(in_notebook.replace("sales.describe()", "'sales'"), {"client": client})
    assert "import collections" in capsys.readouterr().out
    assert sources(person.reads("work/sales.ipynb"))[1:] == ["# Sales", "'sales'"]
    with client.open_session("tester", notebook="work/sales.ipynb") as session:
        exec(edits, {"session": session})
    assert sources(person.reads("work/sales.ipynb"))[:2] == [
        "# Sales by region",
        "import pandas as pd",
    ]
