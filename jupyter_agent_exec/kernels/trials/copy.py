"""Copies a kernel by a fork, and runs code in the copy. Sent to kernels, which never import it.

The kernel forks a watcher, which forks the copy. The watcher runs none of the agent's code. It
opens what the copy reads, ends the copy when the server hangs up and when the time is over, and
tells the server how the copy ended. It ends with the kernel, and the copy ends with it. The kernel
itself only forks, and is free again after some milliseconds.

Both connect to a socket of the server, and send frames: the lengths of header and content, as two
numbers of four bytes, then both, in JSON. The content is a Jupyter message's, or one of ours:
`trial_sealed`, `trial_ended`, `trial_failed`, `trial_exited`, `trial_refused`.
"""

from __future__ import annotations

import _thread
import asyncio
import contextlib
import errno
import gc
import json
import os
import select
import signal
import socket
import struct
import sys
import tempfile
import threading
import time
import traceback
import types
import warnings
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ..confinement import die_with_parent
    from .opener import Opener
    from .parking import park
    from .seal import (
        GPUS,
        blank_descriptors,
        descriptors,
        make_scratch,
        seal,
        seal_watcher,
    )

LOOK_SECONDS = 0.1
"""Time between two looks at the number of the copy's threads."""
MOST_THREADS = 1_000
PIPE_BYTES = 1 << 16
MESSAGES = {
    *("stream", "display_data", "update_display_data", "execute_result", "error", "clear_output")
}
"""The types of messages of which the server makes outputs."""

DENIED = {
    "open": ("write", 0),
    **dict.fromkeys(("os.remove", "os.mkdir", "os.rmdir", "os.truncate"), ("write", 0)),
    **dict.fromkeys(("os.chmod", "os.chown", "os.utime", "os.setxattr"), ("write", 0)),
    **dict.fromkeys(("os.rename", "os.link", "os.symlink"), ("write", 1)),
    **dict.fromkeys(("socket.getaddrinfo", "socket.gethostbyname"), ("connect", 0)),
    **dict.fromkeys(("socket.__new__", "socket.connect"), ("connect", None)),
    **dict.fromkeys(("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn"), ("start", 0)),
    **dict.fromkeys(("os.fork", "os.forkpty"), ("start", None)),
    **dict.fromkeys(("os.kill", "os.killpg"), ("signal", 0)),
}
"""What the seal refuses of Python's audit events: its kind, and which argument says what. Source:
Python's table of audit events."""
FORK_HOOKS: list[list[Callable[[], object]]] = []
"""What Python calls at a fork, once it is found."""
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
MOST_DENIALS = 20
MOST_CHARACTERS = 200


def trial(given: str) -> None:
    """Fork the watcher; return in the kernel only."""
    plan = json.loads(given)
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError("only the kernel's main thread can be copied")
    fault = park()
    if fault is not None:
        for connection in (Connection(plan["socket"]), Connection(plan["socket"])):
            connection.send("trial_refused", {"reason": fault})
            connection.close()
        return
    forked = fork_kernel()
    if forked.child == 0:
        try:
            watch(plan, forked.kernel, forked.mask, forked.random)
        finally:
            os._exit(1)


class Forked(NamedTuple):
    """What a process is after a fork of the kernel."""

    child: int
    """Id of the new process; 0 in the new process itself."""
    kernel: int
    """Id of the process that forked."""
    mask: Collection[int]
    """Signals that were blocked before; in the new process, all are."""
    random: Any
    """State of Python's random numbers, which Python seeds again at a fork; None if unused."""
    hooks: list[tuple[list[Callable[[], object]], list[Callable[[], object]]]]
    """What Python calls at a fork: the lists, which lack the user's hooks in the new process, and
    what was in them."""
    collects: bool
    """Whether the garbage collector was on; in the new process, it is off."""


def fork_kernel() -> Forked:
    """Fork; in the new process, nothing of the user's may run until the caller lets it."""
    random = vars(sys.modules["random"])["getstate"]() if "random" in sys.modules else None
    collects, mask = (
        gc.isenabled(),
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals()),
    )
    kernel, child = os.getpid(), -1
    hooks = [(each, list(each)) for each in fork_hooks()]
    gc.disable()  # nothing of the user's may be finalized in the copy before it is sealed
    try:
        for each, found in hooks:
            each[:] = [hook for hook in found if not is_users(hook)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # threads are left behind
            child = os.fork()
    finally:
        if child != 0:
            for each, found in hooks:
                each[:] = found
            if collects:
                gc.enable()
            if child > 0:
                spare_handler(child)
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    if child:
        _thread.start_new_thread(reap, (child,))
    return Forked(child, kernel, mask, random, hooks, collects)


def stay(target: str) -> None:
    """Let this code stay in the kernel, with the code that answers questions about it."""
    kernel = sys.modules["IPython"].get_ipython().kernel
    vars(kernel.comm_manager.targets[target])["trial"] = trial


def fork_hooks() -> list[list[Callable[[], object]]]:
    """Return the lists of what Python calls before a fork, and after it in both processes."""
    if not FORK_HOOKS:

        def mark() -> None:
            """Be found: Python does not tell where it keeps them."""

        os.register_at_fork(before=mark, after_in_parent=mark, after_in_child=mark)
        gc.unfreeze()  # what is frozen is not found
        FORK_HOOKS.extend(each for each in gc.get_referrers(mark) if type(each) is list)
        for each in FORK_HOOKS:
            each.remove(mark)
    return FORK_HOOKS


def is_users(hook: Any) -> bool:
    """Return whether a hook comes from the user's code, and not from a library."""
    return getattr(getattr(hook, "func", hook), "__module__", None) == "__main__"


def spare_handler(child: int) -> None:
    """Have a handler of the user's for the end of children not hear of the watcher."""
    theirs, is_over = signal.getsignal(signal.SIGCHLD), False
    if not callable(theirs):
        return

    def handler(number: int, frame: Any) -> None:
        nonlocal is_over
        if not is_over and waits(os.P_PID, child, 0):
            is_over = True
            if signal.getsignal(signal.SIGCHLD) is handler:
                signal.signal(signal.SIGCHLD, theirs)
            if not waits(os.P_ALL, 0, os.WNOWAIT, gone=False):
                return
        theirs(number, frame)

    signal.signal(signal.SIGCHLD, handler)


def waits(kind: int, id: int, flags: int, *, gone: bool = True) -> bool:
    """Return whether a child has ended and waits to be reaped, or `gone` if there is none."""
    try:
        return os.waitid(kind, id, os.WEXITED | os.WNOHANG | flags) is not None
    except ChildProcessError:
        return gone


def reap(child: int) -> None:
    """Wait for the watcher, in a thread of the kernel."""
    with contextlib.suppress(ChildProcessError):  # code of the user has waited for it
        os.waitpid(child, 0)


class Connection:
    """A connection to the server, and a way to send frames."""

    def __init__(self, path: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.connect(path)
        self._lock = threading.Lock()
        self.number = self._socket.fileno()
        self._dumps, self._pack = json.dumps, struct.pack

    def send(self, msg_type: str, content: Any) -> None:
        """Send a message."""
        header = self._dumps({"msg_type": msg_type}).encode()
        told = self._dumps(content, default=str).encode()
        with self._lock:
            self._socket.sendall(self._pack("!II", len(header), len(told)) + header + told)

    def close(self) -> None:
        """Close the connection in this process."""
        self._socket.close()


class Denials:
    """Hears what the code tries and the seal refuses, as far as it tries it by way of Python."""

    def __init__(self, private: str) -> None:
        self._private = os.path.realpath(private) + os.sep
        self._found: dict[tuple[str, str | None], int | None] = {}
        """Where it was tried first: the line of the code, if known."""
        self.file: str | None = None
        """What Python calls the code's file; None if its lines are not those of the source."""

    def hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Note an audit event; what is raised here would reach the code."""
        if event in DENIED:
            kind, index = DENIED[event]
            with contextlib.suppress(Exception):
                what = None if index is None else arguments[index]
                if kind != "write" or self._is_refused(event, what, arguments):
                    self.add(kind, what, self._line(sys._getframe(1)))

    def _is_refused(self, event: str, path: Any, arguments: tuple[Any, ...]) -> bool:
        if isinstance(path, int) or (event == "open" and not arguments[2] & WRITES):
            return False
        there = os.path.abspath(os.fsdecode(path))
        is_known = event == "os.mkdir" and os.path.isdir(there)
        return not (is_known or there == os.devnull or (there + os.sep).startswith(self._private))

    def _line(self, frame: types.FrameType | None) -> int | None:
        """Return the line of the code at which a frame, or the nearest one above it, is."""
        while frame is not None and frame.f_code.co_filename != self.file:
            frame = frame.f_back
        return None if frame is None else frame.f_lineno

    def _raised_at(self, error: BaseException) -> int | None:
        """Return the last line of the code that an error came through."""
        at = [
            line
            for frame, line in traceback.walk_tb(error.__traceback__)
            if frame.f_code.co_filename == self.file
        ]
        return at[-1] if at else None

    def add(self, kind: str, what: Any, line: int | None) -> None:
        """Note something that was refused."""
        if isinstance(what, (str, bytes, os.PathLike)):
            what = os.fsdecode(what)
        if len(self._found) < MOST_DENIALS:
            named = None if what is None else str(what)[:MOST_CHARACTERS]
            self._found.setdefault((kind, named), line)

    def told(self, error: BaseException | None) -> list[dict[str, str | int | None]]:
        """Return what was refused, also what only an error of the system tells."""
        named = {what for _, what in self._found}
        for _ in range(10):
            if isinstance(error, OSError) and error.errno in (errno.EPERM, errno.EACCES):
                name = error.filename
                if (None if name is None else os.fsdecode(name)) not in named and not (
                    name is None and self._found
                ):
                    self.add("access", name, self._raised_at(error))
            error = error and (error.__cause__ or error.__context__)
        unnamed = {kind for kind, what in self._found if what is not None}
        return [
            {"kind": kind, "what": what, "line": line}
            for (kind, what), line in self._found.items()
            if what is not None or kind not in unnamed
        ]


# -- the watcher -----------------------------------------------------------------------------------


def watch(plan: dict[str, Any], kernel: int, mask: Collection[int], random: Any) -> None:
    """Fork the copy, and watch it to its end; never return."""
    os.setsid()
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})
    signal.alarm(int(plan["seconds"]) + 10)  # ends this process if it hangs
    plan["has_scratch"] = make_scratch(plan["private"])
    die_with_parent()
    if os.getppid() != kernel:
        os._exit(1)
    connection, of_copy = Connection(plan["socket"]), Connection(plan["socket"])
    fault = gpu()
    if fault is not None:
        connection.send("trial_refused", {"reason": fault})
        os._exit(1)
    blank_descriptors({connection.number, of_copy.number})  # the user may close what the kernel has
    outs = {"stdout": os.pipe(), "stderr": os.pipe()}
    ours, its = socket.socketpair()
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("500")
    try:
        seal_watcher(plan)
    except SystemExit as error:
        connection.send("trial_refused", {"reason": str(error)})
        os._exit(1)
    watcher = os.getpid()
    copy = os.fork()
    if copy == 0:
        signal.alarm(0)
        die_with_parent()
        if os.getppid() == watcher:
            copied(plan, of_copy, its, (outs["stdout"][1], outs["stderr"][1]), mask, random)
        os._exit(1)
    of_copy.close()
    its.close()
    for _, write in outs.values():
        os.close(write)
    reads = {read: name for name, (read, _) in outs.items()}
    reason = None
    try:
        reason = until_over(plan, connection, copy, reads, opener(copy, ours, plan))
    finally:
        os.kill(copy, signal.SIGKILL)  # it is not reaped yet, so the id is its own
        code = os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1])
    for read, name in reads.items():
        while relay(connection, read, name):
            pass
    connection.send("trial_exited", {"code": code, "reason": reason})
    connection.close()  # the server answers now; Linux takes its time to free the memory
    os._exit(0)


def opener(copy: int, told: socket.socket, plan: dict[str, Any]) -> Opener | None:
    """Return what opens files for the copy, which waits for it; None if it could not be sealed."""
    _, given, _, _ = told.recvmsg(1, socket.CMSG_SPACE(4))
    if not given:
        return None
    found = Opener(copy, struct.unpack("=i", given[0][2])[0], plan)
    told.sendall(b"1")
    return found


def gpu() -> str | None:
    """Return why a kernel that uses a GPU cannot be copied; None if it uses none."""
    with open("/proc/self/maps") as maps:
        text = maps.read()
    for device in GPUS:
        if device in text:
            return f"it uses a GPU ({device.rstrip('/')}), which a copy cannot share"
    return None


def until_over(
    plan: dict[str, Any],
    connection: Connection,
    copy: int,
    reads: dict[int, str],
    opener: Opener | None,
) -> str | None:
    """Wait until the copy ends; return why it has to be ended, or None if it ended by itself."""
    until = time.monotonic() + plan["seconds"]
    poll = select.poll()
    poll.register(connection.number, select.POLLRDHUP)
    end = os.pidfd_open(copy)
    poll.register(end, select.POLLIN)
    if opener is not None:
        poll.register(opener.number, select.POLLIN)
    for read in reads:
        os.set_blocking(read, False)
        poll.register(read, select.POLLIN)
    while time.monotonic() < until:
        for number, event in poll.poll(LOOK_SECONDS * 1000):
            if number == connection.number:
                return "the server has ended it"
            if number == end:
                return None
            if opener is not None and number == opener.number and event & select.POLLIN:
                opener.answer()
            elif event & select.POLLIN:
                relay(connection, number, reads[number])
            else:
                poll.unregister(number)
        with contextlib.suppress(OSError):  # it has ended
            if os.stat(f"/proc/{copy}/task").st_nlink - 2 > MOST_THREADS:
                return f"it had more than {MOST_THREADS:,} threads"
    return "its time is over"


def relay(connection: Connection, read: int, name: str) -> bool:
    """Send what libraries wrote past Python's own streams; return whether there was any."""
    with contextlib.suppress(BlockingIOError):
        data = os.read(read, PIPE_BYTES)
        if data:
            connection.send("stream", {"name": name, "text": data.decode("utf-8", "replace")})
            return True
    return False


# -- the copy --------------------------------------------------------------------------------------


def copied(
    plan: dict[str, Any],
    connection: Connection,
    watcher: socket.socket,
    outs: tuple[int, int],
    mask: Collection[int],
    random: Any,
) -> None:
    """Seal this process, and run the code; never return."""
    try:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD, signal.SIGALRM):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.set_wakeup_fd(-1)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for stream, out in enumerate(outs, start=1):
            os.dup2(out, stream)
        asyncio._set_running_loop(None)
        known = descriptors()
        loop = asyncio.new_event_loop()
        own = descriptors() - known
        use_folder(plan["private"])
        try:
            sealed = seal(plan, {1, 2, connection.number} | own, watcher)
        except SystemExit as error:
            connection.send("trial_refused", {"reason": str(error)})
            os._exit(1)
        if random is not None:  # Python has seeded it anew at the fork
            sys.modules["random"].setstate(random)
        connection.send("trial_sealed", sealed)
        gc.enable()
        asyncio.set_event_loop(loop)
        denials = Denials(plan["private"])
        sys.addaudithook(denials.hear)
        ended = loop.run_until_complete(run(plan, connection, denials))
        connection.send("trial_ended", ended)
    except Exception as error:  # also of hooks of the user's, and of what the agent replaced
        connection.send("trial_failed", {"reason": f"{type(error).__name__}: {error}"})
    finally:
        os._exit(0)


def use_folder(folder: str) -> None:
    """Have temporary files go to the copy's own folder."""
    for name in ("TMPDIR", "TEMP", "TMP"):
        os.environ[name] = folder
    tempfile.tempdir = folder


async def run(plan: dict[str, Any], connection: Connection, denials: Denials) -> dict[str, Any]:
    """Run the code as the kernel would; return the reply, and what it tells besides."""
    shell = sys.modules["IPython"].get_ipython()
    redirect(shell, connection)
    shell.history_manager.enabled = False
    shell.kernel._forward_input(allow_stdin=False)
    shell.system = shell.getoutput = start
    sys.dont_write_bytecode = True
    listed(shell, plan["look"])
    source, transformed, fault = plan["source"], plan["source"], None
    try:
        transformed = shell.transform_cell(source)
    except Exception:
        fault = sys.exc_info()
    # IPython looks there for a semicolon at the end, which hides the value.
    shell.history_manager.input_hist_parsed.append(transformed)
    if len(transformed.splitlines()) == len(source.splitlines()):
        with contextlib.suppress(Exception):
            denials.file = shell.compile.get_code_name(source, transformed, shell.execution_count)
    shell._last_traceback, shell._last_traceback_during_displayhook = None, False
    result = await shell.run_cell_async(
        source, store_history=False, transformed_cell=transformed, preprocessing_exc_tuple=fault
    )
    shell.events.trigger("post_execute")  # shows figures
    shell.events.trigger("post_run_cell", result)
    error = result.error_before_exec or result.error_in_exec
    reply: dict[str, Any] = {"status": "ok"}
    # The kernel has no error then if one was raised while a value was shown.
    if error is not None or getattr(shell, "_last_traceback_during_displayhook", False):
        told = getattr(shell, "_last_traceback", None) or []
        reply = {"ename": type(error).__name__, "evalue": str(error), "traceback": told}
        reply["status"] = "error"
    reply["payload"] = shell.payload_manager.read_payload()
    changes = listed(shell, plan["look"])
    if reply["status"] == "ok":
        reply["payload"] += listed(shell, plan["values"])
    return {"reply": reply, "changes": changes, "refused": denials.told(error)}


def start(command: str, **_: object) -> None:
    """Refuse a line with `!`, which would fail at something else first."""
    sys.audit("os.system", command)
    raise PermissionError("a trial cannot start programs")


def listed(shell: Any, expression: str) -> Any:
    """Evaluate an expression of ours; return the payload that it wrote."""
    shell.payload_manager.clear_payload()
    if expression:
        with contextlib.suppress(KeyError):  # somebody has removed our code from the kernel
            eval(expression, {})  # noqa: S307 - the server's
    payload = shell.payload_manager.read_payload()
    shell.payload_manager.clear_payload()
    return payload


def redirect(shell: Any, connection: Connection) -> None:
    """Send what the kernel would publish on its sockets to the server."""

    def send(
        stream: Any, msg_or_type: Any, content: Any = None, *more: Any, **others: object
    ) -> Any:
        msg_type = msg_or_type
        if isinstance(msg_or_type, dict):
            msg_type, content = msg_or_type["header"]["msg_type"], msg_or_type["content"]
        if msg_type in MESSAGES:
            connection.send(msg_type, content)
        return {"header": {"msg_type": msg_type}, "content": content}

    session = shell.kernel.session
    session.send = send
    for owner in (shell.display_pub, shell.displayhook):
        owner.session.send = send
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if type(stream).__module__ == "ipykernel.iostream":
            stream.write = writer(connection, name)
            stream.flush = flush


def writer(connection: Connection, name: str) -> Callable[[str], int]:
    """Return the method that writes to a stream."""

    def write(text: str) -> int:
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text)}")
        if text:
            connection.send("stream", {"name": name, "text": text})
        return len(text)

    return write


def flush() -> None:
    """Do nothing: each write is sent at once."""
