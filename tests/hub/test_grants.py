"""What the hub's service keeps of what people have granted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from jupyter_agent_exec.auth.tokens import TokenRefused
from jupyter_agent_exec.hub_service.grants import Grants
from jupyter_agent_exec.models import Caps, MintedToken, Token
from jupyter_agent_exec.records import timestamp
from jupyter_agent_exec.types import TokenId

CREDENTIAL = "jaex_t_01M878TNYTTTYWMASZD5971NZ0_" + "a" * 64


def minted(lifetime: float = 7200) -> MintedToken:
    now = datetime.now(UTC)
    token = Token(
        id=TokenId("t_01M878TNYTTTYWMASZD5971NZ0"),
        label="Of the tests",
        scopes=["exec:scratch"],
        approval=None,
        edits=None,
        caps=Caps(),
        username="ada",
        status="active",
        created_at=timestamp(now),
        expires_at=timestamp(now + timedelta(seconds=lifetime)),
        revoked_at=None,
        last_used_at=None,
    )
    return MintedToken(token=token, secret=CREDENTIAL, configurations=[], mcp_installed=True)


@pytest.fixture
def reopened(tmp_path: Path) -> Iterator[Callable[[], Grants]]:
    """Opens the same file, as a service that starts again does."""
    made: list[Grants] = []

    def reopened() -> Grants:
        made.append(Grants(tmp_path / "grants.sqlite"))
        return made[-1]

    yield reopened
    for each in made:
        asyncio.run(each.stop())


async def test_a_grant_and_a_pause_outlive_a_restart(reopened: Callable[[], Grants]) -> None:
    first = reopened()
    signed_in = await first.add("ada", "second", minted(), "client")
    await first.set_paused(True, "root")
    again = reopened()
    grant, credential = await again.find(signed_in.secret)
    assert (grant.username, grant.server_name, credential) == ("ada", "second", CREDENTIAL)
    pause = await again.pause()
    assert pause is not None
    assert pause.username == "root"
    await again.set_paused(False, "root")
    assert await again.pause() is None


async def test_another_secret_or_another_client_gets_nothing(
    reopened: Callable[[], Grants],
) -> None:
    grants = reopened()
    signed_in = await grants.add("ada", "", minted(), "client")
    for shown in (CREDENTIAL, signed_in.refresh, signed_in.secret[:-1] + "x", ""):
        with pytest.raises(TokenRefused):
            await grants.find(shown)
    assert await grants.renewable(signed_in.refresh, "another client") is None
    assert await grants.renewable(signed_in.refresh, "client") is not None


async def test_a_refresh_token_that_was_used_before_a_restart_ends_its_grant(
    reopened: Callable[[], Grants],
) -> None:
    grants = reopened()
    first = await grants.add("ada", "", minted(), "client")
    second = await grants.renew(first.refresh, "client")
    with pytest.raises(TokenRefused):
        await grants.find(first.secret)
    assert (await grants.find(second.secret))[1] == CREDENTIAL
    again = reopened()
    assert await again.renewable(first.refresh, "client") is None
    with pytest.raises(TokenRefused):
        await again.find(second.secret)


async def test_a_token_that_has_expired_is_refused_and_forgotten(
    reopened: Callable[[], Grants],
) -> None:
    grants = reopened()
    signed_in = await grants.add("ada", "", minted(lifetime=0), "client")
    with pytest.raises(TokenRefused):
        await grants.find(signed_in.secret)
    assert await grants.of("ada") == []
    assert await grants.renewable(signed_in.refresh, "client") is None


async def test_each_person_has_their_own(reopened: Callable[[], Grants]) -> None:
    grants = reopened()
    signed_in = await grants.add("ada", "", minted(), "client")
    assert [each.token.id for each in await grants.of("ada")] == [signed_in.token.id]
    assert await grants.of("bob") == []
    await grants.end(signed_in.token.id)
    assert await grants.of("ada") == []


async def test_the_file_has_no_secret_and_is_its_owners(
    reopened: Callable[[], Grants], tmp_path: Path
) -> None:
    signed_in = await reopened().add("ada", "", minted(), "client")
    file = tmp_path / "grants.sqlite"
    kept = file.read_bytes()
    assert signed_in.token.id.encode() in kept
    for token in (CREDENTIAL, signed_in.secret, signed_in.refresh):
        assert token.rpartition("_")[2].encode() not in kept
    assert file.stat().st_mode & 0o777 == 0o600
