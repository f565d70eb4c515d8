"""Compare our MCP server with our REST routes and with other MCP servers: `make bench-mcp`.

A whole run writes benchmarks-mcp.md and .json; a quick run only prints its result. Other
servers are installed in their own environments, below `.make`.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, ExitStack
from pathlib import Path

import anyio
import report
from anyio.from_thread import BlockingPortal, start_blocking_portal
from kernels import scratch_kernel
from mcp_clients import Answer, Ask, jupyter_mcp_server, jupyter_server_mcp, ours, running_nothing
from mcp_servers import THEIRS, McpServer
from mcp_servers import jupyter_mcp_server as run_jupyter_mcp_server
from mcp_servers import jupyter_server_mcp as run_jupyter_server_mcp
from mcp_tokens import HEADING, OURS, SERVERS, Costs, measured, section
from measures import Goal, Measurement, Result, Rounds, flat, interleaved, ratios, timed
from servers import server, set_apart

DOCS = Path(__file__).parent.parent / "docs" / "explanation"
NAME = "benchmarks-mcp"
BLOCK = 5
TIMEOUT = 60.0
PATIENCE = 90.0
LINES = 10_000

PLOT = """
%config InlineBackend.print_figure_kwargs = {'bbox_inches': None}
import matplotlib.pyplot as plt, numpy
plt.figure(figsize=(40, 24), dpi=100)
plt.imshow(numpy.random.default_rng(0).random((600, 1000)))
plt.show()
"""
CASES = {
    "10,000 printed lines": (f"for n in range({LINES}): print('line', n)", TIMEOUT),
    "a plot of 4000 × 2400 pixels": (PLOT, TIMEOUT),
    "a kernel that dies, timeout 20 s": ("import os\nos.kill(os.getpid(), 9)", 20.0),
    "an endless loop, timeout 2 s": ("while True: pass", 2.0),
}

TABLE = """
## What each server answers

The same code, each time in a fresh kernel. “Then” is the next call, `print(6*7)`.

| | {names} |
| --- | {rules} |
{rows}
"""


class Contender:
    """Runs sources through one MCP server."""

    def __init__(self, portal: BlockingPortal, ask: Ask, restart: Callable[[], None]) -> None:
        self._portal = portal
        self._ask = ask
        self.restart = restart

    def times(self) -> list[float]:
        """Return the seconds that a few `1+1` take."""
        answers = [self.answer("1+1", TIMEOUT) for _ in range(BLOCK)]
        wrong = next(
            (answer for answer in answers if answer.failed or "2" not in answer.text), None
        )
        if wrong is not None:
            raise SystemExit(f"An MCP server did not answer 1+1: {wrong.text}")
        return [answer.seconds for answer in answers]

    def answer(self, source: str, timeout: float) -> Answer:
        """Run a source."""
        return self._portal.call(self._answer, source, timeout)

    async def _answer(self, source: str, timeout: float) -> Answer:
        begin = time.perf_counter()
        try:
            with anyio.fail_after(PATIENCE):
                answer: Answer = await self._ask(source, timeout)
                return answer
        except TimeoutError:
            text = "no answer"
        except Exception as error:  # the error that a client gets is the result
            text = f"{type(error).__name__}: {error}"
        return Answer(seconds=time.perf_counter() - begin, text=text, images=[], failed=True)


def main() -> int:
    """Measure, print and write the result."""
    parser = argparse.ArgumentParser(description="Measure MCP servers.")
    parser.add_argument("--quick", action="store_true", help="few samples, for a first look")
    parser.add_argument("--only", choices=["tokens"], help="write this part of the page alone")
    options = parser.parse_args()
    quick = options.quick
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="agent-exec-bench-") as made:
        folder = Path(made)
        set_apart(folder)
        facts = report.machine(folder)
        costs = {name: measured(name, folder / "tokens" / name) for name in SERVERS}
        if options.only == "tokens":
            return _write_costs(costs)
        result, answers = _measured(folder, rounds=3 if quick else 60)
    page = report.page(
        facts,
        [result],
        quick=quick,
        title="How fast MCP is, and what other MCP servers answer",
        command="make bench-mcp",
        name=NAME,
    )
    page += _table(answers) + section(costs)
    print(page)
    if not quick:
        whole = report.as_json(facts, [result], quick=quick, seconds=time.monotonic() - begin)
        whole["answers"] = answers
        whole["tokens"] = {name: each.counts for name, each in costs.items()}
        (DOCS / f"{NAME}.json").write_text(json.dumps(whole, indent=2, ensure_ascii=False) + "\n")
        (DOCS / f"{NAME}.md").write_text(page)
    return 0


def _write_costs(costs: dict[str, Costs]) -> int:
    """Print the costs, and write them into the page and the JSON of the last whole run."""
    page, numbers = DOCS / f"{NAME}.md", DOCS / f"{NAME}.json"
    table = section(costs)
    print(table)
    page.write_text(page.read_text().partition(f"\n{HEADING}")[0] + table)
    whole = json.loads(numbers.read_text())
    whole["tokens"] = {name: each.counts for name, each in costs.items()}
    numbers.write_text(json.dumps(whole, indent=2, ensure_ascii=False) + "\n")
    return 0


def _measured(folder: Path, *, rounds: int) -> tuple[Result, dict[str, dict[str, str]]]:
    with ExitStack() as stack:
        portal = stack.enter_context(start_blocking_portal())

        def entered(opening: AbstractAsyncContextManager[Ask]) -> Ask:
            return stack.enter_context(portal.wrap_async_context_manager(opening))

        running = stack.enter_context(server(folder / "ours"))
        client = stack.enter_context(running.client())
        session = client.open_session(agent="benchmark")
        in_scratch = stack.enter_context(scratch_kernel(client))
        servers = {}

        endpoint = f"{running.url}/api/agent-exec/mcp"

        def renewed() -> None:
            servers[OURS] = Contender(portal, entered(ours(endpoint, running.token)), renewed)

        renewed()
        for name, run, opening in (
            ("jupyter-mcp-server", run_jupyter_mcp_server, jupyter_mcp_server),
            ("jupyter-server-mcp", run_jupyter_server_mcp, jupyter_server_mcp),
        ):
            theirs: McpServer = stack.enter_context(run(folder / name))
            servers[THEIRS[name]] = Contender(portal, entered(opening(theirs)), theirs.restart)
        contenders = {name: each.times for name, each in servers.items()}
        contenders["REST"] = lambda: [timed(lambda: session.run("1+1")) for _ in range(BLOCK)]
        nothing = stack.enter_context(
            portal.wrap_async_context_manager(running_nothing(endpoint, running.token))
        )
        contenders["kernel"] = lambda: [timed(lambda: in_scratch.run("1+1")) for _ in range(BLOCK)]
        contenders["call"] = lambda: [timed(lambda: portal.call(nothing)) for _ in range(BLOCK)]
        interleaved(2, contenders)  # to warm up
        result = _result(interleaved(rounds, contenders))
        answers = {
            case: {name: _outcome(servers, name, case) for name in servers} for case in CASES
        }
    return result, answers


def _result(taken: dict[str, Rounds]) -> Result:
    least = _to_best(taken, "kernel"), _to_best(taken, "call")
    return Result(
        name="mcp",
        title="`1+1` by MCP",
        how=(
            f"Each contender has its own kernel. They take turns, {BLOCK} executions at a time, on "
            "kept connections. MCP: the official Python client's `call_tool`, over streamable "
            "HTTP. This server: `execute`, recorded and synced to disk. jupyter-mcp-server: "
            "`execute_code`, as Jupyter's extension. jupyter-server-mcp, which runs cells in "
            "JupyterLab's page: `run_cell` of jupyter-ai-tools 0.7.0, with the notebook open in "
            "headless Chromium. REST: `Session.run` of our Python client. For comparison: the "
            "least that an execution can take, which is the kernel by itself and a call that runs "
            "nothing. A ratio is of a round's medians; the table shows the median of the ratios, "
            "and p10 to p90."
        ),
        goals=[
            Goal.of_median("MCP ÷ REST", "×", 2.0, ratios(taken[OURS], taken["REST"])),
            Goal.of_median("MCP ÷ the faster of the others", "×", 0.1, _to_best(taken, OURS)),
        ],
        measurements=[
            Measurement.of("REST ÷ the faster of the others", "×", _to_best(taken, "REST")),
            Measurement.of(
                "the least: kernel and a call that runs nothing ÷ the faster of the others",
                "×",
                [sum(both) for both in zip(*least, strict=True)],
            ),
            Measurement.of_times(
                "raw ZMQ, in a kernel that this server started", flat(taken["kernel"])
            ),
            Measurement.of_times(
                "this server, MCP, a call that runs nothing (`list_sessions`)", flat(taken["call"])
            ),
            Measurement.of_times("this server, REST", flat(taken["REST"])),
            Measurement.of_times("this server, MCP", flat(taken[OURS])),
            *(Measurement.of_times(name, flat(taken[name])) for name in THEIRS.values()),
        ],
    )


def _to_best(taken: dict[str, Rounds], name: str) -> list[float]:
    """Return the ratios to the faster of the others, round by round."""
    by_round = [ratios(taken[name], taken[other]) for other in THEIRS.values()]
    return [max(of_each) for of_each in zip(*by_round, strict=True)]


def _outcome(servers: dict[str, Contender], name: str, case: str) -> str:
    servers[name].restart()
    source, timeout = CASES[case]
    servers[name].answer("1+1", TIMEOUT)
    answer = servers[name].answer(source, timeout)
    words = [f"{answer.seconds:.1f} s"]
    if "lines" in case:
        count = len(set(re.findall(r"line \d+", answer.text)))
        said = re.search(r"left out|omitted|truncated", answer.text, re.IGNORECASE) is not None
        words.append(f"{count:,} of {LINES:,} lines whole")
        if count < LINES:
            words.append("says that some are left out" if said else "does not say so")
        words.append(f"{len(answer.text) / 1000:,.0f} kB")
    elif "plot" in case:
        words += [f"image of {w} × {h}, {size / 1000:,.0f} kB" for w, h, size in answer.images]
        if re.search(r"[A-Za-z0-9+/]{300,}", answer.text):
            words.append(f"base64 in the text, {len(answer.text) / 1000:,.0f} kB")
        elif not answer.images:
            words.append(f"no image; {report.brief(answer.text)}")
    else:
        words.append(report.brief(answer.text))
        then = servers[name].answer("print(6*7)", 10.0)
        words.append(f"then, after {then.seconds:.1f} s: {report.brief(then.text)}")
    return "; ".join(words)


def _table(answers: dict[str, dict[str, str]]) -> str:
    names = [OURS, *THEIRS.values()]
    rows = [
        f"| {case} | " + " | ".join(of_each[name] for name in names) + " |"
        for case, of_each in answers.items()
    ]
    return TABLE.format(
        names=" | ".join(names), rules=" | ".join("---" for _ in names), rows="\n".join(rows)
    )


if __name__ == "__main__":
    sys.exit(main())
