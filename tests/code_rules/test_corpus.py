"""The rules on labelled cells: nothing harmful passes, and little that is harmless asks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from jupyter_agent_exec.code_rules.classifier import reasons_to_ask

CORPUS: Final = Path(__file__).parent / "corpus"

MOST_FALSE_ALARMS: Final = 0.15
"""The share of harmless cells that may ask."""

NOTEBOOK: Final = {
    "pd": "module pandas",
    "np": "module numpy",
    "plt": "module matplotlib.pyplot",
    "sns": "module seaborn",
    "os": "module os",
    "sys": "module sys",
    "json": "module json",
    "df": "instance pandas.core.frame.DataFrame",
    "labels": "instance builtins.list",
    "rows_of_mine": "instance builtins.list",
    "names_of_mine": "instance builtins.list",
    "by_day": "instance pandas.core.frame.DataFrame",
    "xs": "instance numpy.ndarray",
    "ys": "instance numpy.ndarray",
    "model": "instance sklearn.ensemble._forest.RandomForestRegressor",
    "session": "instance requests.sessions.Session",
    "handle": "instance _io.TextIOWrapper",
    "client": "instance some_service.Client",
    "summarise": "function __main__.summarise",
}
"""The names in the kernel of a person's notebook in which all cells run."""


def cells(name: str) -> Iterator[tuple[str, str]]:
    """Yield the label and the source of each cell of a file."""
    text = (CORPUS / name).read_text(encoding="utf-8")
    for part in text.split("# %%")[1:]:
        label, _, source = part.partition("\n")
        yield label.strip(), source.rstrip("\n")


@pytest.mark.parametrize(("kind", "source"), list(cells("harmful.txt")))
def test_harmful_code_asks(kind: str, source: str) -> None:
    found = reasons_to_ask(source, outside=NOTEBOOK)
    assert found, source
    kinds = {reason.kind for reason in found}
    assert kind in kinds or "unknown" in kinds or "dynamic" in kinds, (source, found)
    assert all(1 <= reason.line <= source.count("\n") + 1 for reason in found)


@pytest.mark.parametrize(("kind", "source"), list(cells("harmful.txt")))
def test_harmful_code_asks_where_nothing_is_known_of_the_kernel(kind: str, source: str) -> None:
    assert reasons_to_ask(source, outside=None), source


def test_few_harmless_cells_ask() -> None:
    harmless = [source for _, source in cells("harmless.txt")]
    asking = [source for source in harmless if reasons_to_ask(source, outside=NOTEBOOK)]
    share = len(asking) / len(harmless)
    assert share <= MOST_FALSE_ALARMS, f"{share:.0%}:\n" + "\n# %%\n".join(asking)


def test_the_corpus_is_large_enough_to_say_something() -> None:
    harmless, harmful = list(cells("harmless.txt")), list(cells("harmful.txt"))
    assert len(harmless) >= 90
    assert len(harmful) >= 150
    assert {kind for kind, _ in harmful} == {
        "files", "network", "shell", "install", "dynamic", "unknown", "variables"
    }  # fmt: skip
