"""The whole way once, on real data: `python -m examples.demo`, or `make demo`.

Starts a Jupyter server on a free port of this machine, lets the example agent analyse the penguins
in a scratch session, exports the session as a notebook, stops the server, verifies what was
recorded and exported, and says what there is now. The exit code is 0 only if all of it went well.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections import Counter
from pathlib import Path

from examples.penguins.agent import analyse
from jupyter_agent_exec.cli import main as agent_exec
from jupyter_agent_exec.client import Agent, AgentExecClient, Result
from jupyter_agent_exec.models import Session
from jupyter_agent_exec.own_server.launch import own_server

OUTPUT = Path("demo-output")
"""What the server serves: the data, and the exported notebook."""

HISTORY = ".history"
"""Folder of the history, in OUTPUT; hidden, so that it is not served."""

LOG = "server.log"
"""The server's log, in OUTPUT."""

DATA = Path(__file__).parent / "penguins" / "penguins.csv"


def prepare(output: Path) -> None:
    """Make `output` an empty folder but for the data.

    Raises
    ------
    SystemExit
        It holds something that no demo has left there.
    """
    if output.exists() and any(output.iterdir()) and not (output / HISTORY).is_dir():
        raise SystemExit(f"{output} is not empty and not of a demo; name another folder.")
    shutil.rmtree(output, ignore_errors=True)
    (output / HISTORY).mkdir(parents=True)
    shutil.copy(DATA, output)


def run(output: Path) -> tuple[list[Result], Session, Path]:
    """Let the agent work; return its results, its session, and the notebook."""
    with own_server(output, output / HISTORY, output / LOG) as server:
        print(f"A Jupyter server listens at {server.url}")
        with AgentExecClient(server.url, server.token) as client:
            agent = Agent(name="penguin-analyst", version="1.0")
            with client.open_session(agent, title="What do penguins weigh?") as session:
                results = analyse(session, DATA.name)
            notebook = session.export(output / "penguins.ipynb")
            return results, client.session(session.id).info, notebook


def summarise(results: list[Result], session: Session, notebook: Path) -> None:
    """Print what there is now."""
    statuses = Counter(result.status for result in results)
    images = sum(len(result.images) for result in results)
    seconds = sum(result.execution.duration or 0 for result in results)
    print(f"session     {session.id}, {session.status}")
    print(f"cells       {len(results)}, in {seconds:.1f} s of running")
    print(f"statuses    {', '.join(f'{count} {status}' for status, count in statuses.items())}")
    print(f"images      {images}")
    print(f"chain head  {session.chain.head} ({session.chain.length} entries)")
    print(f"notebook    {notebook}")


def main() -> int:
    """Run the demo and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--output",
        type=Path,
        default=OUTPUT,
        help=f"folder to empty and fill, with the history in {HISTORY} (%(default)s)",
    )
    output: Path = parser.parse_args().output
    prepare(output)
    results, session, notebook = run(output)
    history = str(output / HISTORY)
    print("\n── Verify the record, and the notebook against it")
    altered = agent_exec(["verify", history, "--head", session.chain.head])
    altered += agent_exec(["verify", str(notebook), "--history", history])
    print("\n── Summary")
    summarise(results, session, notebook)
    print("\n── What comes next")
    if output == OUTPUT:
        print("`make lab` opens JupyterLab with this session, beside the panel of what agents do.")
    print("docs/tutorials/first-agent.md gives an agent of your own access to your notebook.")
    failed = [result for result in results if result.status not in ("ok", "error")]
    mistakes = sum(result.status == "error" for result in results)
    return 0 if not altered and not failed and mistakes == 1 else 1


if __name__ == "__main__":
    sys.exit(main())
