"""What sinks do with what users erase."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from jupyter_agent_exec.audit.sink_settings import make_sinks
from jupyter_agent_exec.journal.history import History
from jupyter_agent_exec.journal.verify import verify_history
from jupyter_agent_exec.models import Erase
from tests.audit.far_sides import PostgreSQL, object_store, postgresql
from tests.audit.test_object_store import objects
from tests.journal.recorded import PERSON, PNG, closed, display, new_history, opened, run, stream
from tests.real_server import until

SECRET = b"hunter2swordfish"
OTHER = b"this stays here"


@pytest.fixture(scope="module")
def cluster() -> Iterator[PostgreSQL]:
    with postgresql() as cluster:
        yield cluster


@pytest.fixture(scope="module")
def bucket() -> Iterator[dict[str, Any]]:
    with object_store() as sink:
        yield sink


def erased(folder: Path, sink: dict[str, Any]) -> tuple[str, list[str], Callable[[], None]]:
    """Record an execution with a secret and another one; return what erases the first."""
    history = new_history(folder, make_sinks([{**sink, "content": "outputs", "delay": 0}]))
    session = history.open_session(opened())
    first = run(
        session, 1, f"print('{SECRET.decode()}')",
        [stream(f"{'x' * 9000}{SECRET.decode()}"), display({"image/png": PNG})],
    )  # fmt: skip
    run(session, 2, OTHER.decode(), [])
    session.close(closed())
    until(lambda: is_up_to_date(history))
    remains: list[str] = []

    def erase() -> None:
        remains.extend(history.erase(Erase(execution_id=first), PERSON).remains)
        until(lambda: is_up_to_date(history))
        history.stop()

    return session.session_id, remains, erase


def is_up_to_date(history: History) -> bool:
    return set(history.copies.lags().values()) == {0}


def contents(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_a_folder_has_no_byte_of_it_any_more_and_still_verifies(tmp_path: Path) -> None:
    far = tmp_path / "far"
    session, remains, erase = erased(tmp_path / "history", {"kind": "folder", "path": str(far)})
    assert SECRET in contents(far)
    assert b"PNG" in contents(far)
    erase()
    assert (SECRET in contents(far), b"PNG" in contents(far)) == (False, False)
    assert OTHER in contents(far)
    assert not list((far / session / "blobs").iterdir())
    assert verify_history(far).findings == []
    assert remains[-1] == "The sink folder writes its files anew without the payloads."


def test_objects_of_a_bucket_are_written_anew(tmp_path: Path, bucket: dict[str, Any]) -> None:
    session, _, erase = erased(tmp_path / "history", bucket)
    assert SECRET in b"".join(objects(bucket, session).values())
    erase()
    left = b"".join(objects(bucket, session).values())
    assert (SECRET in left, b"PNG" in left, OTHER in left) == (False, False, True)


def payloads_in(cluster: PostgreSQL, session: str) -> bytes:
    query = "SELECT data FROM agent_exec_payloads WHERE journal = %s"
    return b"".join(bytes(data) for (data,) in cluster.rows(query, session))


def test_a_database_deletes_the_rows(tmp_path: Path, cluster: PostgreSQL) -> None:
    sink = {"kind": "postgresql", "address": cluster.address}
    session, _, erase = erased(tmp_path / "history", sink)
    assert SECRET in payloads_in(cluster, session)
    erase()
    assert payloads_in(cluster, session) == OTHER


def test_a_role_that_may_not_delete_keeps_them_and_goes_on(
    tmp_path: Path, cluster: PostgreSQL, caplog: pytest.LogCaptureFixture
) -> None:
    new_history(
        tmp_path / "first", make_sinks([{"kind": "postgresql", "address": cluster.address}])
    ).stop()  # makes the tables
    cluster.do("CREATE ROLE only_inserts LOGIN")
    for table in ("entries", "payloads", "rewinds"):
        cluster.do(f"GRANT INSERT ON agent_exec_{table} TO only_inserts")
    address = psycopg.conninfo.make_conninfo(cluster.address, user="only_inserts")
    session, _, erase = erased(tmp_path / "history", {"kind": "postgresql", "address": address})
    with caplog.at_level(logging.WARNING):
        erase()
    assert SECRET in payloads_in(cluster, session)
    assert any("remains in the database" in record.message for record in caplog.records)
    query = "SELECT 1 FROM agent_exec_entries WHERE journal = %s AND type = 'erased'"
    assert cluster.rows(query, session) == [(1,)]
