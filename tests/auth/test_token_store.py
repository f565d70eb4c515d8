"""The file of agent tokens: what is in it, who may read it, and what a crash leaves."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import stat
import subprocess
import sys
import threading
import weakref
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from jupyter_agent_exec.auth.denials import Denials
from jupyter_agent_exec.auth.scopes import Caller
from jupyter_agent_exec.auth.token_store import FILE, Stored, StoredToken, TokenStore
from jupyter_agent_exec.auth.tokens import KEEP_DELAY, SignedIn, TokenRefused, Tokens
from jupyter_agent_exec.errors import HistoryUnavailable
from jupyter_agent_exec.journal import chain
from jupyter_agent_exec.journal.history import History
from jupyter_agent_exec.journal.ledger import Ledger, TokenEntries, ledger_paths
from jupyter_agent_exec.models import MintToken
from jupyter_agent_exec.records import (
    By,
    LedgerEntry,
    RecordedCaps,
    TokenExtended,
    TokenMinted,
    TokenRenewed,
    TokenRevoked,
    digest_of,
)
from jupyter_agent_exec.storage.shared_file import is_local
from jupyter_agent_exec.types import TokenId

FUTURE = "2999-11-21T17:00:00.000Z"


def store_of(folder: Path) -> TokenStore:
    return TokenStore(folder, TokenEntries(folder).read, logging.getLogger())


def token(number: int) -> StoredToken:
    return StoredToken(
        id=TokenId(f"t_{number:026}"),
        secret_sha256=digest_of(b"s"),
        label=f"Token {number}",
        scopes=("exec:scratch",),
        username="ada",
        display_name="Ada",
        created_at="2026-11-21T09:00:00.000Z",
        expires_at=FUTURE,
    )


def minted(token: StoredToken) -> TokenMinted:
    return TokenMinted(
        at=token.created_at,
        by=By(kind="person", username=token.username, display_name=token.display_name),
        token_id=token.id,
        label=token.label,
        scopes=token.scopes,
        approval=token.approval,
        caps=token.caps,
        expires_at=token.expires_at,
        secret_sha256=token.secret_sha256,
    )


def note(folder: Path, entry: LedgerEntry) -> None:
    """Write to a ledger as a server does that goes on with one."""
    ledger = next(filter(None, map(Ledger.take, ledger_paths(folder))), None)
    ledger = ledger or Ledger.make(folder)
    ledger.note(entry)
    ledger.close()


def add(store: TokenStore, number: int) -> None:
    added = token(number)
    note(store.folder, minted(added))
    store.change(lambda tokens: tokens.update({added.id: added}))


def labels(store: TokenStore) -> list[str]:
    return [each.label for each in store.read().values()]


def test_nothing_is_known_before_something_is_kept(tmp_path: Path) -> None:
    assert dict(store_of(tmp_path).read()) == {}
    assert list(tmp_path.iterdir()) == []


def test_kept_keys_are_for_the_next_server_and_owner_only(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        add(store_of(tmp_path), 1)
    finally:
        os.umask(before)
    assert store_of(tmp_path).read()[token(1).id] == token(1)
    for path in tmp_path.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path.name


def test_two_servers_see_each_others_changes_at_once(tmp_path: Path) -> None:
    one, other = store_of(tmp_path), store_of(tmp_path)
    for number in range(1, 6):
        add((one, other)[number % 2], number)
        expected = [f"Token {n}" for n in range(1, number + 1)]
        assert labels(one) == labels(other) == expected


def test_a_file_that_has_not_changed_is_not_read_again(tmp_path: Path) -> None:
    store = store_of(tmp_path)
    add(store, 1)
    assert store.read() is store.read()


def test_a_change_that_fails_changes_nothing(tmp_path: Path) -> None:
    store = store_of(tmp_path)
    add(store, 1)
    kept = (tmp_path / "tokens.json").read_bytes()
    (tmp_path / "tokens.json.new").mkdir()
    with pytest.raises(HistoryUnavailable, match="Nothing was changed"):
        add(store, 2)
    assert (tmp_path / "tokens.json").read_bytes() == kept
    assert labels(store) == labels(store_of(tmp_path)) == ["Token 1"]
    (tmp_path / "tokens.json.new").rmdir()
    add(store, 3)
    assert labels(store) == ["Token 1", "Token 3"]


KILLED = """
import os, signal, sys
from contextvars import ContextVar
from pathlib import Path
from tests.auth.test_token_store import add, store_of

store = store_of(Path(sys.argv[1]))
add(store, 1)
Path.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
add(store, 2)
"""


def test_a_server_killed_before_the_change_leaves_the_old_state(
    tmp_path: Path,
) -> None:
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path)], env=environ, check=False, timeout=60
    )
    assert killed.returncode == -signal.SIGKILL
    assert (tmp_path / "tokens.json.new").exists()
    store = store_of(tmp_path)
    assert labels(store) == ["Token 1"]
    add(store, 3)
    assert labels(store_of(tmp_path)) == ["Token 1", "Token 3"]
    assert not (tmp_path / "tokens.json.new").exists()


@pytest.mark.parametrize("damaged", [b"", b"{", b"[]", b'{"tokens": [{}]}', b"\xff"])
def test_with_a_damaged_file_nobody_is_let_in_and_nothing_is_overwritten(
    tmp_path: Path, damaged: bytes
) -> None:
    path = tmp_path / "tokens.json"
    store = store_of(tmp_path)
    add(store, 1)
    path.write_bytes(damaged)
    for _ in range(2):
        with pytest.raises(HistoryUnavailable):
            store.read()
        with pytest.raises(HistoryUnavailable):
            add(store, 2)
    assert path.read_bytes() == damaged


# -- what the ledgers say --------------------------------------------------------------------------


def put(folder: Path, *tokens: StoredToken) -> None:
    """Write the file as something other than a server may."""
    path = folder / "tokens.json"
    path.write_bytes(msgspec.json.encode({"version": 1, "tokens": tokens}))


def known(folder: Path) -> list[StoredToken]:
    return list(store_of(folder).read().values())


def test_a_token_that_no_ledger_minted_is_not_known(tmp_path: Path) -> None:
    store = store_of(tmp_path)
    add(store, 1)
    put(tmp_path, token(1), token(2))
    assert labels(store) == ["Token 1"]
    assert store.unminted == {token(2).id}
    note(tmp_path, minted(token(2)))  # a network file system may show this later than the file
    assert labels(store) == ["Token 1", "Token 2"]
    assert store.unminted == set()


@pytest.mark.parametrize(
    "changed",
    [
        {"secret_sha256": digest_of(b"another")},
        {"scopes": ("exec:scratch", "history:read:all")},
        {"caps": RecordedCaps(kernels=1000)},
        {"caps": RecordedCaps()},
        {"approval": None},
        {"expires_at": "3999-11-21T17:00:00.000Z"},
        {"label": "Another"},
        {"username": "eve"},
        {"display_name": "Eve"},
        {"created_at": "2026-11-21T10:00:00.000Z"},
        {"id": TokenId(f"t_{9:026}")},
    ],
)
def test_a_token_that_was_changed_since_it_was_minted_is_not_known(
    tmp_path: Path, changed: dict[str, Any]
) -> None:
    given = replace(token(1), caps=RecordedCaps(kernels=1), approval="always")
    note(tmp_path, minted(given))
    put(tmp_path, given)
    assert known(tmp_path) == [given]
    put(tmp_path, replace(given, **changed))
    assert known(tmp_path) == []


def test_a_token_may_be_made_to_end_earlier(tmp_path: Path) -> None:
    note(tmp_path, minted(token(1)))
    sooner = replace(token(1), expires_at="2026-11-21T10:00:00.000Z", last_used_at=FUTURE)
    put(tmp_path, sooner)
    assert known(tmp_path) == [sooner]


def test_a_renewed_token_has_its_last_secret_only(tmp_path: Path) -> None:
    given = replace(token(1), secret_expires_at=FUTURE)
    note(tmp_path, replace(minted(token(1)), secret_expires_at=FUTURE))
    put(tmp_path, given)
    assert known(tmp_path) == [given]
    renewed = replace(given, secret_sha256=digest_of(b"new"), secret_expires_at=f"{FUTURE}0")
    put(tmp_path, renewed)
    assert known(tmp_path) == []
    for secret in (b"between", b"new"):
        entry = TokenRenewed(
            at="2026-11-21T10:00:00.000Z",
            by=By(kind="agent", username="ada"),
            token_id=given.id,
            secret_sha256=digest_of(secret),
            secret_expires_at=f"{FUTURE}0",
        )
        note(tmp_path, entry)
    assert known(tmp_path) == [renewed]
    put(tmp_path, given)
    assert known(tmp_path) == []
    put(tmp_path, replace(renewed, secret_expires_at=None))
    assert known(tmp_path) == []


def test_a_token_has_the_scopes_that_ledgers_gave_it(tmp_path: Path) -> None:
    given = token(1)
    note(tmp_path, minted(given))
    more = replace(given, scopes=(*given.scopes, "files", "exec:notebook:a.ipynb"))
    put(tmp_path, more)
    assert known(tmp_path) == []
    for scope in ("exec:notebook:a.ipynb", "files"):
        by = By(kind="person", username="ada")
        note(tmp_path, TokenExtended(at=FUTURE, by=by, token_id=given.id, scopes=(scope,)))
    assert known(tmp_path) == [more]
    put(tmp_path, given)  # a server ended before it wrote them
    assert known(tmp_path) == [given]
    put(tmp_path, replace(more, scopes=(*more.scopes, "history:read:all")))
    assert known(tmp_path) == []


def test_a_token_that_a_ledger_revoked_stays_so_whatever_the_file_says(tmp_path: Path) -> None:
    store = store_of(tmp_path)
    add(store, 1)
    at = "2026-11-21T12:00:00.000Z"
    note(tmp_path, TokenRevoked(at=at, by=By(kind="person", username="ada"), token_id=token(1).id))
    put(tmp_path, replace(token(1), last_used_at=FUTURE))
    assert [each.revoked_at for each in store.read().values()] == [at]


def test_an_entry_that_does_not_follow_the_line_before_it_mints_nothing(tmp_path: Path) -> None:
    note(tmp_path, minted(token(1)))
    [ledger] = ledger_paths(tmp_path)
    first = chain.parse_line(ledger.read_bytes())
    forged = chain.canonical({**first.entry, "n": 1, "token_id": token(2).id, "label": "Token 2"})
    put(tmp_path, token(1), token(2))
    for previous, expected in ((chain.GENESIS, [token(1)]), (first.hash, [token(1), token(2)])):
        line = chain.format_line(chain.link(previous, forged), forged, {})
        ledger.write_bytes(chain.format_line(first.hash, first.canonical, {}) + line)
        assert known(tmp_path) == expected


def test_a_ledger_that_is_another_now_is_read_again(tmp_path: Path) -> None:
    store = store_of(tmp_path)
    for number in (1, 2):
        add(store, number)
    [ledger] = ledger_paths(tmp_path)
    ledger.write_bytes(b"".join(ledger.read_bytes().splitlines(keepends=True)[:1]))
    put(tmp_path, token(1), token(2), token(3))
    assert labels(store) == ["Token 1"]


class CountingStore(TokenStore):
    reads = 0

    def read(self) -> Stored:
        self.reads += 1
        return super().read()


async def test_requests_that_wait_for_a_look_at_the_tokens_share_it(tmp_path: Path) -> None:
    log, free = logging.getLogger("test"), threading.Event()
    store = CountingStore(tmp_path, TokenEntries(tmp_path).read, log)
    history = History(tmp_path, version="1", log=log)
    with ThreadPoolExecutor(1) as thread:
        tokens = Tokens(
            store,
            note=history.note,
            note_owed=history.note_owed,
            changed=lambda: None,
            max_lifetime=60.0,
            thread=thread,
            log=log,
        )
        thread.submit(free.wait)
        together = [asyncio.ensure_future(tokens.refresh()) for _ in range(10)]
        await asyncio.sleep(0)
        free.set()
        await asyncio.gather(*together)
        assert store.reads == 1
        (tmp_path / FILE).write_text('{"tokens": []}')
        await tokens.refresh()  # it came after that look began
        assert store.reads == 2
        await tokens.refresh()  # what a local disk has not changed is not read again
        assert store.reads == (2 if is_local(tmp_path) else 3)


def test_only_a_disk_of_this_machine_is_asked_on_the_loop(tmp_path: Path) -> None:
    assert not is_local(Path("/proc/not there"))
    assert is_local(tmp_path / "not" / "there") == is_local(tmp_path)


class SometimesFull:
    """A ledger on a disk that may be full."""

    def __init__(self, history: History) -> None:
        self._history = history
        self.is_full = False

    def note(self, entry: LedgerEntry) -> None:
        if self.is_full:
            raise HistoryUnavailable("The disk is full.")
        self._history.note(entry)


@asynccontextmanager
async def server_tokens(folder: Path) -> AsyncIterator[tuple[Tokens, SometimesFull]]:
    """The tokens of a server that starts, and that stops at the end."""
    log = logging.getLogger("test")
    history = History(folder, version="1", log=log)
    ledger = SometimesFull(history)
    with ThreadPoolExecutor(1) as thread:
        tokens = Tokens(
            store_of(folder),
            note=ledger.note,
            note_owed=history.note_owed,
            changed=lambda: None,
            max_lifetime=3600.0,
            thread=thread,
            log=log,
        )
        yield tokens, ledger
        await tokens.stop()
    history.stop()


async def client_signs_in(tokens: Tokens) -> SignedIn:
    caller = Caller(username="ada", display_name="Ada", access="full")
    asked = MintToken(label="t", scopes=["exec:scratch"], expires_in=3600)
    return await tokens.sign_in(asked, caller, "client")


async def test_a_renewal_that_could_not_be_written_can_be_tried_again(tmp_path: Path) -> None:
    async with server_tokens(tmp_path) as (tokens, ledger):
        first = await client_signs_in(tokens)
        ledger.is_full = True
        with pytest.raises(HistoryUnavailable):
            await tokens.renew(first.refresh, "client")
        ledger.is_full = False
        assert await tokens.renewable(first.refresh, "client") is not None
        together = [tokens.renew(first.refresh, "client") for _ in range(3)]
        done = await asyncio.gather(*together, return_exceptions=True)
        [second] = [each for each in done if isinstance(each, SignedIn)]
        assert [type(each) for each in done].count(TokenRefused) == 2
        assert (await tokens.caller(second.secret)).token is not None
        with pytest.raises(TokenRefused):
            await tokens.caller(first.secret)


async def test_a_renewal_at_the_same_time_takes_back_no_scope(tmp_path: Path) -> None:
    async with server_tokens(tmp_path) as (tokens, _):
        first = await client_signs_in(tokens)
        person = Caller(username="ada", display_name="Ada", access="full")
        renewed, extended = await asyncio.gather(
            tokens.renew(first.refresh, "client"),
            tokens.extend(first.token.id, ["files"], person),
        )
        assert extended.scopes == ["exec:scratch", "files"]
        caller = await tokens.caller(renewed.secret)
        assert caller.grants is not None
        assert caller.grants.holds("files")
    assert [each.scopes for each in known(tmp_path)] == [("exec:scratch", "files")]


async def test_a_renewal_keeps_when_the_token_was_last_used(tmp_path: Path) -> None:
    async with server_tokens(tmp_path) as (tokens, _):
        first = await client_signs_in(tokens)
        await tokens.caller(first.secret)
        [before] = [each.last_used_at for each in await tokens.all()]
        await tokens.renew(first.refresh, "client")
        assert [each.last_used_at for each in await tokens.all()] == [before]
    assert [each.last_used_at for each in known(tmp_path)] == [before]


class Request:
    """What Jupyter keeps in the context of a request: its handler, with its body."""


current: ContextVar[Request] = ContextVar("current")


async def test_what_is_written_later_keeps_no_request_in_memory(tmp_path: Path) -> None:
    async def handle(request: Request) -> None:
        current.set(request)
        await tokens.caller(signed_in.secret)
        denials.note(signed_in.token.id, "forbidden", "GET", "/status")

    with ThreadPoolExecutor(1) as thread:
        denials = Denials(lambda _: None, thread=thread, log=logging.getLogger("test"))
        async with server_tokens(tmp_path) as (tokens, _):
            signed_in = await client_signs_in(tokens)
            request = Request()
            kept = weakref.ref(request)
            await asyncio.create_task(handle(request))
            del request
            async with asyncio.timeout(KEEP_DELAY / 10):
                while kept() is not None:  # until the denial is written
                    await asyncio.to_thread(gc.collect)
        await denials.stop()


async def test_a_refresh_token_that_was_used_before_a_restart_ends_its_token(
    tmp_path: Path,
) -> None:
    async with server_tokens(tmp_path) as (tokens, _):
        first = await client_signs_in(tokens)
        other = await client_signs_in(tokens)
        second = await tokens.renew(first.refresh, "client")
        third = await tokens.renew(second.refresh, "client")
    async with server_tokens(tmp_path) as (tokens, _):
        assert await tokens.renewable(first.refresh, "another client") is None
        guessed = first.refresh.replace(first.token.id, other.token.id)
        assert await tokens.renewable(guessed, "client") is None
        for signed_in in (third, other):
            assert (await tokens.caller(signed_in.secret)).token is not None
        assert await tokens.renewable(first.refresh, "client") is None
        with pytest.raises(TokenRefused, match="was revoked"):
            await tokens.caller(third.secret)
        assert (await tokens.caller(other.secret)).token is not None
