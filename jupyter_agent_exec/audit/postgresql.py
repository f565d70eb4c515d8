"""Copies the record to a PostgreSQL database."""

from __future__ import annotations

import json
import logging
from typing import Any, ClassVar, Final

import psycopg
from psycopg import sql

from .sink import Batch, Sink, SinkSettings

TABLES: Final = """
CREATE TABLE {schema}.agent_exec_entries (
    journal text NOT NULL,
    n bigint NOT NULL,
    hash text NOT NULL,
    entry text NOT NULL,
    server text NOT NULL,
    type text NOT NULL,
    at timestamptz NOT NULL,
    execution_id text,
    arrived_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (journal, hash)
);
CREATE INDEX ON {schema}.agent_exec_entries (journal, n);
CREATE INDEX ON {schema}.agent_exec_entries (at);
CREATE INDEX ON {schema}.agent_exec_entries (type, at) WHERE execution_id IS NULL;
CREATE TABLE {schema}.agent_exec_payloads (
    journal text NOT NULL,
    digest text NOT NULL,
    data bytea NOT NULL,
    salt text,
    PRIMARY KEY (journal, digest)
);
CREATE TABLE {schema}.agent_exec_rewinds (
    journal text NOT NULL,
    server text NOT NULL,
    length bigint NOT NULL,
    head text NOT NULL,
    arrived_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (journal, head)
);
"""
"""`entry` has the canonical bytes, which the hashes are of; a rewind is where a journal ended that
no longer held what had been sent of it."""

ENTRY: Final = "journal, n, hash, entry, server, type, at, execution_id"
PAYLOAD: Final = "journal, digest, data, salt"
"""The columns of `rows`."""

_LOCK: Final = 0x6A616578
_CONNECT: Final[dict[str, Any]] = {
    "connect_timeout": 10,
    "application_name": "jupyter-agent-exec",
    "tcp_user_timeout": 30_000,
    "options": "-c statement_timeout=60s -c lock_timeout=60s",
}


_log: Final = logging.getLogger(__name__)


class PostgreSQLSink(Sink):
    """A PostgreSQL database. Makes its tables, if they are not there.

    A row that is there stays as it is: the role needs no right to update or delete, and once the
    tables are there, only the right to insert.

    Parameters
    ----------
    address
        A connection URI or string, as libpq takes it.
    schema
        The schema of the tables.
    """

    erasing: ClassVar[str] = "deletes the payloads, if its role may delete"

    def __init__(self, settings: SinkSettings, address: str, schema: str) -> None:
        super().__init__(settings)
        self._address = address
        self._schema = sql.Identifier(schema)
        self._schema_name = schema
        self._connection: psycopg.Connection[Any] | None = None

    def deliver(self, batch: Batch) -> None:
        """Insert a batch in one transaction."""
        connection = self._connection or self._connect()
        entries, payloads = rows(batch, server := self.settings.server)
        with connection.transaction(), connection.cursor() as cursor:
            if payloads:
                cursor.executemany(self._insert("agent_exec_payloads", PAYLOAD), payloads)
            if entries:
                cursor.executemany(self._insert("agent_exec_entries", ENTRY), entries)
            if batch.rewound:
                last = batch.entries[-1] if batch.entries else None
                end = (0, "") if last is None else (last.n + 1, last.hash)
                cursor.execute(
                    self._insert("agent_exec_rewinds", "journal, server, length, head"),
                    (batch.journal, server, *end),
                )
            if batch.erases:
                self._erase(connection, batch)

    def _erase(self, connection: psycopg.Connection[Any], batch: Batch) -> None:
        """Delete payloads that a user has erased, if the role may."""
        delete = sql.SQL(
            "DELETE FROM {}.agent_exec_payloads WHERE journal = %s AND digest = ANY(%s)"
        ).format(self._schema)
        try:
            with connection.transaction():
                connection.execute(delete, (batch.journal, list(batch.erases)))
        except psycopg.errors.InsufficientPrivilege as error:
            _log.warning(
                "What was erased from %s remains in the database: %s", batch.journal, error
            )

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _insert(self, table: str, names: str) -> sql.Composed:
        columns = [sql.Identifier(name) for name in names.split(", ")]
        return sql.SQL("INSERT INTO {}.{} ({}) VALUES ({}) ON CONFLICT DO NOTHING").format(
            self._schema,
            sql.Identifier(table),
            sql.SQL(", ").join(columns),
            sql.SQL(", ").join(sql.Placeholder() * len(columns)),
        )

    def _connect(self) -> psycopg.Connection[Any]:
        connection = psycopg.connect(self._address, autocommit=True, **_CONNECT)
        try:
            with connection.transaction():
                # two servers that make the tables at once would fail
                connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
                named = f"{json.dumps(self._schema_name)}.agent_exec_rewinds"
                found = connection.execute("SELECT to_regclass(%s)", (named,)).fetchone()
                if found is None or found[0] is None:
                    connection.execute(sql.SQL(TABLES).format(schema=self._schema))
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        return connection


Row = tuple[object, ...]


def rows(batch: Batch, server: str) -> tuple[list[Row], list[Row]]:
    """Return the rows of a batch's entries, and of their payloads."""
    entries: list[Row] = [
        (
            batch.journal,
            entry.n,
            entry.hash,
            entry.canonical.decode("utf-8"),
            server,
            entry.type,
            entry.at,
            entry.execution_id,
        )
        for entry in batch.entries
    ]
    payloads: list[Row] = [
        (batch.journal, digest, data, entry.salts.get(digest))
        for entry in batch.entries
        for digest, data in entry.payloads.items()
    ]
    return entries, payloads
