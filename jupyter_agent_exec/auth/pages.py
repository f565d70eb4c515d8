"""Pages for people. They work without scripts, and no other page can frame, open or answer them.

That holds for pages of the same origin too, such as those of other users' servers on a hub.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from tornado import web
from tornado.httputil import HTTPHeaders, url_concat
from tornado.template import Loader

from .. import errors
from ..models import ApprovalPolicy, MintToken
from ..text.connections import connections
from ..text.counts import size_in_words
from ..text.lookalikes import exact
from .handler import AgentExecHandler, error_in
from .scopes import Caller
from .token_form import TokenForm, Values, offered, requested
from .tokens import TokenRefused

TEMPLATES: Final = Loader(
    str(Path(__file__).parents[1]),
    namespace={
        "connections": connections,
        "exact": partial(exact, isolated=True),
        "size_in_words": size_in_words,
    },
)
"""Templates by their path in this package. `exact` is for names that somebody else chose."""


NONCE: Final = "nonce"
NONCE_DAYS: Final = 1
"""How long a page's forms can be sent."""
_KEY: Final = secrets.token_bytes(32)


class Page(web.RequestHandler):
    """Base of all pages."""

    caller: Caller
    """The person."""

    def form_fields(self) -> str:
        """Return the hidden fields of a form. Only who sees the page knows them."""
        nonce = web.create_signed_value(_KEY, NONCE, self.caller.username).decode()
        return f'{self.xsrf_form_html()}<input type="hidden" name="{NONCE}" value="{nonce}">'

    def check_window(self) -> None:
        """Check that a window shows the page, and that a click on the page sent its form.

        A browser says where an answer goes, which no page can change. Old browsers do not, nor does
        any over plain HTTP from another computer.

        Raises
        ------
        Forbidden
            A script, a frame or another page sent the request, or the form is too old.
        """
        headers = self.request.headers
        if headers.get("Sec-Fetch-Dest", "document") != "document":
            raise errors.Forbidden("This page opens only in a window of its own.")
        if self.request.method != "POST":
            return
        nonce = self.get_body_argument(NONCE, "")
        of_whom = web.decode_signed_value(_KEY, NONCE, nonce, NONCE_DAYS)
        has_click = headers.get("Sec-Fetch-User") == "?1" or not _tells_clicks(headers)
        if of_whom != self.caller.username.encode() or not has_click:
            raise errors.Forbidden(
                "No click on this page sent its form, or the page is too old: open it again."
            )

    def show(
        self,
        status: int,
        template: str,
        *,
        form_action: str = "'self'",
        has_script: bool = False,
        **values: object,
    ) -> None:
        """Send a page.

        Parameters
        ----------
        form_action
            Where its forms may lead, with their redirects. Source: CSP, form-action.
        has_script
            Whether its template has a script, with the page's nonce.
        values
            What its template needs.
        """
        nonce = secrets.token_urlsafe(16)
        policy = (
            f"default-src 'none'; style-src 'nonce-{nonce}'; base-uri 'none'; "
            f"frame-ancestors 'none'; form-action {form_action}"
        )
        if has_script:
            policy += f"; script-src 'nonce-{nonce}'"
        self.set_status(status)
        self.set_header("Content-Type", "text/html; charset=UTF-8")
        self.set_header("Content-Security-Policy", policy)
        self.set_header("X-Frame-Options", "DENY")
        self.set_header("Cross-Origin-Opener-Policy", "noopener-allow-popups")
        self.set_header("Cache-Control", "no-store")
        self.set_header("Referrer-Policy", "same-origin")
        self.finish(TEMPLATES.load(template).generate(nonce=nonce, **values))

    def write_error(self, status_code: int, **kwargs: object) -> None:
        """Show an error to the person."""
        error = error_in(kwargs)
        message = "Something went wrong."
        if isinstance(error, errors.AgentExecError):
            message = error.message
        self.show(status_code, "auth/page.html", message=message)


class PageHandler(Page, AgentExecHandler):
    """Base of the pages of a person's own server. Jupyter's login tells who the person is."""

    approval_policy: Callable[[], ApprovalPolicy]
    open_notebooks: Callable[[], list[str]]

    async def prepare(self) -> None:  # type: ignore[override]
        """Redirect to the login if there is no person."""
        try:
            await super().prepare()
        except errors.Unauthenticated as error:
            if self.request.method != "GET" or isinstance(error, TokenRefused):
                raise
            login = self.get_login_url()
            if "?" not in login:  # a hub's has a query, and is complete
                here = self.public(self.request.uri or "")
                login = url_concat(self.public(login), {"next": here})
            self.redirect(login)
        else:
            self.check_window()

    def form(
        self,
        given: Values,
        *notebooks: str,
        error: errors.AgentExecError | None = None,
        has_focus: bool = False,
    ) -> TokenForm:
        """Return the form, which offers these notebooks and those that are open in JupyterLab."""
        return TokenForm(
            given=given,
            max_lifetime=self.tokens.max_lifetime,
            passphrase=self.unlocks.needed,
            policy=self.approval_policy(),
            notebooks=offered(*given.get("notebook", ()), *notebooks, *self.open_notebooks()),
            has_focus=has_focus,
            error=error,
        )

    async def check_passphrase(self) -> None:
        """Check the passphrase that the form has, if the server has one.

        Raises
        ------
        PassphraseWrong, TooManyRequests
        """
        if self.unlocks.needed:
            passphrase = self.get_body_argument("passphrase", "")
            await self.unlocks.unlock(passphrase, self.caller)

    async def allowed(self) -> MintToken:
        """Return the token that the form describes, if this person may create it.

        Raises
        ------
        InvalidRequest, Forbidden, TooManyRequests
        """
        await self.check_passphrase()
        asked = requested(self.get_body_arguments)
        self.tokens.check_request(asked)
        await self.check_given_away(asked.scopes)
        return asked


def _tells_clicks(headers: HTTPHeaders) -> bool:
    """Return whether a browser says which requests a click has sent. Safari never does."""
    agent = headers.get("User-Agent", "")
    return "Sec-Fetch-Mode" in headers and ("Chrom" in agent or "Firefox/" in agent)
