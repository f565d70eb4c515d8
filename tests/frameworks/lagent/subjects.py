"""lagent's interpreter, its own and ours, as what is compared."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

from lagent.actions.ipython_interpreter import IPythonInterpreter as LagentsOwn
from lagent.schema import ActionReturn

from jupyter_agent_exec.adapters.lagent import IPythonInterpreter
from tests.frameworks.subject import Said, Subject


def original(folder: Path, timeout: float) -> Subject:
    with _current(folder):
        interpreter = LagentsOwn(work_dir=str(folder))
        interpreter.initialize()
    return _Original(interpreter, timeout)


def ours(folder: Path, timeout: float) -> Subject:
    with _current(folder):
        interpreter = IPythonInterpreter(timeout, work_dir=str(folder))
        interpreter.initialize()
    return _Ours(interpreter)


@contextmanager
def _current(folder: Path) -> Iterator[None]:
    """Have both start in a folder, which for both is the current one."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


class _Original:
    name = "lagent 0.2.4"
    has_close = False

    def __init__(self, interpreter: LagentsOwn, timeout: float) -> None:
        self._interpreter = interpreter
        self._timeout = max(1, round(timeout))  # it takes whole seconds

    def run(self, source: str) -> Said:
        return _said(lambda: self._interpreter.run(source, self._timeout))

    def run_at_once(self, *sources: str) -> list[Said]:
        # With a timeout it raises in any other thread than the main one.
        return _at_once(self._interpreter.run, sources)

    def run_and_cancel(self, source: str, started: Path) -> None:
        _press_ctrl_c(lambda: self._interpreter.run(source), started)

    def kernel_pid(self) -> int:
        self._interpreter.initialize()
        return int(self._interpreter.kernel_manager.provisioner.pid)

    def close(self) -> None:
        # The process's kernel goes by hand.
        self._interpreter.initialize()
        LagentsOwn._KERNEL_CLIENTS.clear()
        self._interpreter.kernel_client.stop_channels()
        self._interpreter.kernel_manager.shutdown_kernel(now=True)


class _Ours:
    name = "ours, for lagent"
    has_close = True

    def __init__(self, interpreter: IPythonInterpreter) -> None:
        self._interpreter = interpreter

    def run(self, source: str) -> Said:
        return _said(lambda: self._interpreter.run(source))

    def run_at_once(self, *sources: str) -> list[Said]:
        return _at_once(self._interpreter.run, sources)

    def run_and_cancel(self, source: str, started: Path) -> None:
        _press_ctrl_c(lambda: self._interpreter.run(source), started)

    def kernel_pid(self) -> int:
        return int(self.run("import os; os.getpid()").text)

    def close(self) -> None:
        self._interpreter.close()


def _said(run: Callable[[], ActionReturn]) -> Said:
    try:
        answer = run()
    except Exception as error:
        return Said(f"{type(error).__name__}: {error}", True, [])
    if answer.result is None:
        return Said(answer.errmsg or "", True, [])
    text, *images = answer.result
    return Said(text["content"], False, [Path(image["content"]) for image in images])


def _at_once(run: Callable[[str], ActionReturn], sources: tuple[str, ...]) -> list[Said]:
    with ThreadPoolExecutor(len(sources)) as pool:
        return list(pool.map(lambda source: _said(lambda: run(source)), sources))


def _press_ctrl_c(run: Callable[[], ActionReturn], started: Path) -> None:
    """Press it once the code has started; only the main thread can be interrupted so."""

    def press() -> None:
        while not started.exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    presser = threading.Thread(target=press)
    presser.start()
    with suppress(KeyboardInterrupt):
        run()
    presser.join()
