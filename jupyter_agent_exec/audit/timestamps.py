"""Has the heads of a history's chains timestamped by an authority after RFC 3161, in a thread.

Each timestamp is of the root of a Merkle tree over the heads that have changed since the last one.
It is kept in the history's folder, in `timestamps`, with these heads.
"""

from __future__ import annotations

import base64
import logging
import threading
import time
from pathlib import Path
from typing import Final

import httpx2
import msgspec
from rfc3161_client import (
    HashAlgorithm,
    PKIStatus,
    TimestampRequestBuilder,
    decode_timestamp_response,
)

from ..journal.heads import TIMESTAMPS, chain_name, leaf, merkle_root
from ..journal.history import History
from ..models import Chain
from ..storage.durability import make_folder, replace_file

_TIMEOUT: Final = 30.0
"""Seconds to wait for the authority each time."""
_MOST_BYTES: Final = 1 << 20
"""The longest answer that is read."""
_RETRY: Final = 60.0
"""Seconds until it is tried again, at most."""


class Timestamper:
    """Has the heads of a history timestamped. Nothing waits for it; after an error it tries again.

    Parameters
    ----------
    history
        The history.
    address
        URL of the authority.
    interval
        Seconds between two timestamps.
    """

    def __init__(
        self, history: History, address: str, interval: float, log: logging.Logger
    ) -> None:
        self._history = history
        self._address = address
        self._interval = interval
        self._log = log
        self._folder = history.folder / TIMESTAMPS
        self._stamped: dict[Path, Chain] = {}
        self._ended: dict[Path, Chain] = {}
        self._has_failed = False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="agent-exec-timestamps", daemon=True)

    def start(self) -> None:
        """Begin; the first timestamp is due an interval after the last one that there is."""
        self._history.ended.append(self._ended.__setitem__)
        self._thread.start()

    def stop(self) -> None:
        """End it, also while it waits for the authority."""
        self._stop.set()

    def _run(self) -> None:
        made = (path.stat().st_mtime for path in self._folder.glob("*.json"))
        pause = max(made, default=0) + self._interval - time.time()
        while not self._stop.wait(max(pause, 0)):
            pause = self._interval
            try:
                self.stamp()
            except Exception as error:  # whatever the authority answers, the thread goes on
                pause = min(self._interval, _RETRY)
                if not self._has_failed:
                    self._log.warning("%s gives no timestamp: %s", self._address, error)
                self._has_failed = True
            else:
                self._has_failed = False

    def stamp(self) -> None:
        """Have the heads timestamped that have changed.

        Raises
        ------
        OSError, ValueError, httpx2.HTTPError
            There is no timestamp; the next call asks for these heads too.
        """
        ended = dict(self._ended)
        heads = {**ended, **{journal.path: head for journal, head in self._history.heads()}}
        changed = {path: head for path, head in heads.items() if self._stamped.get(path) != head}
        if changed:
            leaves = [(chain_name(path), head.length, head.head) for path, head in changed.items()]
            self._ask(sorted(leaves))
            self._stamped.update(changed)
        for path, head in ended.items():
            if self._ended.get(path) == head:
                del self._ended[path]

    def _ask(self, leaves: list[tuple[str, int, str]]) -> None:
        """Have the authority timestamp heads, and keep that."""
        root = merkle_root([leaf(*each) for each in leaves])
        builder = TimestampRequestBuilder().data(root).hash_algorithm(HashAlgorithm.SHA256)
        request = builder.build()
        answer = self._post(request.as_bytes())
        response = decode_timestamp_response(answer)
        info = response.tst_info if response.status == PKIStatus.GRANTED else None
        if info is None:
            raise ValueError(f"it refused: {response.status} {response.status_string}")
        if (info.nonce, info.message_imprint.message) != (
            request.nonce,
            request.message_imprint.message,
        ):
            raise ValueError("it answered another request")
        make_folder(self._folder)
        kept = {"heads": leaves, "response": base64.b64encode(answer).decode("ascii")}
        replace_file(self._folder / f"{root.hex()}.json", msgspec.json.encode(kept))

    def _post(self, query: bytes) -> bytes:
        headers = {"Content-Type": "application/timestamp-query"}
        with (
            httpx2.Client(timeout=_TIMEOUT) as client,
            client.stream("POST", self._address, content=query, headers=headers) as response,
        ):
            response.raise_for_status()
            answer = b""
            for piece in response.iter_bytes():
                answer += piece
                if len(answer) > _MOST_BYTES:
                    raise ValueError("its answer is too long")
            return answer
