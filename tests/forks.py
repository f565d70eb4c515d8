"""Starts programs by forking a process that has imported what they import.

Servers, their kernels and the command line start so. Each is a fresh process with a command,
environment, folder and streams of its own. Only the imports are shared: they are most of what
starting costs. What has another environment for Python is started as usual.

Run as a program, this file is the process that forks: it imports the modules that its arguments
name, and reads requests from the socket whose number comes first. Other processes may connect to
its address, too. The programs of a connection end with it.
"""

from __future__ import annotations

import array
import atexit
import ctypes
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from runpy import run_module, run_path
from typing import Any

AT_START = ("PYTHON", "LD_", "MALLOC_", "LANG", "LC_", "OMP_", "OPENBLAS_")
"""Beginnings of variables that a process reads when it starts or imports."""

LONGEST = 20_000
"""Bytes of the longest command of a program."""

Launch = Callable[..., "subprocess.Popen[bytes]"]


class ForkedProcess(subprocess.Popen[bytes]):
    """A child of the process that forks."""

    def __init__(self, forks: Forks, arguments: list[str], pid: int) -> None:
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


class Forks:
    """The process that forks, started with the first program, and what is asked of it.

    Parameters
    ----------
    modules
        What the programs import.
    options
        Of Python.
    address
        Of a process that forks, if another process has started it.
    env
        Environment variables besides this process's own.
    """

    def __init__(
        self, *modules: str, options: Sequence[str] = (), address: str | None = None, **env: str
    ) -> None:
        self._command = [sys.executable, *options, __file__]
        self._modules = modules
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._env = {**os.environ, **env}
        self._process: subprocess.Popen[bytes] | None = None
        self._is_elsewhere = address is not None
        self._address = address or f"forks-{os.getpid()}-{id(self):x}"

    def address(self) -> str:
        """Start the process that forks, if need be; return where other processes reach it."""
        with self._lock:
            if self._socket is None:
                self._start()
        return self._address

    def can_start(self, env: Mapping[str, str]) -> bool:
        """Whether Python starts with this environment as the process that forks has started."""
        return _at_start(env) == _at_start(self._env)

    def start(
        self,
        command: Sequence[str],
        env: Mapping[str, str],
        folder: str | os.PathLike[str],
        streams: tuple[int, int, int],
    ) -> ForkedProcess:
        """Start a program.

        It leads a process group when this returns.

        Parameters
        ----------
        command
            `python FILE ARGUMENT...` or `python -m MODULE ARGUMENT...`.
        streams
            Descriptors for its input, output and errors.
        """
        assert self.can_start(env)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            request = {"command": command, "env": dict(env)}
            pid = self._ask(request, (*streams, descriptor))
            return ForkedProcess(self, list(command), pid)
        finally:
            os.close(descriptor)

    def exit_code(self, pid: int) -> int:
        """Return the exit code of a program that has ended, as `Popen` gives it."""
        return self._ask({"ended": pid})

    def stop(self) -> None:
        """End the process that forks, and with it the programs that still run."""
        if self._socket is not None:
            self._socket.close()
        if self._process is not None:
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
            assert answer, "the process that forks has ended"
            return int(answer)

    def _start(self) -> None:
        if self._is_elsewhere:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self._socket.connect(_abstract(self._address))
        else:
            self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
                listener.bind(_abstract(self._address))
                listener.listen()
                descriptors = theirs.fileno(), listener.fileno()
                self._process = subprocess.Popen(
                    [*self._command, *map(str, descriptors), *self._modules, " " * LONGEST],
                    pass_fds=descriptors,
                    env=self._env,
                    stdin=subprocess.DEVNULL,
                    start_new_session=True,
                )
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)


class KernelForks(Forks):
    """Kernels of Python."""

    def __init__(self, *, address: str | None = None, **env: str) -> None:
        super().__init__(
            "ipykernel.ipkernel",
            "ipykernel.kernelapp",
            "ipykernel.zmqshell",
            # What a kernel imports as it starts.
            "ipykernel.debugger",
            "IPython.core.completerlib",
            "IPython.extensions.storemagic",
            "psutil",
            "sqlite3",
            "tornado.platform.asyncio",
            "tornado.queues",
            "traitlets.config.argcomplete_config",
            address=address,
            **env,
        )

    def launcher(self, launch: Launch) -> Launch:
        """Return a function in place of `jupyter_client.launch_kernel`.

        Parameters
        ----------
        launch
            Starts a kernel whose command, environment or options are not the usual ones.
        """

        def fork_or_launch(cmd: list[str], **options: Any) -> subprocess.Popen[bytes]:
            usual = options.keys() <= {"env", "cwd"} and _is_kernel_of_python(cmd)
            env = options.get("env") or dict(os.environ)
            if not usual or not self.can_start(env):
                return launch(cmd, **options)
            with open(os.devnull) as nothing:
                return self.start(cmd, env, options.get("cwd") or ".", (nothing.fileno(), 1, 2))

        return fork_or_launch


def _is_kernel_of_python(command: Sequence[str]) -> bool:
    """Return whether a command is Jupyter's, or ours, to start a kernel of this Python."""
    python, how, module, *_ = [*command, "", ""]
    return (python, module) == (sys.executable, "ipykernel_launcher") and (
        how == "-m" or how.endswith(os.path.join("in_kernel", "launcher.py"))
    )


def _abstract(address: str) -> str:
    """Return an address of a Unix socket that is no file."""
    return f"\0{address}"


def _at_start(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name.startswith(AT_START)}


# -- the process that forks ------------------------------------------------------------------------


def _serve(first: socket.socket, listener: socket.socket, modules: list[str]) -> None:
    path = sys.path[1:]  # without the folder of this file
    sys.path[:] = path
    os.environ["JPY_PARENT_PID"] = str(os.getpid())  # ipykernel reads it when it is imported
    before = dict(os.environ)
    for module in modules:
        import_module(module)
    of_imports = dict(os.environ.items() - before.items())
    sys.path[:] = path
    gc.collect()
    gc.freeze()
    running: dict[socket.socket, set[int]] = {listener: set(), first: set()}
    while first in running:
        ready, _, _ = select.select([*running], [], [])
        for each in ready:
            if each is listener:
                running[listener.accept()[0]] = set()
            elif not _answer(each, running, of_imports):
                each.close()
                for pid in running.pop(each):
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
    for pid in set().union(*running.values()):
        os.kill(pid, signal.SIGKILL)


def _answer(
    connection: socket.socket,
    running: Mapping[socket.socket, set[int]],
    of_imports: Mapping[str, str],
) -> bool:
    """Carry out a request; return whether there was one.

    Parameters
    ----------
    of_imports
        Environment variables that the imports have set.
    """
    try:
        data, ancillary, _, _ = connection.recvmsg(1 << 20, socket.CMSG_SPACE(4 * 4))
    except ConnectionResetError:
        return False
    if not data:
        return False
    request = json.loads(data)
    if "ended" in request:
        pid, status = os.waitpid(request["ended"], 0)
        running[connection].discard(pid)
        connection.send(str(os.waitstatus_to_exitcode(status)).encode())
        return True
    descriptors = array.array("i", ancillary[0][2])
    begun, begins = os.pipe()
    pid = os.fork()
    if pid == 0:
        for each in running:
            each.close()
        request["env"] |= of_imports
        _become(request, list(descriptors), begun, begins)
    os.close(begins)
    os.read(begun, 1)
    for descriptor in (begun, *descriptors):
        os.close(descriptor)
    running[connection].add(pid)
    connection.send(str(pid).encode())
    return True


def _become(request: dict[str, Any], streams: list[int], begun: int, begins: int) -> None:
    os.setsid()
    os.environ.clear()
    os.environ.update(request["env"], JPY_PARENT_PID=str(os.getppid()))
    tempfile.tempdir = None
    os.fchdir(streams[3])
    for number, descriptor in enumerate(streams[:3]):
        os.dup2(descriptor, number)
    for descriptor in (*streams, begun):
        os.close(descriptor)
    os.write(begins, b".")
    os.close(begins)
    sys.orig_argv[:] = request["command"]
    _show(request["command"])
    code = 1
    try:
        if "-m" in sys.orig_argv:
            module = sys.orig_argv.index("-m") + 1
            sys.argv[:] = sys.orig_argv[module:]
            sys.path.insert(0, os.getcwd())
            run_module(sys.argv[0], run_name="__main__", alter_sys=True)
        else:
            sys.argv[:] = sys.orig_argv[1:]
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


def _show(command: Sequence[str]) -> None:
    """Show a command as this process's own in ``/proc``, where those it starts look for it."""
    with open("/proc/self/stat") as file:
        start, end = map(int, file.read().rpartition(")")[2].split()[45:47])
    data = b"\0".join(map(os.fsencode, command))
    assert len(data) < end - start, "the command is too long"
    ctypes.memset(start, 0, end - start)
    ctypes.memmove(start, data, len(data))


if __name__ == "__main__":
    _serve(*(socket.socket(fileno=int(number)) for number in sys.argv[1:3]), sys.argv[3:-1])
