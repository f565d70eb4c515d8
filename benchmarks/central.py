"""A central record of 10,000,000 entries of 200 servers: written to, asked, checked, cut."""

from __future__ import annotations

import json
import random
import re
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
from measures import Broken, Goal, Measurement, Result, timed
from recorded import record
from ulid import ULID

from jupyter_agent_exec.audit.postgresql import ENTRY, PAYLOAD, TABLES, PostgreSQLSink, rows
from jupyter_agent_exec.audit.sink import Batch, SentEntry, SinkSettings
from jupyter_agent_exec.audit.tail import Cursor, Tail
from jupyter_agent_exec.journal import chain
from jupyter_agent_exec.types import Digest, SessionId
from tests.audit import documented
from tests.audit.far_sides import PostgreSQL, postgresql

NAME = "central"
SERVERS = 200
SESSIONS_A_DAY = 8
"""Of each server."""
EXECUTIONS = 20
"""Of each session."""
TEMPLATES = 20
SETTINGS = "-c max_connections=250 -c max_wal_size=4GB"
LAST_DAY = datetime(2026, 11, 21, tzinfo=UTC)
"""The record ends with the day after the one that the documented queries name."""


def run(folder: Path, *, size: float) -> Result:
    """Measure it.

    Raises
    ------
    Broken
        A check finds something, or does not find what was removed.
    """
    rounds = max(2, round(5 * size))
    with postgresql(settings=SETTINGS) as cluster:
        site = Site(folder, max(3, round(96 * size)))
        loading = timed(lambda: site.load(cluster))
        [(entries,)] = cluster.rows("SELECT count(*) FROM agent_exec_entries")
        sizes = {name: _size(cluster, name) for name in ("entries", "payloads")}
        before = _written(cluster, site)
        questions = {
            what: query.replace(documented.SESSION, site.example)
            for what, query in documented.queries().items()
        }
        answers = {
            what: [_asked(cluster, query) for _ in range(rounds)]
            for what, query in questions.items()
        }
        checked = _check(cluster)
        removal = _remove(cluster, site)
    goals = [
        Goal(
            what="500 entries written, by sinks of 200 servers",
            unit="s",
            limit=1,
            value=500 / before.entries_a_second,
        ),
    ]
    measurements = [
        Measurement.of("entries that sinks write a second", "", [before.entries_a_second]),
        Measurement.of_times("a sink's batch of 3 entries and a source", before.batches),
        *(Measurement.of_times(f"SQL: {what}", taken) for what, taken in answers.items()),
        Measurement.of("SQL: the checks of the whole record", "s", [checked]),
        Measurement.of("entries of a day", "", list(site.entries.values())),
        Measurement.of("entries on disk", "GB", [sizes["entries"][0]]),
        Measurement.of("of which indexes", "GB", [sizes["entries"][1]]),
        Measurement.of("sources on disk, with their index", "GB", [sizes["payloads"][0]]),
        Measurement.of("removal of the oldest tenth by `DELETE`", "s", [removal]),
        Measurement.of("entries copied into the table a second", "", [entries / loading]),
    ]
    return Result(
        name=NAME,
        title=f"A central record of {entries:,} entries of {SERVERS} servers",
        how=HOW.format(days=site.days),
        goals=goals,
        measurements=measurements,
    )


HOW = (
    "PostgreSQL with its defaults, but for `max_connections` and `max_wal_size`; it syncs. The "
    f"journal's own writer writes {TEMPLATES} sessions of {EXECUTIONS} executions. Each server has "
    f"{SESSIONS_A_DAY} of them a day, for {{days}} days, as copies with their own ids, times and "
    "hash chains, and a ledger that lists them; the sink makes their rows, with sources, and they "
    f"are copied in with `COPY`, since this takes minutes and not hours. Then {SERVERS} sinks, "
    "eight at a time, write sessions of a new day, an execution a batch. The SQL is that of [the "
    "page on sinks](../how-to/sinks.md). Asserted: its checks find nothing, and after the oldest "
    "tenth was removed, they name its sessions."
)


class Session(NamedTuple):
    """A session of the product's own writer, to copy."""

    entries: list[SentEntry]
    pieces: list[list[str]]
    """Of the text of each entry: what stays, and in between, a session, an execution or a time."""
    begin: datetime


class Site:
    """What 200 servers send: batches of their ledgers and sessions, by day."""

    def __init__(self, folder: Path, days: int) -> None:
        self.first = LAST_DAY - timedelta(days - 1)
        self.days = days
        self._templates = _templates(folder / "template")
        self._ledgers = [Ledger(n) for n in range(SERVERS)]
        self.example = ""
        """One session."""
        self.entries: dict[datetime, int] = {}
        """Of each day."""

    def load(self, cluster: PostgreSQL) -> None:
        """Copy all days into new tables."""
        cluster.do(TABLES.format(schema="public"))
        with psycopg.connect(cluster.address) as first, psycopg.connect(cluster.address) as second:
            for n in range(self.days):
                if n % 10 == 0:
                    print(f"day {n} of {self.days} …", file=sys.stderr, flush=True)
                entries, payloads = [], []
                for batch, server in self.day(self.first + timedelta(n)):
                    for all, some in zip((entries, payloads), rows(batch, server), strict=True):
                        all.extend(some)
                self.entries[self.first + timedelta(n)] = len(entries)
                with ThreadPoolExecutor(2) as pool:
                    copied = pool.submit(_copy, second, f"payloads ({PAYLOAD})", payloads)
                    _copy(first, f"entries ({ENTRY})", entries)
                    copied.result()
        cluster.do("VACUUM ANALYZE")

    def day(self, day: datetime) -> Iterator[tuple[Batch, str]]:
        """Yield what the servers send on a day, and by whom."""
        dice = random.Random(day.toordinal())
        for hour in range(SESSIONS_A_DAY):
            for ledger in self._ledgers:
                at = day + timedelta(hours=hour, seconds=dice.randrange(3000))
                yield from ((batch, ledger.server) for batch in self.session(ledger, at, dice))

    def session(self, ledger: Ledger, at: datetime, dice: random.Random) -> Iterator[Batch]:
        """Yield a session and what its ledger says."""
        template = dice.choice(self._templates)
        session_id = SessionId(f"s_{ULID.from_datetime(at)}")
        self.example = session_id
        ids: dict[str, str] = {}
        entries, previous = [], chain.GENESIS
        if not ledger.length:
            began = ledger.entry(_stamp(at), type="ledger_opened", instance=ledger.name[7:])
            yield Batch(ledger.name, [began], rewound=False)
        head = {"head": ledger.head, "length": ledger.length}
        for sent, pieces in zip(template.entries, template.pieces, strict=True):
            moment = _stamp(at + (datetime.fromisoformat(sent.at) - template.begin))
            execution_id = None
            if sent.execution_id is not None:
                execution_id = ids.setdefault(sent.execution_id, f"x_{ULID.from_datetime(at)}")
            own = {"s": session_id, "x": execution_id or "", "2": moment}
            filled = [own[each[0]] if n % 2 else each for n, each in enumerate(pieces)]
            canonical = "".join(filled).encode()
            if sent.n == 0:
                canonical = chain.canonical(json.loads(canonical) | {"ledger": head})
            previous = sha256(previous.encode() + canonical).hexdigest()
            entries.append(
                sent._replace(
                    hash=Digest(previous),
                    canonical=canonical,
                    at=moment,
                    execution_id=execution_id,
                )
            )
        about = {"session_id": session_id}
        end = {"head": previous, "length": len(entries)}
        opened = ledger.entry(_stamp(at), type="session_opened", **about)
        closed = ledger.entry(entries[-1].at, type="session_closed", chain=end, **about)
        yield Batch(ledger.name, [opened, closed], rewound=False)
        yield Batch(session_id, entries, rewound=False)


class Ledger:
    """The ledger of one server."""

    def __init__(self, n: int) -> None:
        self.server = f"user-{n}@hub"
        self.name = f"ledger-{n:016x}"
        self.head, self.length = chain.GENESIS, 0

    def entry(self, at: str, **said: Any) -> SentEntry:
        """Add an entry."""
        n, by = self.length, {"kind": "server"}
        entry = {"at": at, "by": by, "format": chain.FORMAT, "n": n, **said}
        canonical = chain.canonical(entry)
        self.head, self.length = chain.link(self.head, canonical), n + 1
        return SentEntry(n, Digest(self.head), canonical, said["type"], at, None, {}, {})


def _stamp(moment: datetime) -> str:
    return f"{moment.isoformat(timespec='milliseconds')[:23]}Z"


def _templates(folder: Path) -> list[Session]:
    """Return sessions as the journal's writer writes them and a sink gets them."""
    cells = TEMPLATES * EXECUTIONS
    record(folder, cells=cells, sessions=TEMPLATES, in_largest=EXECUTIONS)
    settings = SinkSettings(name="template", server="template", content="sources")
    found = []
    for path in folder.glob("sessions/*/journal.jsonl"):
        tail = Tail(path, folder, settings)
        entries, _ = tail.read(Cursor(start=0, end=0, hash=""), path.stat().st_size)
        pieces = [re.split(_OWN, entry.canonical.decode()) for entry in entries]
        found.append(Session(entries, pieces, datetime.fromisoformat(entries[0].at)))
    return found


_OWN = r"(?<=\")([sx]_[0-9A-Z]{26}|20\d\d-\d\d-\d\dT[0-9:.]+Z)(?=\")"


def _copy(connection: psycopg.Connection[Any], table: str, data: list[Any]) -> None:
    command: Any = f"COPY agent_exec_{table} FROM STDIN"
    with connection.transaction(), connection.cursor() as cursor, cursor.copy(command) as copy:
        for row in data:
            copy.write_row(row)


def _size(cluster: PostgreSQL, table: str) -> tuple[float, float]:
    """Return what a table takes on disk, and its indexes, in GB."""
    query = "SELECT pg_total_relation_size(t), pg_indexes_size(t) FROM (SELECT %s::regclass AS t) t"
    [(whole, indexes)] = cluster.rows(query, f"agent_exec_{table}")
    return whole / 1e9, indexes / 1e9


class Written(NamedTuple):
    """How the sinks of all servers wrote."""

    entries_a_second: float
    batches: list[float]


def _written(cluster: PostgreSQL, site: Site) -> Written:
    """Have the sink of each server write a session, an execution a batch."""
    work = []
    for batch, server in site.day(LAST_DAY + timedelta(1)):
        if len(work) == 2 * SERVERS * 3:
            break
        work.append((server, batch))
    batches: dict[str, list[Batch]] = {}
    for server, batch in work:
        batches.setdefault(server, []).extend(
            batch._replace(entries=batch.entries[n : n + 3])
            for n in range(0, len(batch.entries), 3)
        )
    taken: list[float] = []
    with ExitStack() as stack, ThreadPoolExecutor(8) as pool:
        sinks = {}
        for server in batches:
            settings = SinkSettings(name="postgresql", server=server)
            sinks[server] = PostgreSQLSink(settings, cluster.address, "public")
            stack.callback(sinks[server].close)
            sinks[server].deliver(Batch("", [], rewound=False))  # connects

        def write(server: str) -> list[float]:
            return [
                timed(lambda each=each: sinks[server].deliver(each)) for each in batches[server]
            ]

        begin = time.perf_counter()
        for some in pool.map(write, batches):
            taken += some
        seconds = time.perf_counter() - begin
    return Written(sum(len(batch.entries) for _, batch in work) / seconds, taken)


def _check(cluster: PostgreSQL) -> float:
    """Run the documented checks; return the seconds."""
    cluster.do("CREATE EXTENSION pgcrypto")
    begin = time.perf_counter()
    for check in _checks():
        found = cluster.rows(check)
        if found:
            raise Broken(f"{len(found)} rows of {check.partition(chr(10))[0]}: {found[:3]}")
    return time.perf_counter() - begin


def _checks() -> list[str]:
    return documented.blocks("Check it with SQL")[0]


def _asked(cluster: PostgreSQL, query: str) -> float:
    return timed(lambda: cluster.rows(query.replace("%", "%%").replace("read_csv", "median")))


def _remove(cluster: PostgreSQL, site: Site) -> float:
    """Remove the oldest tenth as documented; return the seconds."""
    [[function], [went_on, *deletes]] = documented.blocks("Keep it for a time")
    kept = site.first + timedelta(max(1, site.days // 10))
    cluster.do(function)
    if cluster.rows(went_on.replace("2026-09-01", str(kept.date()))):
        raise Broken("A session goes on past the end of its day.")
    begin = time.perf_counter()
    for each in deletes:
        cluster.do(each.replace("2026-09-01", str(kept.date())))
    seconds = time.perf_counter() - begin
    removed = SERVERS * SESSIONS_A_DAY * (kept - site.first).days
    named = len(cluster.rows(_checks()[1]))
    if named != removed:
        raise Broken(f"The check of ends names {named} sessions; {removed} were removed.")
    return seconds
