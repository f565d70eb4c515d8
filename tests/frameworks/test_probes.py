"""What executors get wrong, and ours must not; run with the `subjects` of one framework."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from subjects import ours

from jupyter_agent_exec.adapters.own_servers import OWN_SERVERS
from tests.frameworks.probes import PROBES
from tests.frameworks.probing import RIGHT, Bench, Probe, one_valid_cell_each

GRACE = 8.0
"""Seconds: how fast it is, is told by the comparison and the benchmarks."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with one server for all that start there."""
    made = tmp_path_factory.mktemp("probes")
    OWN_SERVERS.acquire(made)
    yield made
    OWN_SERVERS.release(made)


@pytest.mark.parametrize("probe", PROBES.values(), ids=PROBES)
def test_ours_is_right_and_leaves_one_valid_cell(probe: Probe, folder: Path) -> None:
    bench = Bench(ours, folder, GRACE)
    with one_valid_cell_each(bench), bench:
        assert probe.look(bench) == (True, RIGHT)
