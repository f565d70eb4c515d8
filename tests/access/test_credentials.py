"""An agent token is known as one wherever it stands, and nothing else is taken for one."""

from __future__ import annotations

import pytest
from tornado.httputil import HTTPHeaders

from jupyter_agent_exec.access.credentials import has_agent_token


@pytest.mark.parametrize(
    "header",
    ["Bearer jaex_1_s", "bearer   jaex_1_s", "token jaex_1_s", "Basic jaex_1_s", " jaex_1_s"],
)
def test_an_agent_token_in_the_header_is_one_whatever_its_scheme(header: str) -> None:
    assert has_agent_token(HTTPHeaders({"authorization": header}), {})


@pytest.mark.parametrize("tokens", [[b"jaex_1_s"], [b"other", b"jaex_1_s"], [b" jaex_1_s"]])
def test_an_agent_token_in_the_query_is_one(tokens: list[bytes]) -> None:
    assert has_agent_token({}, {"token": tokens})


@pytest.mark.parametrize("header", ["", "token", "token 0jaex_1", "token x jaex_", "Bearer JAEX_"])
def test_another_credential_is_left_to_jupyter(header: str) -> None:
    assert not has_agent_token({"Authorization": header}, {"token": [b""], "q": [b"jaex_1_s"]})
