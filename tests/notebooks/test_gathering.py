"""When files are written."""

from __future__ import annotations

import asyncio

from jupyter_agent_exec.notebooks.gathering import Gatherings

LONG = 3600.0


async def test_all_that_joined_meanwhile_are_told_at_once_and_in_order() -> None:
    gatherings = Gatherings(delay=0)
    told: list[int] = []
    for n in range(3):
        gatherings.join("a").add_done_callback(lambda _, n=n: told.append(n))
    last = gatherings.join("a")
    assert not last.done()
    await last
    assert told == [0, 1, 2]


async def test_a_path_does_not_wait_for_another() -> None:
    gatherings = Gatherings(delay=LONG)
    other = gatherings.join("b")
    first = gatherings.join("a")
    with gatherings.hurrying("a"):
        assert first.done()
    assert not other.done()
    with gatherings.hurrying("b"):
        assert other.done()


async def test_who_joins_while_somebody_waits_is_told_at_once() -> None:
    gatherings = Gatherings(delay=LONG)
    with gatherings.hurrying("a"):
        with gatherings.hurrying("a"):
            assert gatherings.join("a").done()
        assert gatherings.join("a").done()
    later = gatherings.join("a")
    assert not later.done()
    with gatherings.hurrying("a"):
        assert later.done()


async def test_who_gave_up_does_not_keep_others_from_being_told() -> None:
    gatherings = Gatherings(delay=0)
    gatherings.join("a").cancel()
    await asyncio.wait_for(gatherings.join("a"), 10)
