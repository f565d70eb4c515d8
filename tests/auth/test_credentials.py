"""An agent token is known as one wherever it stands, and nothing else is taken for one."""

from __future__ import annotations

import pytest
from tornado.httputil import HTTPHeaders

from jupyter_agent_exec.auth.credentials import (
    is_misplaced,
    shown_token,
    tokens_in,
    without_tokens,
)

ID = "t_01JD0000000000000000000000"
SECRET = "5ec2e7" * 10
TOKEN = f"jaex_{ID}_{SECRET}"


@pytest.mark.parametrize(
    "header",
    [
        "Bearer jaex_1_s",
        "bearer   jaex_1_s",
        "token jaex_1_s",
        "Basic jaex_1_s",
        " jaex_1_s",
        "jaex_1_s ",
    ],
)
def test_an_agent_token_in_the_header_is_one_whatever_its_scheme(header: str) -> None:
    assert shown_token(HTTPHeaders({"authorization": header})) == "jaex_1_s"


def test_what_follows_it_in_the_header_is_no_part_of_a_valid_one() -> None:
    assert shown_token({"Authorization": f"Bearer {TOKEN}, token x"}) == f"{TOKEN}, token x"


@pytest.mark.parametrize("header", ["", "token", "token 0jaex_1", "token x jaex_", "Bearer JAEX_"])
def test_another_credential_is_left_to_jupyter(header: str) -> None:
    assert shown_token({"Authorization": header}) is None


@pytest.mark.parametrize("tokens", [[b"jaex_1_s"], [b"other", b"jaex_1_s"], [b" jaex_1_s"]])
def test_an_agent_token_as_an_argument_is_misplaced(tokens: list[bytes]) -> None:
    assert is_misplaced("/api", {"token": tokens})


@pytest.mark.parametrize(
    "uri",
    [
        f"/api?q={TOKEN}",
        f"/api?{TOKEN}",
        f"/api/{TOKEN}/x",
        f"/api?q=%6aaex_{ID}_{SECRET}",
        f"/api?q=a+{TOKEN}+b",
        f"/api?q=xjaex_{ID}_{SECRET}",
        f"/api?q=jaex_{ID}_",
    ],
)
def test_an_agent_token_in_an_address_is_refused_and_not_logged(uri: str) -> None:
    assert is_misplaced(uri, {})
    assert tokens_in(uri) == [ID]
    assert SECRET not in without_tokens(uri)
    assert ID not in without_tokens(uri)


@pytest.mark.parametrize("uri", ["/api", "/api?q=jaex_1_s", "/api?token=a", "/api?q=jaex_", "/%"])
def test_another_address_is_as_it_is(uri: str) -> None:
    assert not is_misplaced(uri, {"token": [b"a"], "q": [b"jaex_1_s"]})
    assert without_tokens(uri) == uri
