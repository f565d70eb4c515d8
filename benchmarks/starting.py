"""JupyterLab's start, with the lab extension and without."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path
from typing import Final

from devtools import Page, open_page
from measures import Goal, Measurement, Result, Rounds, flat, interleaved
from pages import COLLABORATION, lab_server
from servers import Server

NAME = "starting"
LABEXTENSION: Final = "jupyter-agent-exec"
LIMIT_MS = 50.0

MARK = """
let app;
Object.defineProperty(window, 'jupyterapp', {
  get: () => app,
  set: value => {
    app = value;
    void app.started.then(() => performance.mark('started'));
    void app.restored.then(() => performance.mark('restored'));
  }
});
"""
"""Note when JupyterLab has started its plugins, and when it has restored its layout."""

READY = "performance.getEntriesByName('restored').length && document.querySelector('.jp-Launcher')"

TIMES = """
const at = name => performance.getEntriesByName(name)[0].startTime;
const has = window.jupyterapp.commands.hasCommand('agent-exec:open-panel');
const own = performance.getEntriesByType('resource')
  .filter(({ name }) => name.includes('/lab/extensions/%s/'));
return [at('started'), at('restored'), has, own.map(({ decodedBodySize }) => decodedBodySize)];
"""
"""Milliseconds since the request for the page, whether we are loaded, and our files' sizes."""


class Start:
    """Loads JupyterLab's page, each time in a workspace of its own.

    Parameters
    ----------
    settings
        JupyterLab's folder of settings, which says what is switched off; read for each page.
    """

    def __init__(self, page: Page, server: Server, settings: Path) -> None:
        self._page = page
        self._server = server
        self._settings = settings
        self._numbers = count(1)
        self.sizes: list[int] = []
        """Of our files that the last start with us has loaded, in bytes."""
        self.work: dict[bool, list[float]] = {True: [], False: []}
        """Milliseconds for which the page's main thread worked, with us and without."""
        self.restored: dict[bool, list[float]] = {True: [], False: []}
        """Milliseconds until the layout was restored, with us and without."""

    def started(self, *, with_us: bool) -> list[float]:
        """Return the milliseconds until all plugins were started, as a list of one."""
        disabled = [*COLLABORATION, *([] if with_us else [LABEXTENSION])]
        config = json.dumps({"disabledExtensions": disabled})
        (self._settings / "page_config.json").write_text(config)
        name = f"start-{next(self._numbers)}"
        self._page.go(f"{self._server.url}/lab/workspaces/{name}?token={self._server.token}", READY)
        started, restored, has, sizes = self._page.run(TIMES % LABEXTENSION)
        if has is not with_us:
            raise SystemExit(f"The extension could not be switched {'on' if with_us else 'off'}.")
        if with_us:
            self.sizes = sizes
        self.work[with_us].append(1000 * self._page.work_seconds())
        self.restored[with_us].append(restored)
        return [float(started)]

    def forget(self) -> None:
        """Forget what was measured so far."""
        for samples in (self.work, self.restored):
            samples[True].clear()
            samples[False].clear()


def run(folder: Path, *, quick: bool) -> Result:
    """Measure it; the server and its history are in `folder`."""
    rounds = 3 if quick else 10
    options = ["--LabApp.expose_app_in_browser=True"]
    with (
        lab_server(folder, collaboration=False, options=options) as server,
        open_page(folder / "browser", "about:blank") as page,
    ):
        page.before_each_load(MARK)
        start = Start(page, server, folder / "settings")
        for with_us in (True, False):  # what is in the browser's cache afterwards
            start.started(with_us=with_us)
        start.forget()
        taken = interleaved(
            rounds,
            {
                "with": lambda: start.started(with_us=True),
                "without": lambda: start.started(with_us=False),
            },
        )
    return _result(start, taken)


def _result(start: Start, taken: dict[str, Rounds]) -> Result:
    slower = _differences(flat(taken["with"]), flat(taken["without"]))
    work = _differences(start.work[True], start.work[False])
    return Result(
        name=NAME,
        title="JupyterLab's start, with the extension and without",
        how=(
            f"A page of JupyterLab in headless Chromium, {len(start.work[True])} times with the "
            "extension and as often with the extension disabled in `page_config.json`, in turns, "
            "each time in a new workspace, with its files in the browser's cache. The time runs "
            "from the request for the page until JupyterLab has started all plugins "
            "(`app.started`). The goals apply to the medians of the differences of the pairs. "
            "Work is what the page's main thread does until the layout is restored, without its "
            "waits for a processor."
        ),
        goals=[
            Goal.of_median("additional time", "ms", LIMIT_MS, slower),
            Goal.of_median("additional work", "ms", LIMIT_MS, work),
        ],
        measurements=[
            Measurement.of("started, with the extension", "ms", flat(taken["with"])),
            Measurement.of("started, without", "ms", flat(taken["without"])),
            Measurement.of("layout restored, with the extension", "ms", start.restored[True]),
            Measurement.of("layout restored, without", "ms", start.restored[False]),
            Measurement.of("work, without the extension", "ms", start.work[False]),
            Measurement.of("work, with the extension", "ms", start.work[True]),
            Measurement.of("our files loaded at the start", "", [float(len(start.sizes))]),
            Measurement.of("our files loaded, uncompressed", "kB", [sum(start.sizes) / 1000]),
        ],
    )


def _differences(ours: list[float], theirs: list[float]) -> list[float]:
    return [a - b for a, b in zip(ours, theirs, strict=True)]
