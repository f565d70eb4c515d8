"""The service at a real hub: its configuration, and people who sign programs in with a browser."""

from __future__ import annotations

import httpx2

from tests.auth.access_asking import HASHED, PASSWORD, hidden_fields
from tests.hub.real_hub import RealHub

CONFIGURATION = """
import os
import jupyterhub.services.service as managed
from tornado import web
from traitlets import Integer

class ServiceProcess(managed._ServiceSpawner):
    poll_interval = Integer(1)  # the hub looks each second whether the service runs, not each 30

managed._ServiceSpawner = ServiceProcess
c.JupyterHub.services.append({
    "name": "agent-exec",
    "url": "http://127.0.0.1:{free}",
    "command": [sys.executable, "-m", "jupyter_agent_exec.cli", "hub", "--hub-url", "{public}/"],
    "oauth_no_confirm": True,
    "oauth_client_allowed_scopes": ["access:servers!user"],
})
c.JupyterHub.load_roles += [
    {"name": "agent-exec", "services": ["agent-exec"], "scopes": ["servers", "read:tokens"]},
    {"name": "user", "scopes": ["self", "access:services!service=agent-exec"]},
]
c.JupyterHub.allow_named_servers = True
c.JupyterHub.cleanup_servers = False  # a restart of the hub leaves them running

def prepare(spawner):
    if os.path.exists("no-room"):
        raise web.HTTPError(507, "There is no room.")
    if spawner.user.name == "bob":
        spawner.args = [*spawner.args, "--AgentExecApp.mcp_disconnect_interrupts=True"]
    if spawner.user.name == "cleo":
        spawner.args = [*spawner.args, "--AgentExecApp.decision_passphrase_hash={hash}"]

c.Spawner.pre_spawn_hook = prepare
""".replace("{hash}", HASHED)

RIGHTS_BY_GROUP = """
# What a user may do at the hub is asked again each second, not each 30.
SERVICE = '''
import sys
from jupyter_agent_exec.hub_service import user_servers
user_servers.ACCESS_SECONDS = 1.0
from jupyter_agent_exec.cli import main
sys.exit(main())
'''
SERVER = '''
from jupyter_agent_exec import server
server.HUB_INTERVAL = 1.0
from jupyterhub.singleuser import main
main()
'''
c.Spawner.cmd = [sys.executable, "-c", SERVER]
c.JupyterHub.services[-1]["command"][1:3] = ["-c", SERVICE]
c.JupyterHub.load_roles[-1]["scopes"] = []
c.JupyterHub.load_roles += [
    {"name": "members", "groups": ["members"], "scopes": ["self"]},
    {"name": "agents", "groups": ["agents"], "scopes": ["access:services!service=agent-exec"]},
    {"name": "groups", "services": ["tests"], "scopes": ["groups"]},
]
c.JupyterHub.load_groups = dict.fromkeys(
    ["members", "agents"], {"users": ["ada", "bob", "cleo", "dora"]}
)
"""
"""More of the configuration: a user's rights are those of groups, and can be taken away."""


def service(hub: RealHub) -> str:
    return f"{hub.public}/services/agent-exec"


class Person:
    """A user of the hub, with a browser that has no screen."""

    def __init__(self, hub: RealHub, name: str) -> None:
        self.hub = hub
        self.name = name
        self.browser = httpx2.Client(trust_env=False, follow_redirects=True, timeout=120)

    def open(self, address: str) -> httpx2.Response:
        """Open a page, log in and wait for the server if the hub asks for that."""
        page = self.browser.get(address)
        if "/hub/login" in page.url.path:
            known = {"username": self.name, "password": "", **hidden_fields(page.text)}
            page = self.browser.post(page.url, data=known)
        if "/hub/spawn-pending/" in page.url.path:
            server = page.url.path.rpartition("/")[2]
            self.hub.wait_for_server(self.name, "" if server == self.name else server)
            page = self.browser.get(page.url)
        return page

    def agree(self, address: str, **answered: str) -> httpx2.URL:
        """Agree on the page of consent, and return where that leads."""
        page = self.answer(self.open(address), **answered)
        if page.status_code == 403:  # it asks for the passphrase
            page = self.answer(page, passphrase=PASSWORD, **answered)
        assert page.status_code == 303, page.text
        return httpx2.URL(page.headers["Location"])

    def answer(self, page: httpx2.Response, **answered: str) -> httpx2.Response:
        form = {
            "decision": "allow",
            "label": "Of the tests",
            "scope": "exec:scratch",
            "expires_in": "3600",
            **hidden_fields(page.text),
            **answered,
        }
        return self.browser.post(page.url.join("consent"), data=form, follow_redirects=False)

    def revoke(self, page: httpx2.Response, token_id: str) -> httpx2.Response:
        form = {**hidden_fields(page.text), "revoke": token_id}
        return self.browser.post(page.url, data=form)
