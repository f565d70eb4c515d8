"""A person without a screen: opens an address, logs in, agrees, and goes where that leads.

A program that wants to open a browser runs this as its `BROWSER`, with the token that the person
types in `TEST_TOKEN`.
"""

from __future__ import annotations

import html
import os
import re
import sys

import httpx2

from tests.real_server import TOKEN


def signed_in(
    address: str, token: str = TOKEN, *, by_link: bool = False, **answered: str
) -> httpx2.URL:
    """Return the address to which the person's browser is sent in the end.

    Parameters
    ----------
    by_link
        Whether the person adds the token to the login's address, instead of typing it there.
    """
    with httpx2.Client(trust_env=False, follow_redirects=True, timeout=60) as browser:
        page = browser.get(address)
        if by_link:
            page = browser.get(page.url.copy_add_param("token", token))
        else:
            known = {"username": "ada", "password": token}
            page = browser.post(page.url, data=_fields(page.text) | known)
        form = _fields(page.text) | {
            "decision": "allow",
            "label": "Signed in",
            "scope": "exec:scratch",
            "expires_in": "3600",
            **answered,
        }
        page = browser.post(page.url.join("consent"), data=form, follow_redirects=False)
        assert page.status_code == 303, page.text
        return httpx2.URL(page.headers["Location"])


def _fields(page: str) -> dict[str, str]:
    found = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page)
    return {name: html.unescape(value) for name, value in found}


if __name__ == "__main__":
    callback = str(signed_in(sys.argv[1], os.environ["TEST_TOKEN"]))
    httpx2.get(callback, trust_env=False, timeout=60)
