"""The panel of JupyterLab on a session of 10,000 cells: how soon, how smoothly, how much memory."""

from __future__ import annotations

from pathlib import Path

from devtools import Page, open_page
from measures import Goal, Measurement, Result
from pages import lab_server
from recorded import record
from servers import Server

NAME = "timeline"
PIXELS_PER_FRAME = 600
SMOOTH_MS = 50.0
OPEN_MS = 500.0

READY = (
    "window.jupyterapp?.commands.hasCommand('agent-exec:open-panel') && "
    "document.querySelector('.jp-Launcher')"
)
"""Whether JupyterLab is visible."""

HELPERS = """
const wait = () => new Promise(resolve => requestAnimationFrame(resolve));
const scroller = () => document.querySelector('.jp-AgentExecTimeline');
const drawn = seq => document.querySelector(
  `.jp-AgentExecFeed [aria-posinset="${seq}"] .jp-AgentExecSource`);
const inView = () => {
  const box = scroller().getBoundingClientRect();
  return [...document.querySelectorAll('.jp-AgentExecFeed > *')].filter(each => {
    const { bottom, top } = each.getBoundingClientRect();
    return bottom > box.top && top < box.bottom;
  });
};
const complete = () => inView().length > 0 && inView().every(
  each => each.querySelector('.jp-AgentExecSource'));
"""

OPEN = """
const begin = performance.now();
void window.jupyterapp.commands.execute('agent-exec:open-panel', { session_id: '%s' });
while (!scroller() || !drawn(%d) || !complete()) await wait();
await wait();
return performance.now() - begin;
"""
"""Open the panel; the time ends when the newest cells are drawn."""

JUMP = """
const begin = performance.now();
scroller().scrollTop = %f * scroller().scrollHeight;
await wait();
while (!complete()) await wait();
await wait();
return performance.now() - begin;
"""
"""Move the scrollbar; the time ends when all cells in view are drawn."""

SCROLL = """
const frames = [];
scroller().scrollTop = 0;
await wait();
let last = performance.now();
let first = 0;
while (first < %d) {
  scroller().scrollTop += %d;
  await wait();
  const now = performance.now();
  frames.push(now - last);
  last = now;
  first = Number(inView()[0]?.getAttribute('aria-posinset') ?? first);
}
while (!complete()) await wait();
return frames;
"""
"""Scroll from the first cell; the milliseconds of each frame."""


def run(folder: Path, *, quick: bool) -> Result:
    """Measure it; the server and its history are in `folder`."""
    cells = 1_000 if quick else 10_000
    recorded = record(folder / "history", cells=cells, in_largest=cells)
    with (
        lab_server(
            folder, collaboration=False, options=["--LabApp.expose_app_in_browser=True"]
        ) as server,
        open_page(folder / "browser", "about:blank") as page,
    ):
        opened = [
            _opened(page, server, f"time-{n}", recorded.largest, cells)
            for n in range(2 if quick else 10)
        ]
        jumps = [
            float(page.run(HELPERS + JUMP % ((7 * n % 20 + 1) / 22)))
            for n in range(2 if quick else 20)
        ]
        before = page.heap_bytes(), page.nodes()
        begin = page.work_seconds()
        frames = page.run(HELPERS + SCROLL % (cells // 2, PIXELS_PER_FRAME))
        work = (page.work_seconds() - begin) / len(frames)
        after = page.heap_bytes(), page.nodes()
    return _result(cells, opened, jumps, [float(each) for each in frames], work, before, after)


def _opened(
    page: Page, server: Server, workspace: str, session_id: str, cells: int
) -> tuple[float, float]:
    """Open the panel in a new workspace; return milliseconds until cells are drawn, and of work."""
    page.go(f"{server.url}/lab/workspaces/{workspace}?token={server.token}", READY)
    begin = page.work_seconds()
    taken = float(page.run(HELPERS + OPEN % (session_id, cells)))
    return taken, 1000 * (page.work_seconds() - begin)


def _result(
    cells: int,
    opened: list[tuple[float, float]],
    jumps: list[float],
    frames: list[float],
    work: float,
    before: tuple[int, int],
    after: tuple[int, int],
) -> Result:
    grown = (after[0] - before[0]) / 1e6
    taken = [each for each, _ in opened]
    return Result(
        name=NAME,
        title=f"The panel on a session of {cells:,} cells",
        how=(
            "JupyterLab in headless Chromium, on a history that the journal's own writer has "
            f"written. First the panel is opened {len(opened)} times, each time in a newly loaded "
            "page, until all cells in view are drawn. Then the scrollbar is moved to places far "
            f"apart, each time until all cells there are drawn. Then {cells // 2:,} cells are "
            f"scrolled through, {PIXELS_PER_FRAME} pixels per frame. Work is what the page's main "
            "thread does, without its waits for a processor. Memory is what JavaScript's objects "
            "use after garbage collection, before and after the scrolling."
        ),
        goals=[
            Goal.of_median("the panel open, newest cells drawn", "ms", OPEN_MS, taken),
            Goal(
                what="longest frame while scrolling", unit="ms", limit=SMOOTH_MS, value=max(frames)
            ),
            Goal(what="additional memory after scrolling", unit="MB", limit=5, value=grown),
        ],
        measurements=[
            Measurement.of("opening the panel", "ms", taken),
            Measurement.of("work in opening the panel", "ms", [each for _, each in opened]),
            Measurement.of("moving the scrollbar far away", "ms", jumps),
            Measurement.of("a frame while scrolling", "ms", frames),
            Measurement.of("work in a frame while scrolling, mean", "ms", [1000 * work]),
            Measurement.of("memory before", "MB", [before[0] / 1e6]),
            Measurement.of("memory after", "MB", [after[0] / 1e6]),
            Measurement.of("nodes before", "", [float(before[1])]),
            Measurement.of("nodes after", "", [float(after[1])]),
        ],
    )
