"""When files are written."""

from __future__ import annotations

import asyncio

from jupyter_agent_exec.notebooks.cell_writer import SaveBatches

LONG = 3600.0


async def test_all_that_joined_meanwhile_are_told_at_once_and_in_order() -> None:
    save_batches = SaveBatches(delay=0)
    told: list[int] = []
    for n in range(3):
        save_batches.join("a").add_done_callback(lambda _, n=n: told.append(n))
    last = save_batches.join("a")
    assert not last.done()
    await last
    assert told == [0, 1, 2]


async def test_a_path_does_not_wait_for_another() -> None:
    save_batches = SaveBatches(delay=LONG)
    other = save_batches.join("b")
    first = save_batches.join("a")
    with save_batches.hurrying("a"):
        assert first.done()
    assert not other.done()
    with save_batches.hurrying("b"):
        assert other.done()


async def test_who_joins_while_somebody_waits_is_told_at_once() -> None:
    save_batches = SaveBatches(delay=LONG)
    with save_batches.hurrying("a"):
        with save_batches.hurrying("a"):
            assert save_batches.join("a").done()
        assert save_batches.join("a").done()
    later = save_batches.join("a")
    assert not later.done()
    with save_batches.hurrying("a"):
        assert later.done()


async def test_who_gave_up_does_not_keep_others_from_being_told() -> None:
    save_batches = SaveBatches(delay=0)
    save_batches.join("a").cancel()
    await asyncio.wait_for(save_batches.join("a"), 10)
