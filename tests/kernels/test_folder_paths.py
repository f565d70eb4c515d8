"""Which paths there are, and which are hidden."""

from __future__ import annotations

import pytest

from jupyter_agent_exec.errors import InvalidRequest
from jupyter_agent_exec.kernels.folder import (
    check_new,
    decoded,
    is_data,
    is_hidden,
    is_notebook,
    is_reached,
    parts_of,
)


@pytest.mark.parametrize(
    "path",
    [
        "a",
        "a/b.txt",
        "my file (1).csv",
        "ä/é.png",
        "..a",
        "a..b",
        "\u0645\u06cc\u200c\u062e.txt",
        "100%.txt",
    ],
)
def test_ordinary_names_are_taken_as_they_are(path: str) -> None:
    assert parts_of(path) == tuple(path.split("/"))


@pytest.mark.parametrize(
    "path",
    [
        "", "/", "/etc/passwd", "a/", "a//b", ".", "..", "a/..", "a/../b", "../a", "./a", "a/./b",
        "a\\b", "..\\a", "C:\\a", "a\0b", "a\nb", "a\x1b[0m", "a\x7f", "a\x85b", "a\u2028b",
        "a\ud800", "a.", "a ", "a/b. ", "a\u00a0", "a\u3000", "a\u2026",
        "%2e%2e", "a%2fb", "a%2Fb", "a%252fb", "a%25252fb", "a%5cb", "%2e", "a%00", "a%0a",
        "\uff0e\uff0e", "a\uff0fb", "a\uff3cb", "\u2024\u2024", "\u2100", ".\u200b.", "a\u200b.",
        "\uff05\uff12\uff26", "a%" + "25" * 126, "x" * 256, "ä" * 128, "/".join("a" * 65),
    ],
)  # fmt: skip
def test_what_is_no_plain_path_is_none(path: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        parts_of(path)
    assert refused.value.detail["field"] == "path"


@pytest.mark.parametrize(
    "path",
    [".a", "a/.b", ".git/config", "\u200c.ssh", "\uff0egit", "%2egit", "%252egit", "\u2060.a/b"],
)
def test_a_name_that_begins_with_a_dot_is_hidden_however_it_is_written(path: str) -> None:
    assert is_hidden(path.split("/"))
    assert not all(is_reached(name) for name in path.split("/"))


@pytest.mark.parametrize(
    "name", ["a.ipynb", "A.IPYNB", "a.ipynb\u200c", "a%2eipynb", "a.\uff49pynb"]
)
def test_a_notebook_is_one_however_it_is_written(name: str) -> None:
    assert is_notebook(name)
    assert not is_notebook("a.ipynb.txt")


@pytest.mark.parametrize(
    "path",
    [
        "sales.csv",
        "data/2024/Sales.CSV.gz",
        "plot.png",
        "notes.txt",
        "rows.jsonl",
        "model/weights.npz",
        "kn\u00f6pfe.parquet",
    ],
)
def test_data_is_known_by_its_name(path: str) -> None:
    assert is_data(path.split("/"))


@pytest.mark.parametrize(
    "path",
    [
        "pandas.py",
        "a.csv/pandas.py",
        "a.pyc",
        "a.pth",
        "a.so",
        "a.ipynb",
        "a.ipynb.gz",
        "Makefile",
        "run",
        "run.sh",
        "csv",
        ".csv",
        "a.py.",
        "a.txt\u200c.py",
        "a.py\u200c",
        "a.md",
        "a.toml",
        "a.yaml",
        "a.html",
        "a.svg",
        "a.pkl",
        "a.zip",
        "a.tar.gz",
        "a.gz",
        "requirements.txt",
        "dev-requirements.txt",
        "CMakeLists.txt",
        "jupyter_server_config.json",
        "jupyter_server_config.d/a.json",
        "kernels/mine/kernel.json",
        "package.json",
        "package-lock.json",
        "overrides.json",
        "evil-1.0.dist-info/entry_points.txt",
        "page%5fconfig.json",
        "\uff43onfig.json",
    ],
)
def test_what_is_not_known_to_be_data_can_become_code(path: str) -> None:
    assert not is_data(path.split("/"))


@pytest.mark.parametrize("raw", ["a%2fb", "a%2Fb", "..%2f..%2fetc", "a/b%2f", "%ff", "a%c3"])
def test_a_name_in_an_address_has_no_encoded_slash_and_is_text(raw: str) -> None:
    with pytest.raises(InvalidRequest):
        decoded(raw)


def test_an_address_is_decoded_once() -> None:
    assert decoded("a%20b/%C3%A4+%252f") == "a b/ä+%2f"


def test_a_new_name_is_written_as_its_look_alikes_are() -> None:
    check_new(["caf\u00e9"])
    with pytest.raises(InvalidRequest):
        check_new(["a", "cafe\u0301"])
    assert parts_of("cafe\u0301") == ("cafe\u0301",)
