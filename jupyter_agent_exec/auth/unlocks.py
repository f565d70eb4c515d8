"""The passphrase that people type before a decision, if the operator has set one.

A page or a program exchanges it for an unlock: a random value that only it and this server's memory
hold. No file, cookie or log has it, so code that finds the server's token does not find this.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import secrets
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final

from jupyter_server.auth.security import passwd_check

from ..errors import NotFound, PassphraseRequired, PassphraseWrong, TooManyRequests
from ..models import Unlocked
from ..records import DecisionsUnlocked, LedgerEntry, PassphraseRefused, timestamp
from ..types import UNLOCK_HEADER
from .scopes import Caller

UNLOCK_SECONDS: Final = 600.0
"""How long an unlock is valid."""
MAX_TRIES: Final = 5
TRIES_SECONDS: Final = 60.0
"""The server checks at most `MAX_TRIES` wrong passphrases, of all clients, within this time."""

_ARGON2: Final = re.compile(
    r"argon2:\$argon2(?:d|i|id)\$(?:v=\d+\$)?m=\d+,t=\d+,p=\d+\$[\w+/]+\$[\w+/]+"
)


def is_slow_hash(text: str) -> bool:
    """Return whether a text is a hash as `jupyter_server.auth.passwd` makes it."""
    return _ARGON2.fullmatch(text) is not None


class Unlocks:
    """Checks the passphrase, and stores the unlocks that it has issued.

    Parameters
    ----------
    passphrase_hash
        A hash in the format of Jupyter's passwords; empty: no passphrase is needed.
    note
        Writes an entry into the ledger; blocks.
    thread
        Executor for blocking work: checking a passphrase takes a tenth of a second.
    """

    def __init__(
        self, passphrase_hash: str, note: Callable[[LedgerEntry], None], *, thread: Executor
    ) -> None:
        self._hash = passphrase_hash
        self._note = note
        self._thread = thread
        self._until: dict[str, float] = {}  # expiry times, by the SHA-256 of the unlock
        self._tries: deque[float] = deque()  # start times of checks that failed or still run

    @property
    def needed(self) -> bool:
        """Whether there is a passphrase."""
        return bool(self._hash)

    def check(self, shown: str | None) -> None:
        """Raise PassphraseRequired if an unlock is needed and not valid."""
        if not self._hash:
            return
        now = time.monotonic()
        self._until = {sha256: until for sha256, until in self._until.items() if until > now}
        if shown is None or _sha256(shown) not in self._until:
            raise PassphraseRequired(
                "This server asks for its passphrase before a person decides: approve in "
                "JupyterLab or with 'jupyter agent-exec', or send the passphrase to POST /unlock "
                f"and show the answer's 'unlock' in the header {UNLOCK_HEADER}."
            )

    async def unlock(self, passphrase: str, caller: Caller) -> Unlocked:
        """Exchange the passphrase for an unlock.

        Raises
        ------
        NotFound
            The server has no passphrase.
        PassphraseWrong, TooManyRequests
        """
        if not self._hash:
            raise NotFound("This server has no passphrase: nothing has to be unlocked.")
        began = self._begin_try()
        loop = asyncio.get_running_loop()
        is_right = await loop.run_in_executor(self._thread, passwd_check, self._hash, passphrase)
        entry_type = DecisionsUnlocked if is_right else PassphraseRefused
        entry = entry_type(at=timestamp(), by=caller.by())
        await loop.run_in_executor(self._thread, partial(self._note, entry))
        if not is_right:
            raise PassphraseWrong("This is not the passphrase.")
        with suppress(ValueError):  # it began so long ago that it no longer counts
            self._tries.remove(began)
        unlock = secrets.token_hex(32)
        self._until[_sha256(unlock)] = time.monotonic() + UNLOCK_SECONDS
        expires_at = datetime.now(UTC) + timedelta(seconds=UNLOCK_SECONDS)
        return Unlocked(unlock=unlock, expires_at=timestamp(expires_at))

    def _begin_try(self) -> float:
        now = time.monotonic()
        while self._tries and self._tries[0] <= now - TRIES_SECONDS:
            self._tries.popleft()
        if len(self._tries) >= MAX_TRIES:
            retry_after = int(self._tries[0] + TRIES_SECONDS - now) + 1
            raise TooManyRequests(
                f"Too many wrong passphrases. Try again in {retry_after} seconds.",
                retry_after=retry_after,
            )
        self._tries.append(now)
        return now


def _sha256(unlock: str) -> str:
    return hashlib.sha256(unlock.encode()).hexdigest()
