"""What the documents say of the code is so."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import get_args

import pytest

from jupyter_agent_exec import errors, models
from jupyter_agent_exec.types import Status, Via
from scripts import references

ROOT = Path(__file__).parents[1]
DOCUMENTS = [
    path
    for pattern in ("*.md", "docs/**/*.md", "examples/**/*.md")
    for path in ROOT.glob(pattern)
    if "_build" not in path.parts
]


def rows(document: str) -> dict[str, str]:
    """Return the rows of a document's tables that begin with something in backticks."""
    text = (ROOT / document).read_text()
    return dict(re.findall(r"^\| `([^`]+)` \| (.*) \|$", text, re.MULTILINE))


def test_each_generated_part_has_one_place_in_the_pages() -> None:
    marks = [
        name
        for path in DOCUMENTS
        for name in re.findall(r"^<!-- generated: (\S+) -->$", path.read_text(), re.MULTILINE)
    ]
    assert sorted(marks) == sorted(references.GENERATED)


@pytest.mark.parametrize("name", references.GENERATED)
def test_a_page_gets_what_the_code_says_at_its_mark(name: str) -> None:
    page = references.completed(f"# A page\n\n<!-- generated: {name} -->\n\nThe end.\n")
    assert re.fullmatch(r"# A page\n\n(?!<!--).{1000,}\n\nThe end\.\n", page, re.DOTALL)


@pytest.mark.parametrize("name", references.own_traits())
def test_every_trait_says_what_it_decides(name: str) -> None:
    assert references.own_traits()[name].help.strip().endswith(".")


def test_every_promise_names_tests_that_exist() -> None:
    text = (ROOT / "SECURITY.md").read_text()
    guards = text.partition("## What guards it")[2].partition("## What does not guard it")[0]
    promises = re.findall(r"^- .*\n(?:  - .*\n)*", guards, re.MULTILINE)
    assert promises
    assert [promise for promise in promises if "::" not in promise] == []
    named = re.findall(r"`((?:ui-)?tests/[^`]+)`", text)
    assert [name for name in named if not exists(*name.partition("::")[::2])] == []


def exists(file: str, test: str) -> bool:
    """Return whether a test file has a test of this name, or in TypeScript with this title."""
    path = ROOT / file
    if not path.is_file() or not test:
        return False
    declared = rf"def {test}\(" if path.suffix == ".py" else rf"test\(['`]{re.escape(test)}['`],"
    return re.search(declared, path.read_text()) is not None


def test_what_a_models_fields_hold_stands_beside_them() -> None:
    page = references.completed("<!-- generated: openapi -->")
    rows = page.partition("## Execution\n")[2].partition("\n## ")[0]
    assert "| `seq` | integer | Number in the session" in rows, "a field that it inherits"
    assert "| `cell` | object | A complete nbformat" in rows


def test_what_notebooks_can_be_asked_and_answer_is_described() -> None:
    text = (ROOT / "docs/explanation/notebooks.md").read_text()
    told = set(re.findall(r"`\"?(\w+)\"?`", text))
    operations = {str(edit.__struct_config__.tag) for edit in get_args(models.Edit)}
    assert operations | set(get_args(Via)) <= told
    for placement in models.Placement.__struct_fields__:
        assert f'"{placement}"' in text
    for target in get_args(models.Target):
        assert f'"kind": "{target.__struct_config__.tag}"' in text


def test_every_dependency_says_why_it_is_there() -> None:
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project = pyproject["project"]
    hook = pyproject["tool"]["hatch"]["build"]["hooks"]["jupyter-builder"]
    asked = [
        *project["dependencies"],
        *(item for extra in project["optional-dependencies"].values() for item in extra),
        *pyproject["build-system"]["requires"],
        *hook["dependencies"],
    ]
    assert set(rows("docs/reference/dependencies.md")) == {
        re.split(r"[\[<>=]", item)[0] for item in asked
    }


def test_troubleshooting_names_what_can_be_seen() -> None:
    text = (ROOT / "docs/how-to/troubleshooting.md").read_text()
    seen = re.findall(r"^\| ([^|]*) \|", text, re.MULTILINE)
    named = {name for each in seen for name in re.findall(r"`([a-z]\w*_\w+)`", each)}
    codes = {each.code for each in vars(errors).values() if hasattr(each, "code")}
    assert named - codes - {*get_args(Status), *models.Execution.__struct_fields__} == set()
    assert len(named) >= 20


def test_every_page_is_in_the_list_of_its_folder() -> None:
    pages = [path for path in DOCUMENTS if path.is_relative_to(ROOT / "docs")]
    for page in (path for path in pages if path.name != "index.md"):
        listed = page.with_name("index.md").read_text()
        assert f"({page.name})" in listed, f"{page.parent.name}/index.md lacks {page.name}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", document.read_text())
    inside = [link for link in links if "://" not in link]
    assert [link for link in inside if not (document.parent / link).exists()] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_make_knows_the_words_that_are_told(document: Path) -> None:
    words = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    told = re.findall(r"(?:^|`)make ((?:[a-z-]+ ?)+)", document.read_text(), re.MULTILINE)
    assert {word for line in told for word in line.split()} <= words
