"""Everyday scripts, which differ from lagent's users' own in one import."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[3] / "examples" / "frameworks"

Captured = pytest.CaptureFixture[str]


def output(name: str, capsys: Captured) -> str:
    """Run a script, and return what it prints."""
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile((EXAMPLES / name).read_text(), "script", "exec"), names)
    names["interpreter"].close()
    return capsys.readouterr().out


def test_fibonacci_numbers_as_a_model_asks_for_them(folder: Path, capsys: Captured) -> None:
    said = output("lagent_fibonacci.py", capsys)
    assert said.splitlines() == [
        "0 []",
        "0 0 1 1 2 3 5 8 13 21 34",
        "88",
        "-1002 [\"NameError: name 'none' is not defined\"]",
    ]


def test_a_csv_file_is_analysed(
    folder: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["script", "data.csv"])
    (folder / "data.csv").write_text("region,amount\nwest,1\neast,2\nwest,3\n")
    assert output("lagent_csv.py", capsys) == "(3, 2)\nregion\neast    2\nwest    4\n\n"


def test_a_plot_is_a_file(folder: Path, capsys: Captured) -> None:
    text, image = output("lagent_plot.py", capsys).splitlines()
    assert text == "text "
    kind, path = image.split(" ")
    assert kind == "image"
    assert (folder / path).read_bytes().startswith(b"\x89PNG")
