"""A large history, written by the journal's own writer: the lines that a server would write."""

from __future__ import annotations

import base64
import logging
import random
import struct
import zlib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from ulid import ULID

from jupyter_agent_exec.journal.blobs import pack_outputs
from jupyter_agent_exec.journal.history import History
from jupyter_agent_exec.models import Agent, ExecutionKernel, Limits, ScratchTarget, SessionKernel
from jupyter_agent_exec.records import (
    Accepted,
    By,
    Closed,
    Dispatched,
    Entry,
    Finished,
    KernelStarted,
    Opened,
    Payload,
    timestamp,
)
from jupyter_agent_exec.types import ExecutionId, Output, SessionId

AGENTS = ("reviewer", *(f"analyst {n}" for n in range(1, 10)))
"""Each has a tenth of the sessions."""
WORDS = [
    "region",
    "sales",
    "customer",
    "island",
    "penguin",
    "mass",
    "median",
    "total",
    "share",
    "month",
    "price",
    "volume",
]
RARE = "ornithorhynchus"
"""A word that one in 1,000 cells holds."""
BATCH = 25
IMAGE_EVERY = 100
ERROR_EVERY = 20


class Recorded(NamedTuple):
    """What was written."""

    largest: str
    """Id of the session with the most cells."""
    sessions: list[str]
    middle: datetime
    """When a session in the middle was opened."""
    tenth_days: float
    """How many days ago a tenth of the sessions had been closed."""


def record(folder: Path, *, cells: int, sessions: int, in_largest: int) -> Recorded:
    """Write a history of closed sessions; the first has `in_largest` of the `cells`.

    A session is opened each hour. The index is not made.
    """
    history = History(folder, version="benchmark", log=logging.getLogger("benchmark"))
    begin = datetime.now(UTC) - timedelta(hours=sessions + in_largest / 3600)
    each, more = divmod(cells - in_largest, sessions - 1)
    sizes = [in_largest, *(each + (n < more) for n in range(sessions - 1))]
    try:
        written = [
            _session(history, n, size, begin + timedelta(hours=n)) for n, size in enumerate(sizes)
        ]
    finally:
        history.stop()
    middle = begin + timedelta(hours=sessions // 2)
    return Recorded(written[0], list(written), middle, 0.9 * sessions / 24)


def _session(history: History, n: int, size: int, begin: datetime) -> SessionId:
    """Write a session from its opening to its end."""
    words = random.Random(n)
    agent = AGENTS[n % len(AGENTS)]
    by = By(kind="agent", agent=agent, username="benchmark")
    session_id = SessionId(f"s_{ULID()}")
    moments = (begin + timedelta(seconds=second) for second in range(size + 3))
    journal = history.open_session(
        Opened(
            at=timestamp(next(moments)),
            by=by,
            session_id=session_id,
            agent=Agent(name=agent),
            target=ScratchTarget(),
            title=f"{words.choice(WORDS)} by {words.choice(WORDS)}",
            client_id=None,
            limits=Limits(),
            username="benchmark",
        )
    )
    kernel = SessionKernel(id="k-1", name="python3", execution_state="idle", incarnation=1)
    started = KernelStarted(
        at=timestamp(next(moments)),
        by=by,
        kernel=kernel,
        reason=None,
        display_name="Python 3",
        language_info={"name": "python", "version": "3.11", "file_extension": ".py"},
    )
    journal.append([started])
    executions = (
        _execution(seq, by, timestamp(moment), words)
        for seq, moment in enumerate(islice(moments, size), 1)
    )
    while batch := list(islice(executions, BATCH)):
        journal.append(
            [entry for entries, _ in batch for entry in entries],
            [payload for _, payloads in batch for payload in payloads],
        )
    journal.close(Closed(at=timestamp(next(moments)), by=by, reason="closed"))
    return session_id


def _execution(
    seq: int, by: By, at: str, words: random.Random
) -> tuple[Sequence[Entry], Sequence[Payload]]:
    """Return the entries of an execution, and the payloads that they name."""
    execution_id = ExecutionId(f"x_{ULID()}")
    failed = seq % ERROR_EVERY == 0
    source = Payload.of(_source(seq, words).encode())
    outputs = pack_outputs(list(_outputs(seq, words, failed=failed)))
    entries = [
        Accepted(
            at=at,
            by=by,
            execution_id=execution_id,
            seq=seq,
            source=source.digest,
            timeout=600.0,
            queue_timeout=None,
            max_output_bytes=10_000_000,
        ),
        Dispatched(
            at=at,
            by=By(kind="server"),
            execution_id=execution_id,
            kernel=ExecutionKernel(
                id="k-1", name="python3", incarnation=1, restarted=False, reason=None
            ),
        ),
        Finished(
            at=at,
            by=By(kind="server"),
            execution_id=execution_id,
            status="error" if failed else "ok",
            execution_count=seq,
            error=failed,
            outputs=outputs.digest,
            blobs=outputs.blobs,
            started_at=at,
        ),
    ]
    return entries, [source, *outputs.payloads]


def _source(seq: int, words: random.Random) -> str:
    first, second = words.sample(WORDS, 2)
    rare = f"  # {RARE}" if words.randrange(1000) == 0 else ""
    return f"# step {seq}: {first} per {second}{rare}\ndf.groupby({first!r})[{second!r}].median()"


def _outputs(seq: int, words: random.Random, *, failed: bool) -> Iterator[Output]:
    if failed:
        name = words.choice(WORDS)
        yield {
            "output_type": "error",
            "ename": "KeyError",
            "evalue": repr(name),
            "traceback": [f"KeyError: {name!r}"],
        }
        return
    rows = [f"{word:10} {words.random() * 1000:8.2f}" for word in words.sample(WORDS, 6)]
    yield {"output_type": "stream", "name": "stdout", "text": "\n".join(rows) + "\n"}
    if seq % IMAGE_EVERY == 1:  # which is none that fails
        image = base64.b64encode(_png(words)).decode()
        data = {"image/png": image, "text/plain": "<Figure size 64x64>"}
        yield {"output_type": "display_data", "data": data, "metadata": {}}


def _png(words: random.Random) -> bytes:
    """Return a grey image of 64 × 64 noisy pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    rows = b"".join(b"\0" + words.randbytes(64) for _ in range(64))
    header = struct.pack(">IIBBBBB", 64, 64, 8, 0, 0, 0, 0)
    parts = (chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)
