"""A session in a notebook, whose executions have ended, and a person who decides about them."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from typing import Any

from jupyter_agent_exec.auth.scopes import Caller
from jupyter_agent_exec.errors import HistoryUnavailable
from jupyter_agent_exec.journal.history import History
from jupyter_agent_exec.journal.session_journal import SessionJournal
from jupyter_agent_exec.models import Agent, Document, ExecutionsQuery, Limits, NotebookTarget
from jupyter_agent_exec.notebooks.changes import Backend
from jupyter_agent_exec.notebooks.documents import Notebooks
from jupyter_agent_exec.notebooks.execution_cells import NotebookWriter
from jupyter_agent_exec.notebooks.output_decisions import OutputDecisions
from jupyter_agent_exec.records import CellWritten, ExecutionRecord, Opened
from jupyter_agent_exec.sessions.activity import Activity
from jupyter_agent_exec.types import SessionId
from tests.journal.recorded import (
    AT,
    BY,
    accepted,
    display,
    finished,
    new_execution_id,
    new_session_id,
)
from tests.notebooks.ways import DictWay, Switch, code

ADA = Caller(username="ada", display_name="Ada", access="full")
SCRIPT = display({"application/javascript": "alert(1)", "text/plain": "<it>"})
INERT = display({"text/plain": "<it>"})


class Sessions:
    """The history, asked as the manager is."""

    def __init__(self, history: History, writable: Any) -> None:
        self.history = history
        self.writable = writable

    async def decide(self, *asked: Any) -> None:
        self.writable.decide(*asked)

    async def session(self, id: str) -> Any:
        return self.history.session(id)

    async def execution(self, id: str) -> Any:
        return self.history.execution(id)

    async def all_executions(self, id: str) -> AsyncIterator[ExecutionRecord]:
        for record in self.history.executions(id, ExecutionsQuery(limit=500))[0]:
            yield record

    async def in_thread(self, call: Any) -> Any:
        return call()


class Told(Activity):
    """Notes what is published, instead of sending it."""

    def __init__(self, published: list[tuple[str, str | None]]) -> None:
        super().__init__(lambda _: None)
        self._published = published

    def publish(self, action: str, session: Any = None, id: str | None = None, **_: Any) -> None:
        self._published.append((action, id))


class Full:
    """A history on a full disk."""

    def decide(self, session_id: SessionId, entries: Any, payloads: Sequence[Any] = ()) -> None:
        raise HistoryUnavailable("The disk is full.")


class Bench:
    """A session in a notebook, whose executions have ended."""

    def __init__(self, history: History, way: DictWay) -> None:
        self.history = history
        self.way = way
        self.switch: Backend = Switch(way)
        self.settled: list[str] = []
        self.published: list[tuple[str, str | None]] = []
        self.session = self._open()
        self.start(history)

    def start(self, history: History) -> None:
        """Begin to decide, as a server does when it starts."""
        self.placing = NotebookWriter(
            Notebooks([self.switch]),
            settle=self.settled.append,
            log=logging.getLogger(__name__),
            merge_delay=0,
            batch_delay=0,
        )
        self.decisions = self.deciding(history, history)

    def deciding(self, history: History, writable: Any) -> OutputDecisions:
        """Return who carries decisions out."""
        return OutputDecisions(
            Sessions(history, writable),
            self.placing,
            Told(self.published),
            log=logging.getLogger(__name__),
        )

    def _open(self) -> SessionJournal:
        return self.history.open_session(
            Opened(
                at=AT,
                by=BY,
                session_id=new_session_id(),
                agent=Agent(name="analyst"),
                target=NotebookTarget(path="a.ipynb"),
                title=None,
                client_id=None,
                limits=Limits(),
                username="ada",
            )
        )

    def ran(
        self, seq: int, *, outputs: Any = (SCRIPT,), what: Any = "held", cell_id: str | None = None
    ) -> str:
        """Record an execution that ended, and put its cell."""
        id = new_execution_id()
        self.records(id, seq, outputs=outputs, what=what, cell_id=cell_id)
        cell = code(
            cell_id or id, "show()", [INERT], agent_exec={"execution_id": id, "outputs": what}
        )
        self.way.content["cells"].append({**cell, "execution_count": 1})
        return id

    def records(
        self, id: str, seq: int, *, outputs: Any, what: Any, cell_id: str | None = None
    ) -> None:
        """Record an execution that ended, and that it has a cell."""
        entry, source = accepted(id, seq, "show()")
        done, payloads = finished(id, list(outputs))
        document = Document(
            path="a.ipynb",
            cell_id=cell_id or id,
            via="tab",
            status="written",
            outputs=what,
            reason=None,
        )
        written = CellWritten(at=AT, by=BY, execution_id=id, document=document)
        self.session.append([entry, done, written], [source, *payloads])

    def outputs(self, id: str) -> Any:
        return self.way.cells[id]["outputs"]

    def ours(self, id: str) -> Any:
        return self.way.cells[id]["metadata"]["agent_exec"]

    def changes(self, id: str, **cell: Any) -> None:
        """Do to a cell what a person does."""
        self.way.content = {
            **self.way.content,
            "cells": [
                {**each, **cell} if each["id"] == id else each for each in self.way.content["cells"]
            ],
        }
