"""An example agent in a person's notebook: it looks at what they have and describes their tables.

    python examples/notebook/agent.py [path of a notebook]

Without a path it takes a notebook that is open. It reads the cells, runs code in the notebook's
kernel, where the person's variables are, and puts a heading above what it added.
"""

from __future__ import annotations

import ast
import sys
from typing import Literal

from jupyter_agent_exec.client import Agent, AgentExecClient, InsertCell, Placement, Result, Session

TABLES = """\
# Which tables are here?
[
    name
    for name, value in list(globals().items())
    if type(value).__name__ == "DataFrame" and not name.startswith("_")
]"""

MAX_TABLES = 3


def choose(client: AgentExecClient) -> str:
    """Return the path of a notebook that is open, with a kernel if there is one.

    Raises
    ------
    SystemExit
        None is.
    """
    notebooks = sorted(client.notebooks(), key=lambda notebook: notebook.kernel is None)
    if not notebooks:
        raise SystemExit("No notebook is open. Open one in JupyterLab, or name one.")
    return notebooks[0].path


def say(result: Result) -> None:
    """Print what an agent reads, and where the cell is."""
    print(f"\n── {result.summary}\n{result}")
    if result.document is not None:
        print(f"   {result.document.status} in {result.document.path}, by {result.document.via}")


def below(result: Result) -> Placement | Literal["end"]:
    """Return the place under a result's cell, or the end if it has none."""
    document = result.document
    if document is None or document.cell_id is None:
        return "end"
    return Placement(after=document.cell_id)


def describe_tables(session: Session) -> list[Result]:
    """Find the person's tables and describe each, in cells below each other."""
    notebook = session.cells()
    print(f"{notebook.path}: {len(notebook.cells)} cells, read by {notebook.via}")
    # A person's cell that runs goes first: then this waits, and says behind whom if it is asked.
    found = session.run(TABLES, raise_on_error=True)
    results = [found]
    for name in ast.literal_eval(found.text)[:MAX_TABLES]:
        results.append(session.run(f"{name}.describe()", placement=below(results[-1])))
    return results


def head(session: Session, results: list[Result]) -> None:
    """Put a heading above the first of the cells."""
    first = results[0].document
    if first is not None and first.cell_id is not None:
        text = f"## Tables\n\n*An agent looked, and found {len(results) - 1}.*"
        session.edit([InsertCell(cell_type="markdown", source=text, before=first.cell_id)])


def main() -> None:
    """Work in the notebook that is named, or in one that is open."""
    agent = Agent(name="table-reader", version="1.0")
    with AgentExecClient() as client:
        path = sys.argv[1] if len(sys.argv) > 1 else choose(client)
        with client.open_session(agent, notebook=path, title="Which tables are here?") as session:
            results = describe_tables(session)
            head(session, results)
            for result in results:
                say(result)


if __name__ == "__main__":
    main()
