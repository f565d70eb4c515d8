"""Samples, their summary, and the comparison of two series. Pure functions."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass


class Broken(Exception):
    """What was measured broke a promise; the message says which, and when."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The summary of a series of samples."""

    count: int
    median: float
    p10: float
    p90: float
    p95: float
    max: float


def summary(samples: Sequence[float]) -> Summary:
    """Summarise samples, of which there is at least one."""
    return Summary(
        count=len(samples),
        median=statistics.median(samples),
        p10=percentile(samples, 10),
        p90=percentile(samples, 90),
        p95=percentile(samples, 95),
        max=max(samples),
    )


def percentile(samples: Sequence[float], percent: float) -> float:
    """Return a percentile, with linear interpolation."""
    ordered = sorted(samples)
    position = (len(ordered) - 1) * percent / 100
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """Something that was measured."""

    what: str
    unit: str
    summary: Summary

    @classmethod
    def of(cls, what: str, unit: str, samples: Sequence[float]) -> Measurement:
        """Summarise samples that are in `unit` already."""
        return cls(what=what, unit=unit, summary=summary(samples))

    @classmethod
    def of_times(cls, what: str, seconds: Sequence[float]) -> Measurement:
        """Summarise durations, shown in milliseconds."""
        return cls.of(what, "ms", [1000 * value for value in seconds])


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """A measured value that should be at most `limit`."""

    what: str
    unit: str
    limit: float
    value: float
    low: float | None = None
    """The spread: p10 and p90 of what `value` is the median of; None where there is none."""
    high: float | None = None

    @property
    def met(self) -> bool:
        """Whether it is reached."""
        return self.value <= self.limit

    @classmethod
    def of_median(cls, what: str, unit: str, limit: float, samples: Sequence[float]) -> Goal:
        """Hold the median of samples against a limit."""
        found = summary(samples)
        return cls(
            what=what, unit=unit, limit=limit, value=found.median, low=found.p10, high=found.p90
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of one benchmark."""

    name: str
    title: str
    how: str
    """How it was measured, in a few sentences."""
    goals: list[Goal]
    measurements: list[Measurement]


Rounds = list[list[float]]
"""The samples of one contender, by round."""


def interleaved(
    rounds: int, contenders: Mapping[str, Callable[[], list[float]]]
) -> dict[str, Rounds]:
    """Let contenders take turns, so that changes on the machine affect all of them alike.

    Parameters
    ----------
    rounds
        How often each has its turn. Each round begins with another contender.
    contenders
        By name: takes a few samples.
    """
    names = list(contenders)
    taken: dict[str, Rounds] = {name: [] for name in names}
    for n in range(rounds):
        first = n % len(names)
        for name in names[first:] + names[:first]:
            taken[name].append(contenders[name]())
    return taken


def flat(rounds: Rounds) -> list[float]:
    """Return the samples of all rounds."""
    return [sample for samples in rounds for sample in samples]


def ratios(ours: Rounds, theirs: Rounds) -> list[float]:
    """Return for each round the ratio of the two medians."""
    return [statistics.median(a) / statistics.median(b) for a, b in zip(ours, theirs, strict=True)]


def timed(call: Callable[[], object]) -> float:
    """Return the seconds that a call takes."""
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin
