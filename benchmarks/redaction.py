"""The time that it takes to find secrets in outputs and sources, without a kernel or a server."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

from measures import Goal, Measurement, Result, flat, interleaved, timed

from jupyter_agent_exec.kernels.displays import Displays
from jupyter_agent_exec.kernels.outputs import Outputs
from jupyter_agent_exec.redaction import NOTHING, Pending, RedactionTraits, Redactor
from jupyter_agent_exec.types import ExecutionId

NAME = "redaction"
LINE = "2026-11-24 20:15:31 INFO step 123 of 1000: loss 0.1234, accuracy 0.9876, 12 s\n"
LINES = 1000
PAGE = "<tr><td>penguin</td><td>39.1</td><td>Torgersen &amp; Biscoe</td></tr>\n" * 15_000
SOURCE = "import pandas as pd\ndf = pd.read_csv('sales.csv')\ndf.groupby('region').sum()\n"
GOAL_MS = 10.0
PATTERNS = {f"number {n}": rf"{n}D-\d{{8}}" for n in "ABC"}


class Off(Redactor):
    """Replaces nothing."""

    def text(self, text: str) -> tuple[str, int]:
        """Return the text."""
        return text, 0

    def piece(
        self, text: str, before: Pending = NOTHING, *, is_last: bool
    ) -> tuple[str, Pending, int]:
        """Return the piece."""
        return text, NOTHING, 0


def run(folder: Path, *, quick: bool) -> Result:
    """Measure it."""
    os.environ |= {f"BENCHMARK_SECRET_{n}": f"{n} is a very secret value" for n in range(3)}
    configured = RedactionTraits(
        redact_env=[f"BENCHMARK_SECRET_{n}" for n in range(3)],
        redact_patterns=PATTERNS,
        redact_credentials=True,
    )
    redactors = {
        "off": Off(),
        "agent tokens (the default)": Redactor(),
        "3 values, 3 patterns and common credentials too": configured.redactor(),
    }
    work = {f"{LINES:,} lines": _lines, f"{len(PAGE) / 1e6:.1f} MB of HTML": _page}
    work["a source of 3 lines"] = _source
    contenders = {
        f"{what}, {name}": partial(_times, work[what], redactor)
        for what in work
        for name, redactor in redactors.items()
    }
    interleaved(1, contenders)  # to warm up
    taken = interleaved(5 if quick else 50, contenders)
    default = "agent tokens (the default)"
    lines = next(iter(work))
    return Result(
        name=NAME,
        title="To find secrets",
        how=(
            f"An execution's outputs are made from messages with {LINES:,} flushed lines, and "
            "from one with HTML; a source is searched before it is recorded. No kernel, server or "
            "disk is involved, so this is what one thread needs."
        ),
        goals=[
            Goal.of_median(
                f"{lines}, agent tokens",
                "ms",
                GOAL_MS,
                [1000 * value for value in flat(taken[f"{lines}, {default}"])],
            )
        ],
        measurements=[Measurement.of_times(name, flat(taken[name])) for name in contenders],
    )


def _times(work: object, redactor: Redactor) -> list[float]:
    assert callable(work)
    return [timed(partial(work, redactor))]


def _outputs(redactor: Redactor) -> Outputs:
    return Outputs(
        ExecutionId("x_1"), Displays(), max_output_bytes=10_000_000, sink=None, redactor=redactor
    )


def _lines(redactor: Redactor) -> None:
    outputs = _outputs(redactor)
    for _ in range(LINES):
        outputs.feed("stream", {"name": "stdout", "text": LINE})
    outputs.finish()


def _page(redactor: Redactor) -> None:
    _outputs(redactor).feed("display_data", {"data": {"text/html": PAGE}, "metadata": {}})


def _source(redactor: Redactor) -> None:
    redactor.text(SOURCE)
