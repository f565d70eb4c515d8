"""What anybody may send to every route, with whatever credential."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from typing import NamedTuple

from jupyter_server.auth import passwd

from jupyter_agent_exec.app import AgentExecApp
from jupyter_agent_exec.auth.operations import operations
from tests.asking import Answered

PASSWORD = "a-password-of-the-tests"
HASHED = passwd(PASSWORD)
NOWHERE = {
    "session_id": "s_01JD0000000000000000000000",
    "execution_id": "x_01JD0000000000000000000000",
    "digest": "0" * 64,
    "path": "no/such.ipynb",
    "token_id": "t_01JD0000000000000000000000",
    "filename": "no-such-file",
    "kernel_id": "01234567-0000-4000-8000-000000000000",
}


class Verb(NamedTuple):
    """A verb of a route."""

    method: str
    template: str

    @property
    def path(self) -> str:
        """An address where nothing is."""
        return self.template.format(**NOWHERE)

    def at(self, things: Mapping[str, str]) -> str:
        """Return an address; that of no file, where one would be written or deleted."""
        address = self.template.format(**things)
        changes_a_file = "/files/" in address and self.method in ("PUT", "DELETE")
        return f"{address}/." if changes_a_file else address

    @property
    def body(self) -> str | None:
        """What changes nothing, whoever sends it."""
        return '{"no_such_field": 1}' if self.method not in ("GET", "DELETE") else None

    @property
    def status(self) -> int:
        """How it answers whoever may ask."""
        if self.path.startswith("aca/"):
            return 400  # the query names no session
        if "/files/" in self.path:
            return 404  # any body would do
        if self.body is not None:
            return 400
        return 404 if any(id in self.path for id in NOWHERE.values()) else 200


VERBS = [
    Verb(verb.upper(), path.lstrip("/"))
    for path, handler in AgentExecApp.routes
    for verb in operations(handler)
    if verb != "head"  # answers as GET does, without a body
]


def alert(answered: Answered) -> str:
    """Return what a page says is wrong."""
    [found] = re.findall(r'role="alert">(.*?)</p>', answered.body.decode(), re.DOTALL)
    return html.unescape(found)


def hidden_fields(page: str) -> dict[str, str]:
    """Return the fields of a page's first form that nobody sees."""
    form = page.partition("</form>")[0]
    found = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', form)
    return {name: html.unescape(value) for name, value in found}


class LoggedIn(NamedTuple):
    """What a browser holds after its person has logged in."""

    cookie: str
    xsrf: str
