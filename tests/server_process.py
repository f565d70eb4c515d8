"""A Jupyter server in a process of its own that can be killed, and started again where it was."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import httpx2
import psutil

from tests.real_server import NOTHING_ASKS, TOKEN, environment, start_server


class ServerProcess:
    """A server that listens.

    Parameters
    ----------
    folder
        Of Jupyter's folders and the served root; the history is in `history` there.
    wrapper
        A command that ends by executing the one it is given.
    log
        Where its log goes; None is this process's own.
    """

    def __init__(
        self,
        folder: Path,
        *options: str,
        wrapper: Sequence[str] = (),
        approval: dict[str, str] = NOTHING_ASKS,
        log: IO[str] | None = None,
    ) -> None:
        self.folder = folder
        (folder / "root").mkdir(exist_ok=True)
        self.process = start_server(
            folder,
            *options,
            approval=approval,
            environ=environment(folder),
            wrapper=wrapper,
            stderr=log,
            is_forked=True,
            forks_kernels=False,  # they are its children, whatever ends it
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            self.process.wait(30)
            raise RuntimeError("The server did not start; see its log above.")
        self.api = json.loads(line)["url"].partition("?")[0] + "api/agent-exec/"
        self._http = httpx2.Client(
            base_url=self.api,
            headers={"Authorization": f"token {TOKEN}"},
            timeout=60,
            trust_env=False,
        )

    def ask(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> httpx2.Response:
        return self._http.request(method, path, json=body, headers=headers)

    def get(self, path: str) -> Any:
        answered = self.ask("GET", path)
        assert answered.status_code == 200, answered.text
        return answered.json()

    def open(self, **asked: Any) -> str:
        answered = self.ask("POST", "sessions", {"agent": {"name": "tester"}, **asked})
        assert answered.status_code == 201, answered.text
        return str(answered.json()["id"])

    def run(self, session: str, source: str, **asked: Any) -> httpx2.Response:
        return self.ask("POST", f"sessions/{session}/executions", {"source": source, **asked})

    @contextmanager
    def ask_stream(self, path: str) -> Iterator[Iterator[str]]:
        """Read an answer line by line, as it comes."""
        with self._http.stream("GET", path) as answered:
            yield answered.iter_lines()

    def kill(self) -> None:
        """Kill the server where it stands, and then the kernels that it leaves."""
        self.process.send_signal(signal.SIGSTOP)  # so that no kernel is started after the look
        kernels = psutil.Process(self.process.pid).children(recursive=True)
        self.process.kill()
        self.gone()
        for kernel in kernels:
            with_its_own_pid(kernel)
        psutil.wait_procs(kernels, timeout=10)

    def stop(self) -> None:
        """Ask the server to stop, as an operator does."""
        self.process.terminate()
        self.gone()

    def gone(self) -> None:
        """Wait until the server has ended."""
        try:
            self.process.wait(30)
        finally:
            self.process.kill()
            self.process.wait()
            self._http.close()
            if self.process.stdout is not None:
                self.process.stdout.close()


def with_its_own_pid(kernel: psutil.Process) -> None:
    """End a kernel, if it is not gone already."""
    try:
        kernel.kill()
    except psutil.NoSuchProcess:
        return


@contextmanager
def server_process(
    folder: Path,
    *options: str,
    wrapper: Sequence[str] = (),
    approval: dict[str, str] = NOTHING_ASKS,
    log: IO[str] | None = None,
) -> Iterator[ServerProcess]:
    """Start a server, and stop it unless it was killed."""
    server = ServerProcess(folder, *options, wrapper=wrapper, approval=approval, log=log)
    try:
        yield server
    finally:
        if server.process.returncode is None:
            server.stop()


class Gate:
    """A place in the code of a kernel at which it says that it is there, and waits to be let on."""

    def __init__(self, folder: Path, name: str) -> None:
        self._here, self._go = folder / f"{name}-here", folder / f"{name}-go"
        os.mkfifo(self._here)
        os.mkfifo(self._go)

    @property
    def here(self) -> str:
        """Code that says that it is there."""
        return f"open({str(self._here)!r}, 'w').close()\n"

    @property
    def wait(self) -> str:
        """Code that waits."""
        return f"open({str(self._go)!r}).read()\n"

    def until_it_is_here(self) -> None:
        self._here.read_text()

    def let_it_on(self) -> None:
        self._go.write_text("")
