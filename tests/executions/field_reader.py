"""Runs one execution through the record, and prints where a field of it is shown, as JSON.

`test_new_field.py` starts this with a copy of the package that has a field more.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec

from jupyter_agent_exec.app import AgentExecApp
from jupyter_agent_exec.auth.openapi import document
from jupyter_agent_exec.auth.scopes import Caller
from jupyter_agent_exec.auth.validation import read_body
from jupyter_agent_exec.client.requests import ExecuteOptions, execute_request
from jupyter_agent_exec.executions.live_executions import LiveExecutions
from jupyter_agent_exec.executions.spec import ExecutionSpec
from jupyter_agent_exec.models import Execute, ExecutionsQuery, Session
from jupyter_agent_exec.sessions.answers import execution as answer
from tests.journal.recorded import dispatched, finished, new_history, opened

LIMITS: Any = SimpleNamespace(timeout=60.0, queue_timeout=None, max_output_bytes=1_000_000)
SERVER: Any = SimpleNamespace(rules=SimpleNamespace(paused=None, pausing=None), log=None)
CALLER = Caller(username="ada", display_name="Ada", access="full")


async def shown(folder: Path, asked: ExecuteOptions, found: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is shown of an execution.

    Parameters
    ----------
    asked
        Fields that an agent's program gives the client.
    found
        Fields that are known when it ends.
    """
    sent = msgspec.json.encode(execute_request("1", asked))
    request = read_body(sent, Execute, limit_bytes=10_000)
    history = new_history(folder)
    session = opened()
    journal = history.open_session(session)
    spec = ExecutionSpec.of_request(
        request,
        CALLER,
        LIMITS,
        place=None,
        revision=(None, None),
        restores=None,
        idempotency_key=None,
        body_sha256=None,
    )
    record: Session = history.session(session.session_id)
    execution = LiveExecutions(record, journal, [], SERVER).add(spec, "none")
    entry, payloads = execution.acceptance()
    journal.append([entry, dispatched(execution.id)], payloads)
    end, more = finished(execution.id, [], **found)
    journal.append_final([end], more)
    history.until_ready().result(timeout=30)
    listed, _ = history.executions(session.session_id, ExecutionsQuery(outputs="brief"))
    notebook = json.loads("".join(history.notebook(session.session_id)))
    lines = history.journal_path(session.session_id).read_text().splitlines()
    described = document(AgentExecApp.routes, version="0", base_path="/")["components"]["schemas"]
    told = {
        "entries": [json.loads(line) for line in lines],
        "running": msgspec.to_builtins(answer(execution.standing(), "/")),
        "listed": msgspec.to_builtins(answer(listed[0], "/")),
        "answer": msgspec.to_builtins(answer(history.execution(execution.id), "/")),
        "cell": notebook["cells"][0]["metadata"]["agent_exec"],
        "described": described["Execution"]["properties"],
        "described_request": described["Execute"]["properties"],
    }
    history.stop()
    return told


def main() -> None:
    """Print what is shown, with the fields of the two arguments."""
    asked, found = (json.loads(argument) for argument in sys.argv[1:])
    with tempfile.TemporaryDirectory() as folder:
        json.dump(asyncio.run(shown(Path(folder), asked, found)), sys.stdout)


if __name__ == "__main__":
    main()
