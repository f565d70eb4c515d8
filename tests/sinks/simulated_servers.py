"""Several histories, written by one process that can be killed; each stands for a server.

usage: simulated_servers.py SINKS JOURNALS FOLDER...
SINKS is JSON. It writes until its standard input ends; then it waits for the sinks, and ends. It
prints a line when it has begun to write.
"""

from __future__ import annotations

import json
import logging
import select
import sys
import time
from itertools import cycle
from pathlib import Path

from jupyter_agent_exec.journal.history import History
from jupyter_agent_exec.journal.journal import SessionJournal
from jupyter_agent_exec.records import Reviewed, timestamp
from jupyter_agent_exec.sinks.configuration import make_sinks
from jupyter_agent_exec.types import SessionId
from tests.journal.recorded import BY, new_history, opened, run, stream


class Server:
    """One of the simulated servers.

    Parameters
    ----------
    journals
        How many journals its history gets, over all its lives.
    """

    def __init__(self, folder: Path, sinks: list[object], journals: int) -> None:
        self.history: History = new_history(folder, make_sinks(sinks))
        self.done = [SessionId(each.name) for each in (folder / "sessions").glob("s_*")]
        self.open: SessionJournal | None = None
        if len(self.done) < journals:
            self.open = self.history.open_session(opened(at=timestamp()))
        self._seq = 0

    def write(self) -> None:
        """Append to the open journal, and a review to one that has ended."""
        self._seq += 1
        if self.open is not None:
            run(self.open, self._seq, f"step {self._seq}", [stream("x" * (self._seq % 300))])
        if self.done:
            session = self.done[self._seq % len(self.done)]
            verdict = Reviewed(at=timestamp(), by=BY, execution_id=None, verdict="approved")
            self.history.decide(session, [verdict])


def main(sinks: str, journals: str, *folders: str) -> None:
    logging.basicConfig(level=logging.ERROR)
    servers = [Server(Path(each), json.loads(sinks), int(journals)) for each in folders]
    sys.stdout.write("writing\n")
    sys.stdout.flush()
    for server in cycle(servers):
        server.write()
        if select.select([sys.stdin], [], [], 0.02)[0]:
            break
    while any(lag for each in servers for lag in each.history.followers.lags().values()):
        time.sleep(0.05)
    for server in servers:
        server.history.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
