"""How long fuzzers run, and the JSON that they feed: a short run is part of every test run.

`make fuzz` runs them for longer, with new examples each time; what it finds is kept in
`.hypothesis/` and tried first from then on. An example worth keeping becomes an `@example`.
"""

from __future__ import annotations

import os
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

LONG = int(os.environ.get("AGENT_EXEC_FUZZ_EXAMPLES", "0"))
"""How many examples each fuzzer of a long run tries; 0 for the short run."""


def examples(short: int) -> settings:
    """Return the settings of a fuzzer that tries so many examples in the short run."""
    return settings(
        max_examples=LONG or short,
        derandomize=not LONG,
        database=settings().database if LONG else None,
        deadline=None,
        phases=None or tuple(Phase) if LONG else (Phase.explicit, Phase.generate),
        suppress_health_check=list(HealthCheck),
    )


def nested(depth: int) -> Any:
    """Return a list in a list, and so on."""
    value: Any = []
    for _ in range(depth - 1):
        value = [value]
    return value


texts = st.one_of(
    st.text(max_size=20),
    st.sampled_from(["\ud83d", "\0", "x" * 5_000, "\u202e", "\r\b\x1b[31m", "", "a\nb", "None"]),
)
numbers = st.one_of(
    st.integers(),
    st.floats(),
    st.sampled_from([0, -1, 2**31, 2**63, 2**64, 10**400, 1e308, float("nan"), float("inf")]),
)
scalars = st.one_of(st.none(), st.booleans(), numbers, texts)
json_values = st.one_of(
    st.recursive(
        scalars,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)
        ),
        max_leaves=8,
    ),
    st.sampled_from([nested(depth) for depth in (50, 99, 101, 500, 900)]),
)
