"""A Jupyter server that lives as long as the process that started it wants it to.

`python -m jupyter_agent_exec.own_server.server_process` reads one line of JSON from its standard
input (`ServerOptions`), writes one to its standard output once it listens, and stops when another
line comes, its standard input ends, or the other process dies. What its kernels started ends with
it.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading

import msgspec

from ..workarounds import skip_iri_grammar

skip_iri_grammar()

from jupyter_server.serverapp import ServerApp  # noqa: E402

from .processes import adopt_orphans, end_descendants, wait_for_end  # noqa: E402


class ServerOptions(msgspec.Struct, kw_only=True):
    """What the server is to be."""

    token: str
    root_dir: str
    owner: int
    """The process that started this one."""
    history_dir: str | None = None
    """The extension's default when null."""
    traits: dict[str, str] = {}
    """What else is configured, such as ``ServerApp.port``, as the command line takes it."""


class OwnServer(ServerApp):
    """A server that says when it listens, and stops when it is let go."""

    owner: int

    def start_app(self) -> None:
        """Start, and say where as soon as it listens."""
        super().start_app()
        if "jupyter_agent_exec" not in self.extension_manager.extension_apps:
            self.exit("The extension was not loaded; what is above says why.")
        # The loop first listens; this callback comes after that.
        self.io_loop.add_callback(self._say_where)
        threading.Thread(target=self._stop_when_let_go, name="let-go", daemon=True).start()
        threading.Thread(target=self._stop_when_orphaned, name="orphaned", daemon=True).start()

    def _say_where(self) -> None:
        _ready.write(json.dumps({"url": self.connection_url}) + "\n")
        _ready.close()

    def write_server_info_file(self) -> None:
        """Write none: nobody else is to find a server that ends with somebody's command."""

    def _stop_when_let_go(self) -> None:
        sys.stdin.buffer.readline()
        self.io_loop.add_callback(self.stop)

    def _stop_when_orphaned(self) -> None:
        # Its pipe to us stays open as long as a process lives that it has forked.
        wait_for_end(self.owner)
        self.io_loop.add_callback(self.stop)


def _arguments(options: ServerOptions) -> list[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    traits = {
        "ServerApp.jpserver_extensions": "{'jupyter_agent_exec': True}",
        "ServerApp.ip": "127.0.0.1",
        "ServerApp.port": str(port),
        "ServerApp.port_retries": "50",
        "ServerApp.sock": "",
        "ServerApp.certfile": "",
        "ServerApp.keyfile": "",
        "ServerApp.open_browser": "False",
        "ServerApp.allow_root": "True",
        "ServerApp.root_dir": options.root_dir,
        "IdentityProvider.token": options.token,
    }
    if options.history_dir is not None:
        traits["AgentExecApp.history_dir"] = options.history_dir
    return [f"--{name}={value}" for name, value in (traits | options.traits).items()]


def main() -> None:
    """Serve until it is let go."""
    options = msgspec.json.decode(sys.stdin.buffer.readline(), type=ServerOptions)
    adopt_orphans()
    app = OwnServer.instance()
    app.owner = options.owner
    # Only this extension: others that the person has would make the start slow.
    app.initialize(_arguments(options), find_extensions=False)
    try:
        app.start()
    finally:
        end_descendants()


if __name__ == "__main__":
    # Kernels inherit standard output; what they write there must not end up in the answer.
    _ready = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    main()
