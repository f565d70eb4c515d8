"""The record, copied to a real S3 API."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from obstore.store import from_url

from jupyter_agent_exec.audit.sink_settings import make_sinks
from jupyter_agent_exec.journal import chain
from tests.audit.far_sides import object_store
from tests.journal.recorded import PNG, closed, display, new_history, opened, run
from tests.real_server import until


@pytest.fixture(scope="module")
def sink() -> Iterator[dict[str, Any]]:
    with object_store() as sink:
        yield sink


def objects(sink: dict[str, Any], folder: str) -> dict[str, bytes]:
    client = {"allow_http": True}
    store = from_url(sink["url"], config=sink["options"], client_options=client)
    listed = [str(each["path"]) for page in store.list(folder) for each in page]
    return {path: bytes(store.get(path).bytes()) for path in sorted(listed)}


def test_batches_and_images_arrive_and_again_after_a_lost_cursor(sink, tmp_path: Path):
    folder = tmp_path / "history"
    history = new_history(folder, make_sinks([{**sink, "content": "outputs"}]))
    session = history.open_session(opened())
    for seq in range(1, 4):
        run(session, seq, f"step {seq}", [display({"image/png": PNG})])
        until(lambda: set(history.copies.lags().values()) == {0})
    history.stop()
    before = objects(sink, session.session_id)
    assert any(content.startswith(b"\x89PNG") for content in before.values())
    (folder / "sinks" / "object-store" / session.session_id).unlink()
    history = new_history(folder, make_sinks([{**sink, "content": "outputs"}]))
    until(lambda: set(history.copies.lags().values()) == {0})
    history.stop()
    after = objects(sink, session.session_id)
    assert before.items() <= after.items()  # nothing was replaced
    lines = [
        line
        for path, content in after.items()
        if path.endswith(".jsonl")
        for line in content.splitlines(keepends=True)
    ]
    hashes = {chain.parse_line(line).hash for line in lines}
    journal = folder / "sessions" / session.session_id / "journal.jsonl"
    on_disk = journal.read_bytes().splitlines(keepends=True)
    assert hashes == {chain.parse_line(line).hash for line in on_disk}


def test_a_bucket_that_is_not_there_is_told(sink, tmp_path: Path):
    away = {**sink, "url": "s3://nowhere/servers"}
    history = new_history(tmp_path / "history", make_sinks([away]))
    try:
        session = history.open_session(opened())
        session.close(closed())
        until(lambda: history.copies.status()[0].error)
        assert "nowhere" in (history.copies.status()[0].error or "")
    finally:
        history.stop()
