"""The form for agent tokens, and tokens in words."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from jupyter_agent_exec.auth.token_form import BOUNDS, CAPS, TokenForm, TokenRow, requested
from jupyter_agent_exec.errors import InvalidRequest
from jupyter_agent_exec.models import Caps, MintToken, Token
from jupyter_agent_exec.records import timestamp
from jupyter_agent_exec.types import TokenId

FILLED_IN = {"label": [" Analyst "], "scope": ["files"], "expires_in": ["3600"]}


def sent(**fields: list[str]) -> MintToken:
    return requested(lambda name: {**FILLED_IN, **fields}.get(name, []))


def form(max_lifetime: float = 2_592_000, given: Mapping[str, Any] | None = None) -> TokenForm:
    return TokenForm(given=given or {}, max_lifetime=max_lifetime, passphrase=False)


def token(**changed: Any) -> Token:
    now = datetime.now(UTC)
    fields: dict[str, Any] = {
        "id": TokenId("t_1"),
        "label": "Analyst",
        "scopes": ["exec:scratch"],
        "approval": None,
        "edits": None,
        "caps": Caps(),
        "username": "ada",
        "status": "active",
        "created_at": timestamp(now),
        "expires_at": timestamp(now + timedelta(hours=8)),
        "revoked_at": None,
        "last_used_at": None,
    }
    return Token(**fields | changed)


def test_what_is_left_empty_is_the_servers() -> None:
    assert sent() == MintToken(label="Analyst", scopes=["files"], expires_in=3600)
    assert sent(approval=[""], edits=[""], **{"caps.kernels": [" "]}) == sent()


def test_a_ticked_notebook_gives_all_rights_and_a_pattern_the_chosen_ones() -> None:
    asked = sent(notebook=["a.ipynb"], patterns=["b/*\n\n a.ipynb \n"], rights=["exec"])
    assert asked.scopes == [
        "files",
        "exec:notebook:a.ipynb",
        "edit:notebook:a.ipynb",
        "exec:notebook:b/*",
    ]


def test_all_that_a_token_can_have_is_in_the_form() -> None:
    assert set(CAPS) == set(Caps.__struct_fields__)
    asked = sent(
        approval=["always"],
        edits=["propose"],
        **{f"caps.{name}": ["1000"] for name in CAPS},
    )
    assert (asked.approval, asked.edits) == ("always", "propose")
    assert asked.caps == Caps(**dict.fromkeys(CAPS, 1000))


@pytest.mark.parametrize("name", CAPS)
def test_the_browser_refuses_the_limits_that_the_server_refuses(name: str) -> None:
    least, most = BOUNDS[name].get("minimum", 1), BOUNDS[name].get("maximum")
    # The server takes fractions of a second too.
    refused = [0 if name == "wall_seconds" else least - 1, *([] if most is None else [most + 1])]
    for limit in refused:
        with pytest.raises(InvalidRequest, match=name):
            sent(**{f"caps.{name}": [str(limit)]})


def test_a_form_offers_no_longer_lifetime_than_the_server_allows() -> None:
    assert list(form(90_000).lifetimes.values()) == ["1 hour", "8 hours", "1 day"]
    assert form(600).lifetimes == {"600": "10 minutes"}


@pytest.mark.parametrize(
    ("scope", "line"),
    [
        ("exec:scratch", "Run code in separate kernels, apart from your notebooks"),
        ("files", "Read and write files in the folders where it works"),
        ("history:read", "Read its own history"),
        ("read:notebook", "Read: all notebooks"),
        ("read:notebook:**", "Read: all notebooks"),
        ("edit:notebook:a/*.ipynb", "Change cells and run them: a/*.ipynb"),
        ("exec:notebook:\u202eb.ipynb", "Run code: <U+202E>b.ipynb"),
        ("exec:notebook:\u0440ay.ipynb", "Run code: <U+0440>ay.ipynb"),
        ("exec:notebook:\u05d0.ipynb", "Run code: \u05d0.ipynb"),
    ],
)
def test_a_scope_is_said_in_words(scope: str, line: str) -> None:
    assert TokenRow(token(scopes=[scope])).lines == [line]


def test_limits_and_approval_are_said_in_words() -> None:
    limited = token(approval="first", edits="apply", caps=Caps(output_bytes=1_000_000))
    assert TokenRow(limited).lines[1:] == [
        "Needs your approval: once for each agent, until the kernel restarts",
        "Edits of notebooks: change cells at once",
        "Output kept for a cell, in bytes: at most 1,000,000",
    ]


def test_times_are_said_as_people_count_them() -> None:
    def ago(**span: float) -> str:
        return timestamp(datetime.now(UTC) - timedelta(**span))

    used = token(created_at="2026-11-26T03:04:05.678Z", last_used_at=ago(seconds=5))
    end = used.expires_at[:16].replace("T", " ")
    assert TokenRow(used).times == [
        f"Ends in 8 hours ({end} UTC)",
        "Last used 1 minute ago",
        "Created 2026-11-26 03:04 UTC",
    ]
    assert TokenRow(token()).times[1] == "Never used"
    assert (
        TokenRow(token(status="expired", expires_at=ago(days=2))).times[0] == "Expired 2 days ago"
    )
    revoked = token(status="revoked", revoked_at=ago(minutes=100))
    assert TokenRow(revoked).times[0] == "Revoked 2 hours ago"
    assert len(TokenRow(used, "second").times) == 2, "the hub does not know when it was used"
