"""What a checkpoint and an undo cost, in kernels of several sizes: `python benchmarks/undo.py`.

The arguments are sizes of kernels in GB. docs/how-to/undo.md has what it printed.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from servers import server, set_apart

ROUNDS = 10
FILL = "import numpy\ntables = [numpy.ones(1_250_000) for _ in range({count})]"
TOUCH = "for each in tables[: len(tables) // 10]: each += 1"
"""Changes a tenth of the tables, so that the checkpoint keeps a copy of that."""


def main() -> None:
    """Print the median of each duration, and what a checkpoint takes."""
    sizes = [float(each) for each in sys.argv[1:]] or [0.1, 2.0]
    with tempfile.TemporaryDirectory(
        prefix="agent-exec-bench-", ignore_cleanup_errors=True
    ) as made:
        set_apart(Path(made))
        option = "--AgentExecApp.checkpoint_memory_share=1.0"
        with server(Path(made) / "server", option) as running, running.http() as http:
            for size in sizes:
                measure(http, size)


def measure(http: Any, size: float) -> None:
    """Measure one kernel."""

    def ask(method: str, path: str, body: Any = None) -> Any:
        answer = http.request(method, path, json=body)
        answer.raise_for_status()
        return answer.json()

    ours = "/api/agent-exec"
    kernel = ask("POST", "/api/kernels", {"name": "python3"})["id"]
    target = {"kind": "kernel", "kernel_id": kernel}
    session = ask("POST", f"{ours}/sessions", {"agent": {"name": "benchmark"}, "target": target})

    def run(source: str) -> tuple[float, Any]:
        began = perf_counter()
        path = f"{ours}/sessions/{session['id']}/executions"
        ran = ask("POST", path, {"source": source, "wait": 60})
        assert ran["status"] == "ok", ran
        return 1000 * (perf_counter() - began), ran

    run(FILL.format(count=int(size * 100)))
    without = [run("1")[0] for _ in range(ROUNDS)]
    path = f"{ours}/kernels/{kernel}/checkpoints"
    ask("PUT", path, {"enabled": True})
    run("1")
    with_one, undos, taken = [], [], []
    for _ in range(ROUNDS):
        with_one.append(run("1")[0])
        _, ran = run(TOUCH)
        listed = ask("GET", path)
        assert listed["reason"] is None, listed
        taken.append(listed["checkpoints"][-1]["bytes"] / 1e6)
        began = perf_counter()
        ask("POST", f"{ours}/executions/{ran['id']}/undo")
        undos.append(1000 * (perf_counter() - began))
        run("1")
    extra = median(with_one) - median(without)
    print(
        f"{size:g} GB: a checkpoint adds {extra:.0f} ms to an execution; an undo takes "
        f"{median(undos):.0f} ms (at most {max(undos):.0f}); after a tenth was changed, a "
        f"checkpoint takes {median(taken):.0f} MB"
    )
    http.request("DELETE", f"/api/kernels/{kernel}")


if __name__ == "__main__":
    main()
