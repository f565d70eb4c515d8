"""The file of agent tokens: what is in it, who may read it, and what a crash leaves."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from jupyter_agent_exec.access.token_store import StoredToken, TokenStore
from jupyter_agent_exec.errors import HistoryUnavailable
from jupyter_agent_exec.records import digest_of
from jupyter_agent_exec.types import TokenId


def token(number: int) -> StoredToken:
    return StoredToken(
        id=TokenId(f"t_{number:026}"),
        secret_sha256=digest_of(b"s"),
        label=f"Token {number}",
        scopes=("exec:scratch",),
        username="ada",
        display_name="Ada",
        created_at="2026-11-21T09:00:00.000Z",
        expires_at="2026-11-21T17:00:00.000Z",
    )


def add(store: TokenStore, number: int) -> None:
    added = token(number)
    store.change(lambda tokens: tokens.update({added.id: added}))


def labels(store: TokenStore) -> list[str]:
    return [each.label for each in store.read().values()]


def test_nothing_is_known_before_something_is_kept(tmp_path: Path) -> None:
    assert dict(TokenStore(tmp_path).read()) == {}
    assert list(tmp_path.iterdir()) == []


def test_what_is_kept_is_there_for_the_next_server_and_for_the_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        add(TokenStore(tmp_path), 1)
    finally:
        os.umask(before)
    assert TokenStore(tmp_path).read()[token(1).id] == token(1)
    for path in tmp_path.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path.name


def test_two_servers_see_each_others_changes_at_once(tmp_path: Path) -> None:
    one, other = TokenStore(tmp_path), TokenStore(tmp_path)
    for number in range(1, 6):
        add((one, other)[number % 2], number)
        expected = [f"Token {n}" for n in range(1, number + 1)]
        assert labels(one) == labels(other) == expected


def test_a_file_that_has_not_changed_is_not_read_again(tmp_path: Path) -> None:
    store = TokenStore(tmp_path)
    add(store, 1)
    assert store.read() is store.read()


def test_a_change_that_fails_changes_nothing(tmp_path: Path) -> None:
    store = TokenStore(tmp_path)
    add(store, 1)
    kept = (tmp_path / "tokens.json").read_bytes()
    (tmp_path / "tokens.json.new").mkdir()
    with pytest.raises(HistoryUnavailable, match="they are as they were"):
        add(store, 2)
    assert (tmp_path / "tokens.json").read_bytes() == kept
    assert labels(store) == labels(TokenStore(tmp_path)) == ["Token 1"]
    (tmp_path / "tokens.json.new").rmdir()
    add(store, 3)
    assert labels(store) == ["Token 1", "Token 3"]


KILLED = """
import os, signal, sys
from pathlib import Path
from test_token_store import TokenStore, add

store = TokenStore(Path(sys.argv[1]))
add(store, 1)
Path.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
add(store, 2)
"""


def test_a_server_that_is_killed_before_the_change_is_in_place_leaves_what_was(
    tmp_path: Path,
) -> None:
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path)], env=environ, check=False, timeout=60
    )
    assert killed.returncode == -signal.SIGKILL
    assert (tmp_path / "tokens.json.new").exists()
    store = TokenStore(tmp_path)
    assert labels(store) == ["Token 1"]
    add(store, 3)
    assert labels(TokenStore(tmp_path)) == ["Token 1", "Token 3"]
    assert not (tmp_path / "tokens.json.new").exists()


@pytest.mark.parametrize("damaged", [b"", b"{", b"[]", b'{"tokens": [{}]}', b"\xff"])
def test_with_a_damaged_file_nobody_is_let_in_and_nothing_is_overwritten(
    tmp_path: Path, damaged: bytes
) -> None:
    path = tmp_path / "tokens.json"
    store = TokenStore(tmp_path)
    add(store, 1)
    path.write_bytes(damaged)
    for _ in range(2):
        with pytest.raises(HistoryUnavailable):
            store.read()
        with pytest.raises(HistoryUnavailable):
            add(store, 2)
    assert path.read_bytes() == damaged
