"""Starts the kernels of in-process servers by forking a process that has imported ipykernel.

Each kernel is a fresh process with the command, environment, folder and streams that Jupyter gives
it. Only the imports are shared: they are half of what starting a kernel costs. A kernel whose
command or environment would change how Python starts is started by Jupyter as usual.

Run as a program, this file is the process that forks: it reads requests from the socket with the
number in its only argument.
"""

from __future__ import annotations

import array
import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

AT_START = ("PYTHON", "LD_", "MALLOC_", "LANG", "LC_", "OMP_", "OPENBLAS_")
"""Beginnings of variables that a process reads when it starts or imports."""

_USUAL = [sys.executable, os.path.join("in_kernel", "launcher.py"), "ipykernel_launcher"]
"""The beginning of the command of a kernel of Python."""

Launch = Callable[..., "subprocess.Popen[bytes]"]


class ForkedKernel(subprocess.Popen[bytes]):
    """The process of a kernel, which is a child of the process that forks."""

    def __init__(self, forks: KernelForks, arguments: list[str], pid: int) -> None:
        self.args = arguments
        self.stdin = self.stdout = self.stderr = None
        self.pid = pid
        self.returncode: int | None = None
        self._forks = forks
        self._descriptor = os.pidfd_open(pid)
        self._reaping = threading.Lock()

    def __del__(self) -> None:
        os.close(self._descriptor)

    def poll(self) -> int | None:
        return self._wait(0)

    def wait(self, timeout: float | None = None) -> int:
        if self._wait(timeout) is None:
            assert timeout is not None
            raise subprocess.TimeoutExpired(self.args, timeout)
        assert self.returncode is not None
        return self.returncode

    def _wait(self, timeout: float | None) -> int | None:
        poll = select.poll()
        poll.register(self._descriptor, select.POLLIN)
        if poll.poll(None if timeout is None else timeout * 1000):
            with self._reaping:
                if self.returncode is None:
                    self.returncode = self._forks.exit_code(self.pid)
        return self.returncode


class KernelForks:
    """The process that forks, started with the first kernel, and what is asked of it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        # As pytest-jupyter's `jp_environ` sets it.
        path = os.pathsep.join(sys.path)
        self._at_start = _at_start({**os.environ, "PYTHONPATH": path})
        self._process: subprocess.Popen[bytes] | None = None

    def launcher(self, launch: Launch) -> Launch:
        """Return a function in place of `jupyter_client.launch_kernel`.

        Parameters
        ----------
        launch
            Starts a kernel whose command, environment or options are not the usual ones.
        """

        def fork_or_launch(cmd: list[str], **options: Any) -> subprocess.Popen[bytes]:
            usual = options.keys() <= {"env", "cwd"} and cmd[::2][:2] == _USUAL[::2]
            env = options.get("env") or dict(os.environ)
            if not usual or not cmd[1].endswith(_USUAL[1]) or _at_start(env) != self._at_start:
                return launch(cmd, **options)
            return self._fork(cmd, env, options.get("cwd") or ".")

        return fork_or_launch

    def _fork(self, command: list[str], env: dict[str, str], cwd: str) -> ForkedKernel:
        """Fork a kernel; it has its own process group when this returns."""
        folder = os.open(cwd, os.O_RDONLY | os.O_DIRECTORY)
        try:
            request = {"command": command, "env": env}
            return ForkedKernel(self, command, self._ask(request, (1, 2, folder)))
        finally:
            os.close(folder)

    def exit_code(self, pid: int) -> int:
        """Return the exit code of a kernel that has ended, as `Popen` gives it."""
        return self._ask({"ended": pid})

    def stop(self) -> None:
        """End the process that forks, and with it the kernels that still run."""
        if self._socket is not None and self._process is not None:
            self._socket.close()
            self._process.wait()

    def _ask(self, request: dict[str, Any], descriptors: tuple[int, ...] = ()) -> int:
        with self._lock:
            if self._socket is None:
                self._start()
            assert self._socket is not None
            data = json.dumps(request).encode()
            rights = array.array("i", descriptors)
            ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)] if descriptors else []
            self._socket.sendmsg([data], ancillary)
            answer = self._socket.recv(100)
            assert answer, "the process that forks kernels has ended"
            return int(answer)

    def _start(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for side in (ours, theirs):
            side.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env={**os.environ, **self._at_start},
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        theirs.close()
        self._socket = ours


def _at_start(env: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name.startswith(AT_START)}


# -- the process that forks ------------------------------------------------------------------------


def _serve(connection: socket.socket) -> None:
    path = [entry for entry in sys.path if entry != os.path.dirname(__file__)]
    import ipykernel.ipkernel
    import ipykernel.kernelapp
    import ipykernel.zmqshell  # noqa: F401

    sys.path[:] = path
    running: set[int] = set()
    while True:
        data, ancillary, _, _ = connection.recvmsg(1 << 20, socket.CMSG_SPACE(3 * 4))
        if not data:
            break
        request = json.loads(data)
        if "ended" in request:
            pid, status = os.waitpid(request["ended"], 0)
            running.discard(pid)
            connection.send(str(os.waitstatus_to_exitcode(status)).encode())
            continue
        descriptors = array.array("i", ancillary[0][2])
        begun, begins = os.pipe()
        pid = os.fork()
        if pid == 0:
            connection.close()
            _become_kernel(request, list(descriptors), begun, begins)
        os.close(begins)
        os.read(begun, 1)
        for descriptor in (begun, *descriptors):
            os.close(descriptor)
        running.add(pid)
        connection.send(str(pid).encode())
    for pid in running:
        os.kill(pid, signal.SIGKILL)


def _become_kernel(request: dict[str, Any], streams: list[int], begun: int, begins: int) -> None:
    os.setsid()
    os.environ.clear()
    os.environ.update(request["env"], JPY_PARENT_PID=str(os.getppid()))
    os.fchdir(streams[2])
    for number, descriptor in enumerate(streams[:2], start=1):
        os.dup2(descriptor, number)
    for descriptor in (*streams, begun):
        os.close(descriptor)
    os.write(begins, b".")
    os.close(begins)
    sys.argv[:] = request["command"][1:]
    sys.orig_argv[:] = request["command"]
    from runpy import run_path

    code = 1
    try:
        sys.path.insert(0, os.path.dirname(sys.argv[0]))
        run_path(sys.argv[0], run_name="__main__")
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        # End as an interpreter does at its end.
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
