"""The repository's own files agree with each other: workflows, recipe, citation, versions."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement

from scripts.mutate import Place, places

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]


def read(path: str | Path) -> Any:
    return yaml.safe_load((ROOT / path).read_text())


def steps(workflow: Path) -> list[dict[str, Any]]:
    return [step for job in read(workflow)["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_use_targets_that_the_makefile_has(workflow: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    runs = [step["run"] for step in steps(workflow) if "run" in step]
    used = {
        word for run in runs for line in re.findall(r"^make (.*)", run) for word in line.split()
    }
    assert {word for word in used if "=" not in word} <= targets


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_may_do_only_what_they_say_and_end(workflow: Path) -> None:
    described = read(workflow)
    for name, job in described["jobs"].items():
        assert "permissions" in job or described.get("permissions") == {"contents": "read"}, name
        assert job["runs-on"]
        long = any("run" in step and "make" in step["run"] for step in job["steps"])
        assert "timeout-minutes" in job or not long, name


def test_all_pythons_that_the_package_names_are_tested_on_linux_and_macos() -> None:
    matrix = read(".github/workflows/test.yml")["jobs"]["python"]["strategy"]["matrix"]
    named = re.findall(r":: (3\.\d+)$", "\n".join(PROJECT["classifiers"]), re.MULTILINE)
    assert matrix["python"] == named
    assert PROJECT["requires-python"] == f">={named[0]}"
    assert {os.partition("-")[0] for os in matrix["os"]} == {"ubuntu", "macos"}


def test_pull_requests_wait_for_all_tests() -> None:
    jobs = read(".github/workflows/test.yml")["jobs"]
    assert set(jobs["passed"]["needs"]) == set(jobs) - {"passed"}


def test_dependabot_looks_into_every_folder_with_packages() -> None:
    told = read(".github/dependabot.yml")["updates"]
    folders = {
        "/" + str(path.parent.relative_to(ROOT))
        for pattern in ("*/yarn.lock", "tests/*/yarn.lock", "tests/*/*/yarn.lock")
        for path in ROOT.glob(pattern)
    }
    (npm,) = [each for each in told if each["package-ecosystem"] == "npm"]
    assert set(npm["directories"]) == folders


def test_forms_for_issues_have_what_such_forms_need() -> None:
    for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*_*.yml"):
        form = read(path)
        assert {"name", "description", "body"} <= set(form)
        ids = [field["id"] for field in form["body"] if field["type"] != "markdown"]
        assert len(ids) == len(set(ids))
        assert all(field["attributes"] for field in form["body"])


def test_hooks_before_a_commit_use_the_versions_of_make_check() -> None:
    pins = dict(
        line.split("==") for line in (ROOT / "constraints.txt").read_text().split() if "==" in line
    )
    config = read(".pre-commit-config.yaml")
    revisions = {each["repo"].rpartition("/")[2]: each.get("rev", "") for each in config["repos"]}
    for repository, package in (
        ("ruff-pre-commit", "ruff"),
        ("codespell", "codespell"),
        ("validate-pyproject", "validate-pyproject"),
    ):
        assert revisions[repository] == f"v{pins[package]}"
    (ours,) = [each for each in config["repos"] if each["repo"] == "local"]
    assert {hook["id"] for hook in ours["hooks"]} == set(config["ci"]["skip"]), (
        "pre-commit.ci has none of what they need"
    )


def test_the_conda_recipe_is_about_this_package() -> None:
    recipe = read("conda-recipe/recipe.yaml")
    version = json.loads((ROOT / "labextension" / "package.json").read_text())["version"]
    assert recipe["context"]["version"] == version
    assert recipe["package"]["name"] == PROJECT["name"]
    assert recipe["about"]["summary"] == PROJECT["description"]
    assert f">={recipe['context']['python_min']}" == PROJECT["requires-python"]
    asked = {str(Requirement(each)) for each in PROJECT["dependencies"]}
    told = {str(Requirement(each)) for each in recipe["requirements"]["run"][1:]}
    assert told == asked
    hook = PYPROJECT["tool"]["hatch"]["build"]["hooks"]["jupyter-builder"]
    built = {*PYPROJECT["build-system"]["requires"], *hook["dependencies"]}
    host = {str(Requirement(each)) for each in recipe["requirements"]["host"][2:]}
    assert host == {str(Requirement(each)) for each in built}
    (script,) = [f"{name} = {what}" for name, what in PROJECT["scripts"].items()]
    assert recipe["build"]["python"]["entry_points"] == [script]


def test_the_citation_has_what_the_format_asks_for() -> None:
    citation = read("CITATION.cff")
    assert citation["cff-version"] == "1.2.0"
    assert {"message", "title", "authors"} <= set(citation)
    assert citation["title"] == PROJECT["name"]
    assert citation["license"] == PROJECT["license"]
    assert citation["authors"] == PROJECT["authors"]
    assert citation["abstract"] == PROJECT["description"]


def test_the_releaser_finds_what_its_hooks_run() -> None:
    hooks = PYPROJECT["tool"]["jupyter-releaser"]["hooks"]
    commands = [command for each in hooks.values() for command in each]
    for command in commands:
        for path in re.findall(r"scripts/\S+", command):
            assert (ROOT / path).is_file()
    changelog = (ROOT / "CHANGELOG.md").read_text()
    for marker in ("START", "END"):
        assert changelog.count(f"<!-- <{marker} NEW CHANGELOG ENTRY> -->") == 1


@pytest.mark.parametrize("place", places(), ids=lambda place: place.what)
def test_a_place_that_make_mutate_changes_is_there_and_has_its_tests(place: Place) -> None:
    source = (ROOT / place.file).read_text()
    changed = place.changed(source)
    compile(changed, place.file, "exec")
    assert changed != source
    for test in place.tests:
        path, *_, name = test.split("::")
        assert f"def {name}(" in (ROOT / path).read_text()


def test_each_file_that_starts_a_server_says_why() -> None:
    tests = ROOT / "tests"
    starts = re.compile(r"(?<!def )\b(real_server|server_process)\(")
    found = {
        path.relative_to(tests).as_posix()
        for place in ("*.py", "*/*.py", "frameworks/*/*.py", "kernels/trials/*.py")
        for path in tests.glob(place)
        if starts.search(path.read_text("utf-8"))
    }
    named = set(re.findall(r"`([\w/]+\.py)`", (tests / "README.md").read_text("utf-8")))
    assert found - named == set(), "name them in tests/README.md, with the reason"
    assert [name for name in named if not (tests / name).is_file()] == []
