"""How agents come in: by a token of their own, of which Jupyter's identity provider knows nothing.

Before any verb it is looked at whether the token reaches what the route's path names. A route whose
path names nothing is for people, unless its verb says what of it agents get.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn
from urllib.parse import urlsplit

from jupyter_server.auth import User
from jupyter_server.base.handlers import JupyterHandler

from ..errors import AgentExecError, Forbidden, InvalidRequest
from ..types import TokenId
from .access import AccessControl, denied
from .denials import Denials
from .scopes import FOR_PEOPLE, Caller, Scope
from .tokens import TokenRefused, Tokens, is_misplaced, shown_token, tokens_in, without_tokens


class AgentHandler(JupyterHandler):
    """Base of the base of all handlers of this extension."""

    caller: Caller
    access: AccessControl
    tokens: Tokens
    denials: Denials
    route: str
    """The route's path template."""

    @property
    def shown_token(self) -> str | None:
        """The agent token that the request shows."""
        return shown_token(self.request.headers)

    async def let_in_agent(self, shown: str) -> None:
        """Find out which agent token was shown; Jupyter's identity provider is not asked."""
        self.caller = await self.tokens.caller(shown)
        # What logs requests, such as JupyterHub's server, reads a user's name here. Jupyter's
        # authorizer is not asked about an agent: it may need more of a user than there is to give.
        self.current_user = User(
            username=self.caller.username, display_name=self.caller.display_name
        )
        origin = self.request.headers.get("Origin")
        if origin is not None and urlsplit(origin.lower()).netloc != self.request.host.lower():
            raise denied(Forbidden("Requests from pages of another origin are refused."))
        await self._admit_agent()

    def check_placed(self) -> None:
        """Raise InvalidRequest for an agent token in the address or in a form."""
        if is_misplaced(self.request.uri or "", self.request.arguments):
            self._refuse_misplaced()

    def _refuse_misplaced(self) -> NoReturn:
        """Refuse it, and keep it out of the log."""
        uri = self.request.uri or ""
        found = tokens_in(uri)
        self.request.uri = without_tokens(uri)
        self.request.path = without_tokens(self.request.path)
        for id in found:
            self.note_denial(InvalidRequest.code, TokenId(id))
        raise InvalidRequest(
            "An agent token goes into the header 'Authorization: Bearer <token>' and nowhere else: "
            "addresses end up in logs and histories. Ask the person to revoke this token and to "
            "give you another.",
            field="token",
        )

    def note_denial(self, code: str, token_id: TokenId | None) -> None:
        """Have it recorded that an agent token was refused, if it is one of this server."""
        if token_id is not None and self.tokens.knows(token_id):
            self.denials.note(token_id, code, self.request.method or "", self.route)
        else:
            self.denials.note_unknown()

    def check_still(self) -> None:
        """Raise TokenRefused if the agent token that was shown has ended since."""
        if self.caller.token is not None:
            self.tokens.check(self.caller.token.id)

    async def _admit_agent(self) -> None:
        """Look whether an agent token reaches what the route's path names, for its verb."""
        operation = getattr(getattr(self, (self.request.method or "").lower()), "operation", None)
        if operation is None:
            return  # the route has no such verb
        for scope in FOR_PEOPLE.intersection(operation.scopes):
            self.access.check(self.caller, scope)
        for scope in operation.scopes:
            await self._look_at(scope, self.path_kwargs, narrows=operation.agents is not None)

    async def _look_at(self, scope: Scope, path: Mapping[str, str], *, narrows: bool) -> None:
        if "session_id" in path:
            await self.access.session(self.caller, scope, path["session_id"])
        elif "execution_id" in path:
            await self.access.execution(self.caller, scope, path["execution_id"])
        elif "digest" in path:
            await self.access.blob(self.caller, scope, path["digest"])
        elif "path" in path:
            self.access.notebook(self.caller, scope, path["path"])
        elif not narrows:
            raise denied(Forbidden("This route is not for agent tokens."))
        else:
            self.access.check(self.caller, scope)

    def note_if_denied(self, error: AgentExecError) -> None:
        """Have it recorded if an error is what an agent token was refused."""
        if isinstance(error, TokenRefused):
            self.note_denial(error.code, error.token_id)
        elif error.is_denial and self.caller.token is not None:
            self.note_denial(error.code, self.caller.token.id)
