"""Compare the time and the weight of an installation: `make bench-install`.

Each package is installed beside JupyterLab, in an environment of its own, from wheels that were
downloaded before. It writes benchmarks-install.md.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

import report

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "explanation" / "benchmarks-install.md"
BESIDE = "jupyterlab>=4.2,<5"
THEIRS = ("jupyter-mcp-server==2.2.4", "jupyter-server-mcp==0.4.1", "jupyter-server-nbmodel==0.2.9")

TEXT = """\
# How long an installation takes, and what it weighs

`make bench-install` writes this page. Each package was installed by pip into an environment that
had `{beside}` and nothing else, from wheels that were downloaded before, so the network does not
count. Rounds, in which the packages took turns: {rounds}. The time is the median, with the shortest
and the longest. “Packages” and “MB” are what came on top of JupyterLab.

{date}, {machine}. Load average before: {load:.1f}. Under load, compare times only with each other.

| package | seconds | download, MB | packages | on disk, MB |
| --- | ---: | ---: | ---: | ---: |
{rows}

They do different things. jupyter-mcp-server and jupyter-server-mcp offer MCP tools,
jupyter-server-nbmodel runs cells on the server. `[mcp]` adds the MCP endpoint and the drawing of
SVG to this extension; without it, agents use HTTP, Python or the command line.
"""


@dataclass
class Weight:
    """What installations of one package took and brought."""

    download_bytes: int = 0
    packages: int = 0
    disk_bytes: int = 0
    seconds: list[float] = field(default_factory=list)


def main() -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description="Measure installations.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--wheels", type=Path, help="where an earlier run has put the wheels")
    options = parser.parse_args()
    given = options.wheels
    with tempfile.TemporaryDirectory(prefix="agent-exec-bench-") as made:
        folder = Path(made)
        facts = report.machine(folder)
        _run(sys.executable, "-m", "build", "--wheel", "--outdir", str(folder / "ours"), str(ROOT))
        (wheel,) = (folder / "ours").glob("*.whl")
        named = {"jupyter-agent-exec": str(wheel), "jupyter-agent-exec[mcp]": f"{wheel}[mcp]"}
        named |= {each.partition("==")[0] + " " + each.partition("==")[2]: each for each in THEIRS}
        weights = {name: Weight() for name in named}
        places = given or folder / "wheels"
        for name, asked in named.items() if given is None else ():
            wheels = places / name
            pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--wheel-dir", str(wheels)]
            _run(*pip, asked, BESIDE)
        for turn in range(options.rounds):
            for name, asked in named.items():
                _install(folder / f"{turn} {name}", places / name, asked, weights[name])
    PAGE.write_text(_page(facts, weights, options.rounds))
    print(PAGE.read_text(), json.dumps({k: asdict(v) for k, v in weights.items()}))


def _install(environment: Path, wheels: Path, asked: str, weight: Weight) -> None:
    _run("uv", "venv", "--quiet", str(environment))
    python = environment / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    offline = ["--no-index", "--find-links", str(wheels)]
    _run("uv", "pip", "install", "--quiet", "--python", str(python), *offline, BESIDE)
    before = _files(environment)
    begin = time.perf_counter()
    _run(*pip, *offline, asked)
    weight.seconds.append(time.perf_counter() - begin)
    after = _files(environment)
    weight.disk_bytes = sum(after.values()) - sum(before.values())
    added = {path for path in after.keys() - before.keys() if path.endswith("/METADATA")}
    weight.packages = len(added)
    brought = {Path(path).parent.name.partition("-")[0].lower() for path in added}
    weight.download_bytes = sum(
        path.stat().st_size
        for path in wheels.glob("*.whl")
        if path.name.partition("-")[0].lower() in brought
    )


def _files(environment: Path) -> dict[str, int]:
    """Return the files of an environment with their sizes."""
    return {
        str(path): path.stat().st_size
        for path in environment.rglob("*")
        if path.is_file() and not path.is_symlink()
    }


def _page(facts: dict[str, object], weights: dict[str, Weight], rounds: int) -> str:
    rows = [
        f"| {name} | {statistics.median(one.seconds):.1f} "
        f"({min(one.seconds):.1f} to {max(one.seconds):.1f}) | {one.download_bytes / 1e6:.1f} "
        f"| {one.packages} | {one.disk_bytes / 1e6:.1f} |"
        for name, one in weights.items()
    ]
    return TEXT.format(
        beside=BESIDE,
        rounds=rounds,
        date=str(facts["date"])[:10],
        machine=report.machine_in_words(facts),
        load=facts["load_average_before"],
        rows="\n".join(rows),
    )


def _run(*command: str) -> None:
    subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
