"""The wheel and the sdist: what they hold, and that they work, without Node."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import pytest

from jupyter_agent_exec import __version__

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "jupyter_agent_exec"
LAB = ROOT / "labextension"
BUILT = PACKAGE / "labextension"

# Packages are downloaded and JupyterLab is installed.
pytestmark = pytest.mark.timeout(1200)


def run(*command: str | Path, **given: object) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, **given)  # type: ignore[call-overload]
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return str(done.stdout + done.stderr)


def lab_sources() -> Iterator[Path]:
    yield from (LAB / "package.json", LAB / "yarn.lock", LAB / "tsconfig.json")
    for folder in ("src", "style", "schema"):
        yield from (
            path
            for path in (LAB / folder).rglob("*")
            if path.is_file() and "__tests__" not in path.parts
        )


@pytest.fixture(scope="module")
def lab_extension() -> Path:
    """The built lab extension; built now if its sources are newer."""
    stamp = BUILT / "package.json"
    newest = max(path.stat().st_mtime for path in lab_sources())
    if not stamp.exists() or stamp.stat().st_mtime < newest:
        if shutil.which("node") is None:
            pytest.fail("The lab extension is not built, and there is no Node to build it.")
        tools = Path(sys.executable).parent
        env = {**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}
        run(tools / "jlpm", "install", "--immutable", cwd=LAB, env=env)
        run(tools / "jlpm", "build:prod", cwd=LAB, env=env)
    return BUILT


class Environment:
    """A virtual environment, and programs run in it with nothing else in reach."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "venv" / "bin"
        self.home = folder / "home"
        self.home.mkdir()
        venv.create(folder / "venv", with_pip=True)

    def install(self, *what: str | Path) -> None:
        run(self.bin / "python", "-m", "pip", "install", "--quiet", *what)

    def jupyter(self, *arguments: str) -> str:
        env = {"PATH": str(self.bin), "HOME": str(self.home), "LANG": "C.UTF-8"}
        return run(self.bin / "jupyter", *arguments, env=env, cwd=self.home)


class Builder(Environment):
    """An environment with what a build needs, which is installed once for all builds."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())
        hook = project["tool"]["hatch"]["build"]["hooks"]["jupyter-builder"]
        self.install("build", *project["build-system"]["requires"], *hook["dependencies"])

    def build(self, what: str, out: Path, source: Path = ROOT, **given: object) -> Path:
        """Build a `wheel` or an `sdist`, and return its file."""
        command = (self.bin / "python", "-m", "build", "--no-isolation", f"--{what}")
        run(*command, "--outdir", out, source, **given)
        (built,) = out.iterdir()
        return built


@pytest.fixture(scope="module")
def builder(tmp_path_factory: pytest.TempPathFactory) -> Builder:
    return Builder(tmp_path_factory.mktemp("builder"))


@pytest.fixture(scope="module")
def wheel(builder: Builder, lab_extension: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return builder.build("wheel", tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def sdist(builder: Builder, lab_extension: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return builder.build("sdist", tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def clean(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment in which the wheel is installed, and what it asks for."""
    environment = Environment(tmp_path_factory.mktemp("clean"))
    environment.install(wheel)
    return environment


@pytest.fixture(scope="module")
def clean_with_lab(clean: Environment) -> Environment:
    clean.install("jupyterlab>=4.2,<5")
    assert shutil.which("node", path=str(clean.bin)) is None
    return clean


def test_the_wheel_holds_all_that_is_needed_at_run_time(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        names = set(archive.namelist())
    data = f"jupyter_agent_exec-{__version__}.data/data"
    lab = f"{data}/share/jupyter/labextensions/jupyter-agent-exec"
    assert {
        f"{data}/etc/jupyter/jupyter_server_config.d/jupyter_agent_exec.json",
        f"{lab}/install.json",
        f"{lab}/package.json",
        f"{lab}/schemas/jupyter-agent-exec/panel.json",
        f"{lab}/static/style.js",
        "jupyter_agent_exec/_version.py",
        "jupyter_agent_exec/events/activity.v1.yaml",
        "jupyter_agent_exec/journal/metadata.schema.json",
        "jupyter_agent_exec/mcp/consent.html",
        "jupyter_agent_exec/py.typed",
    } <= names
    assert any(re.fullmatch(rf"{lab}/static/remoteEntry\.\w+\.js", name) for name in names)


def test_the_wheel_holds_nothing_else(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        names = archive.namelist()
    tops = {name.partition("/")[0] for name in names}
    release = f"jupyter_agent_exec-{__version__}"
    assert tops == {"jupyter_agent_exec", f"{release}.data", f"{release}.dist-info"}
    strays = (
        *("__pycache__", "/tests/", "__tests__", "node_modules", "jupyter_agent_exec/labext"),
        *(".map", ".ipynb"),
    )
    assert [name for name in names if any(stray in name for stray in strays)] == []
    assert wheel.stat().st_size < 1_500_000


def test_the_wheel_is_laid_out_as_wheels_are(wheel: Path) -> None:
    run(Path(sys.executable).with_name("check-wheel-contents"), wheel)


def test_the_sdist_holds_what_a_wheel_is_built_from_and_no_tests(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    assert {
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "labextension/src/index.ts",
        "labextension/yarn.lock",
        "jupyter_agent_exec/labextension/package.json",
    } <= set(names)
    strays = ("tests/", "__tests__", "node_modules", ".map", "docs/", "benchmarks/", ".ipynb")
    assert [name for name in names if any(stray in name for stray in strays)] == []
    assert sdist.stat().st_size < 2_000_000


def test_a_wheel_from_the_sdist_is_the_same_to_the_byte(
    builder: Builder, sdist: Path, wheel: Path, tmp_path: Path
) -> None:
    """The sdist holds all that is needed, without Node, and a build can be repeated."""
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    without_node = {**os.environ, "PATH": str(tmp_path)}
    again = builder.build("wheel", tmp_path / "dist", source, env=without_node)
    assert (again.name, again.read_bytes()) == (wheel.name, wheel.read_bytes())


@pytest.mark.nightly
def test_the_wheel_alone_runs_code(clean: Environment) -> None:
    assert "verify" in clean.jupyter("agent-exec", "--help")
    assert "42" in clean.jupyter("agent-exec", "run", "print(6 * 7)")
    assert "Whole" in clean.jupyter("agent-exec", "verify")


@pytest.mark.nightly
def test_installing_enables_the_server_extension(clean: Environment) -> None:
    listed = _plain(clean.jupyter("server", "extension", "list"))
    assert re.search(r"jupyter_agent_exec enabled", listed)
    assert re.search(rf"jupyter_agent_exec {re.escape(__version__)} OK", listed)


@pytest.mark.nightly
def test_installing_enables_the_lab_extension_without_node(clean_with_lab: Environment) -> None:
    listed = _plain(clean_with_lab.jupyter("labextension", "list"))
    assert re.search(rf"jupyter-agent-exec v{re.escape(__version__)} enabled OK", listed)


def test_versions_agree(wheel: Path, lab_extension: Path) -> None:
    told = {
        "package.json": json.loads((LAB / "package.json").read_text())["version"],
        "built": json.loads((lab_extension / "package.json").read_text())["version"],
        "wheel": wheel.name.split("-")[1],
        "installed": __version__,
    }
    assert set(told.values()) == {__version__}, told
    assert __version__ in (ROOT / "CHANGELOG.md").read_text()


@pytest.mark.parametrize(
    "folder", ["labextension", "ui-tests", "tests/mcp/agents", "tests/mcp/clients", "tests/hub"]
)
@pytest.mark.parametrize("name", ["yarn.lock", ".yarnrc.yml"])
def test_lock_files_name_no_place_to_download_from(folder: str, name: str) -> None:
    text = (ROOT / folder / name).read_text()
    assert re.findall(r".*(?:://|registry\.|registryServer|\.tgz).*", text, re.IGNORECASE) == []


DISTRIBUTIONS = {
    "PIL": "pillow",
    "ulid": "python-ulid",
    "zmq": "pyzmq",
}
"""Those that are not called as what is imported of them."""


FRAMEWORKS = {
    *("autogen", "autogen_agentchat", "autogen_core", "autogen_ext", "IPython", "json5"),
    *("lagent", "numpy", "pandas", "pantheon", "smolagents"),
    "typing_extensions",
}
"""What adapters import of their frameworks, and say themselves what to install; IPython is only
imported in kernels."""


def test_what_is_imported_is_asked_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    used = ("mcp", "completion", "hub", "object-store", "postgresql", "signing")
    needed = [*project["dependencies"], *(item for name in used for item in extras[name])]
    asked = {re.split(r"[\[<>=]", item)[0] for item in needed}
    imported = {DISTRIBUTIONS.get(name, name) for name in _imported()}
    brought = {"IPython", "jupyter_ydoc", "pycrdt", "mcp_types", "pydantic", "starlette"}
    assert imported - asked == brought, "ipykernel, jupyter-collaboration and mcp bring these"
    assert asked - imported == set()


def _imported() -> set[str]:
    """Return the packages that this one imports, at any depth of its code."""
    found: set[str] = set()
    for path in PACKAGE.rglob("*.py"):
        frameworks = FRAMEWORKS if "adapters" in path.relative_to(PACKAGE).parts else set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names = {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                names = {node.module.partition(".")[0]}
            else:
                continue
            found |= names - frameworks
    beside = {"confinement"}  # which the program that enters a sandbox imports from its folder
    return found - set(sys.stdlib_module_names) - {PACKAGE.name, *beside}


def _plain(text: str) -> str:
    return re.sub(r"\x1b\[\d+m", "", text)
