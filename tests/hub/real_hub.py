"""A real JupyterHub with its proxy. Its users' servers have the extension."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.ports import free_port
from tests.real_server import NOTHING_ASKS, environment, until

PROXY = Path(__file__).parent / "node_modules" / ".bin" / "configurable-http-proxy"
SERVICE_TOKEN = "a-token-of-the-hub"

EXTENSIONS = {
    "jupyter_agent_exec": True,
    **dict.fromkeys(("jupyter_lsp", "jupyter_server_ydoc", "jupyterlab", "notebook"), False),
}
"""Of a person's server: what else is installed starts slowly, and logs what goes wrong in it."""

CONFIG = """
import sys

c.JupyterHub.bind_url = "http://127.0.0.1:{public}{base_url}"
c.JupyterHub.hub_bind_url = "http://127.0.0.1:{hub}"
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{proxy}"
c.ConfigurableHTTPProxy.command = [{command!r}]
c.JupyterHub.db_url = "sqlite:///hub.sqlite"
c.JupyterHub.authenticator_class = "dummy"
c.Authenticator.allow_all = True
c.JupyterHub.spawner_class = "simple"
c.SimpleLocalProcessSpawner.home_dir_template = "{folder}/{{username}}"
c.Spawner.cmd = [sys.executable, "-m", "jupyterhub.singleuser"]
c.Spawner.env_keep = {names!r}
c.Spawner.start_timeout = c.Spawner.http_timeout = 120
c.JupyterHub.tornado_settings = {{"slow_stop_timeout": 100}}  # answer when it has stopped
c.Spawner.args = [
    "--allow-root",
    "--ServerApp.jpserver_extensions={extensions}",
    "--AgentExecApp.history_dir={folder}/history",
    "--AgentExecApp.approval={approval}",
]
c.JupyterHub.services = [{{"name": "tests", "api_token": {token!r}}}]
c.JupyterHub.load_roles = [
    {{
        "name": "tests",
        "services": ["tests"],
        "scopes": ["admin:users", "admin:servers", "access:servers", "tokens"],
    }}
]
{more}
"""


class RealHub:
    """A hub that can be stopped and started again; its proxy goes on meanwhile.

    Parameters
    ----------
    folder
        Where it runs.
    more
        More lines of its configuration, in which `{public}` is the proxy's address.
    """

    def __init__(self, folder: Path, more: str = "", base_url: str = "/") -> None:
        self.folder = folder
        self.environ = environment(folder)
        public, hub_port, proxy, self.free = (free_port() for _ in range(4))
        self.public = f"http://127.0.0.1:{public}{base_url.rstrip('/')}"
        """Its address, without a slash at the end."""
        self.origin = f"http://127.0.0.1:{public}"
        (folder / "jupyterhub_config.py").write_text(
            CONFIG.format(
                public=public,
                base_url=base_url,
                hub=hub_port,
                proxy=proxy,
                command=str(PROXY),
                folder=folder,
                extensions=EXTENSIONS,
                names=sorted(self.environ),
                approval=NOTHING_ASKS,
                token=SERVICE_TOKEN,
                more=more.replace("{public}", self.public).replace("{free}", str(self.free)),
            )
        )
        self._log = folder / "hub.log"  # of the servers too, which may outlive the hub

    def start(self) -> None:
        with self._log.open("ab") as log:
            begun = log.tell()
            self.process = subprocess.Popen(
                [sys.executable, "-m", "jupyterhub"],
                cwd=self.folder,
                env=self.environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        until(
            lambda: (
                b"JupyterHub is now running" in self._log.read_bytes()[begun:]
                or self.process.poll() is not None
            ),
            120,
        )
        assert self.process.poll() is None, self.log

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(60)

    @property
    def log(self) -> str:
        return self._log.read_text()

    def as_service(self, method: str, path: str, said: Any = None) -> httpx2.Response:
        return httpx2.request(
            method,
            f"{self.public}/hub/api/{path}",
            json=said,
            headers={"Authorization": f"token {SERVICE_TOKEN}"},
            timeout=120,
            trust_env=False,
        )

    def start_server(self, user: str, name: str = "") -> None:
        """Start a server, and return when the hub says that it is ready."""
        started = self.as_service("POST", self._server(user, name))
        assert started.status_code in (201, 202), started.text
        self.wait_for_server(user, name)

    def wait_for_server(self, user: str, name: str = "") -> None:
        """Return when the hub says that a server that starts is ready."""
        with httpx2.stream(
            "GET",
            f"{self.public}/hub/api/{self._server(user, name)}/progress",
            headers={"Authorization": f"token {SERVICE_TOKEN}"},
            timeout=60,
            trust_env=False,
        ) as answered:
            told = [json.loads(line[5:]) for line in answered.iter_lines() if line[:5] == "data:"]
        assert told[-1].get("ready"), (told, self.log)

    def stop_server(self, user: str, name: str = "") -> None:
        """Stop a server, and return when it has ended."""
        stopped = self.as_service("DELETE", self._server(user, name))
        assert stopped.status_code in (202, 204), stopped.text

    def user_token(self, user: str) -> str:
        """Return a token of a user's own."""
        minted = self.as_service("POST", f"users/{user}/tokens", {"note": "tests"})
        return str(minted.json()["token"])

    def ask_server(self, user: str, method: str, path: str) -> httpx2.Response:
        """Ask the extension in a user's server as the user."""
        return httpx2.request(
            method,
            f"{self.public}/user/{user}/api/agent-exec/{path}",
            headers={"Authorization": f"token {self.user_token(user)}"},
            timeout=90,
            trust_env=False,
        )

    def pid(self, user: str) -> int:
        """Return the id of a server's process."""
        found = self.as_service("GET", f"users/{user}").json()
        return int(found["servers"][""]["state"]["pid"])

    def stop_servers(self) -> None:
        """Stop all servers, and return when they have ended."""
        for user in self.as_service("GET", "users?state=active").json():
            for name in user["servers"]:
                self.stop_server(user["name"], name)

    def _server(self, user: str, name: str) -> str:
        return f"users/{user}/servers/{name}" if name else f"users/{user}/server"


@contextmanager
def real_hub(folder: Path, more: str = "", base_url: str = "/") -> Iterator[RealHub]:
    pytest.importorskip("jupyterhub")
    if not PROXY.exists():
        pytest.skip("configurable-http-proxy is not installed; run `make .make/hub`")
    hub = RealHub(folder, more, base_url)
    try:
        hub.start()
        yield hub
    finally:
        hub.stop()
