"""Makes a sleeping copy the kernel, in the same place. Sent to kernels, never imported there.

The copy has the memory of the kernel, but none of its threads, and must not touch ZeroMQ's sockets
of the former process. It makes new ones on the listening sockets that it has inherited, so that no
port is free for a moment, and new threads. All of that is done before the process that it replaces
is ended: if anything fails, that one goes on. ipykernel has no public way to do this; the private
names here are tested with ipykernel 6.29 and 7.4 (`tests/test_workarounds.py`).
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import gc
import json
import logging
import os
import queue
import select
import selectors
import signal
import socket
import sys
import threading
import time
from collections import defaultdict
from functools import partial
from io import StringIO
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..kernels.trials.copy import Forked
    from .guards import clients

BIND_SECONDS = 5.0
"""Seconds within which the channels must be bound."""
SUBSCRIBE_SECONDS = 0.1
"""Seconds that a client has, after it has connected again, to subscribe to the output."""

IGNORE_SECONDS = 0.5
"""Seconds within which the loop has handled what was cancelled."""


class Link:
    """A connection to the server that carries lines of JSON."""

    def __init__(self, path: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(path)
        self._lines = self._socket.makefile("rb")

    def tell(self, **told: object) -> None:
        """Send a line."""
        self._socket.sendall(json.dumps(told).encode() + b"\n")

    def close(self) -> None:
        """Close it in this process."""
        self._lines.close()
        self._socket.close()

    def hear(self) -> dict[str, Any]:
        """Wait for a line; end this process if the server has hung up."""
        line = self._lines.readline()
        if not line:
            os._exit(0)
        heard: dict[str, Any] = json.loads(line)
        return heard


class Remains:
    """What is left of former processes. The kernel has it, as this code may be sent again."""

    def __init__(self) -> None:
        self.grave: list[object] = []
        """What belongs to threads and to ZeroMQ: never finalized."""
        self.own: dict[int, str] = {}
        """Descriptors that were opened at the last take-over, and that no object will close."""
        self.sockets: dict[int, object] = {}
        """Sockets of ZeroMQ, by their ids."""
        self.link: Link | None = None
        """The connection of the last one to the server."""


def remains() -> Remains:
    """Return what is left of former processes."""
    kernel = sys.modules["IPython"].get_ipython().kernel
    found: Remains = vars(kernel).setdefault("_agent_exec_remains", Remains())
    return found


def take_over(
    kernel: Any,
    link: Link,
    order: dict[str, Any],
    listeners: dict[int, int],
    forked: Forked,
    server: int,
) -> None:
    """Make everything ready, wait until the kernel's process has ended, and go on in its place."""
    app = kernel.parent
    remains().grave.append([dict(app._trait_values), dict(kernel._trait_values)])
    subshells = [each for each in subshells_of(kernel) if each != order["subshell"]]
    close_own(kernel)
    free_loop(kernel)
    repair_executors()
    known = descriptors_now()
    bind(app, listeners)
    connect(kernel, app, subshells)
    repair_history(kernel.shell)
    watch_server(app, server)
    remains().own.update(descriptors_now().items() - known.items())
    repair_streams(app)
    count = order.get("execution_count")
    if count is not None:
        kernel.shell.execution_count = max(kernel.shell.execution_count, count)
    link.tell(ready=True)
    wait_for_clients(app, link.hear())
    for hooks, found in forked.hooks:
        hooks[:] = found
    theirs = signal.signal(signal.SIGINT, signal.SIG_IGN)  # interrupts were for the other process
    signal.pthread_sigmask(signal.SIG_SETMASK, forked.mask)
    signal.signal(signal.SIGINT, theirs)
    if forked.collects:
        gc.enable()
    if forked.random is not None:
        sys.modules["random"].setstate(forked.random)
    atexit.register(tell_exit, link)
    remains().link = link
    link.tell(done=True)
    kernel._publish_status("idle", "shell")


def close_own(kernel: Any) -> None:
    """Close the descriptors of the ZeroMQ, of the threads and of the history of before.

    Code of that ZeroMQ never runs again in this process: its threads are missing.
    """
    import zmq

    left = remains()
    thread = getattr(kernel, "shell_channel_thread", None)
    for subshell in thread.manager._cache.values() if thread else ():
        its = subshell.io_loop.asyncio_loop
        for each in (its._selector, its._ssock, its._csock):
            each.close()
    numbers = set()
    for each in gc.get_objects():
        if issubclass(type(each), zmq.Socket) and id(each) not in left.sockets:
            left.sockets[id(each)] = each
            with contextlib.suppress(zmq.ZMQError):
                numbers.add(each.FD)
    opened = descriptors_now()
    # A number may have been closed, and opened again for something else.
    numbers |= {number for number, what in left.own.items() if opened.get(number) == what}
    for number in numbers & opened.keys():
        os.close(number)
    left.own.clear()


def tell_exit(link: Link) -> None:
    """Tell the server, if it listens, that this process ends by itself."""
    with contextlib.suppress(OSError):
        link.tell(exits=True)


def wait_for_clients(app: Any, order: dict[str, Any]) -> None:
    """Wait until as many clients as before hear the output."""
    until = time.monotonic() + order["seconds"]
    while clients(app.iopub_port) < order["clients"] and time.monotonic() < until:
        time.sleep(0.005)
    time.sleep(SUBSCRIBE_SECONDS)


def descriptors_now() -> dict[int, str]:
    """Return all open descriptors, by their numbers, and what each is."""
    found = {}
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            found[int(name)] = what = os.readlink(f"/proc/self/fd/{name}")
            if what.startswith("anon_inode:[eventfd"):
                with open(f"/proc/self/fdinfo/{name}") as file:
                    found[int(name)] += file.read().rpartition("eventfd-id")[2]
    return found


def subshells_of(kernel: Any) -> list[str]:
    """Return the ids of the kernel's subshells."""
    thread = getattr(kernel, "shell_channel_thread", None)
    return list(thread.manager.list_subshell()) if thread else []


def free_loop(kernel: Any) -> None:
    """Keep the event loop with the user's tasks, and take what the other process shares out of it.

    The shared selector must not be touched: a change in it would change the other process's.
    """
    loop = kernel.io_loop.asyncio_loop
    asyncio._set_running_loop(loop)  # asyncio forgets it at a fork
    before = loop._selector
    loop._selector = selectors.DefaultSelector()
    for key in list(before.get_map().values()):
        with contextlib.suppress(OSError, ValueError):  # it was a connection of the kernel's
            loop._selector.register(key.fileobj, key.events, key.data)
    before.close()
    thread = getattr(kernel, "shell_channel_thread", None)
    stream = thread.manager._shell_channel_to_main.to_stream if thread else kernel.shell_stream
    with contextlib.suppress(Exception):
        kernel.io_loop.remove_handler(stream.socket)
    remains().grave.append(stream.socket)
    stream.socket = None
    loop._close_self_pipe()
    loop._make_self_pipe()
    if getattr(loop, "_signal_handlers", None):
        signal.set_wakeup_fd(loop._csock.fileno())
    for task in asyncio.all_tasks(loop):  # requests that waited behind ours run in the kernel
        code = getattr(task.get_coro(), "cr_code", None)
        if code is not None and f"{os.sep}ipykernel{os.sep}" in code.co_filename:
            remains().grave.append(task)
            task.cancel()
    theirs = loop.get_exception_handler()
    loop.set_exception_handler(ignore)  # ZMQStream raises that a task of it was cancelled
    loop.call_later(IGNORE_SECONDS, loop.set_exception_handler, theirs)


def ignore(loop: Any, context: dict[str, Any]) -> None:
    """Handle exceptions of callbacks, but not of those that were cancelled at the take-over."""
    if not isinstance(context.get("exception"), asyncio.CancelledError):
        loop.default_exception_handler(context)


def bind(app: Any, listeners: dict[int, int]) -> None:
    """Make new sockets and threads for the kernel, on the sockets that listen already."""
    import zmq

    plain = zmq.Socket.bind
    left = {str(port): number for port, number in listeners.items()}

    def bind_inherited(socket: Any, address: str) -> Any:
        number = left.pop(address.rpartition(":")[2], None)
        if number is not None:
            socket.setsockopt(zmq.USE_FD, number)
        return plain(socket, address)

    app.session.pid = os.getpid()
    tornado = logging.getLogger("tornado")
    handlers, app.log.disabled = list(tornado.handlers), True
    zmq.Socket.bind = bind_inherited  # type: ignore[assignment, method-assign]
    try:
        app.context = None
        app.init_sockets()
        app.init_heartbeat()
        until = time.monotonic() + BIND_SECONDS
        while left and time.monotonic() < until:  # the heartbeat binds in its thread
            time.sleep(0.001)
    finally:
        zmq.Socket.bind = plain  # type: ignore[method-assign]
        tornado.handlers[:], app.log.disabled = handlers, False
    if left:
        raise RuntimeError(f"ports {sorted(left)} were not bound")
    atexit.unregister(app.close)
    atexit.register(app.close)


def connect(kernel: Any, app: Any, subshells: list[str]) -> None:
    """Connect the kernel with the new sockets and threads. Source: ipykernel, *kernelapp.py*."""
    from zmq.eventloop.zmqstream import ZMQStream

    channel = getattr(app, "shell_channel_thread", None)
    its_loop: Any = channel.io_loop if channel else None
    kernel.shell_stream = shell = ZMQStream(app.shell_socket, its_loop)
    kernel.control_stream = ZMQStream(app.control_socket, app.control_thread.io_loop)
    kernel.debugpy_stream = ZMQStream(app.debugpy_socket, app.control_thread.io_loop)
    for name in ("debug_shell_socket", "control_thread", "iopub_thread", "iopub_socket"):
        setattr(kernel, name, getattr(app, name))
    kernel.stdin_socket = app.stdin_socket
    for publisher in (kernel.shell.displayhook, kernel.shell.display_pub, app.displayhook):
        publisher.pub_socket = app.iopub_socket
    kernel._aborting = False
    kernel._control_lock = asyncio.Lock()
    control = app.control_thread.io_loop.asyncio_loop
    if hasattr(kernel, "control_queue"):  # ipykernel 6
        kernel.control_queue = type(kernel.control_queue)()
        asyncio.run_coroutine_threadsafe(kernel.poll_control_queue(), control)
    kernel.control_stream.on_recv(kernel.dispatch_control, copy=False)
    repair_debugger(kernel, control)
    app.control_thread.start()
    if channel:
        channel.shell_stream = shell
        kernel.shell_channel_thread = channel
        kernel._main_asyncio_lock = asyncio.Lock()
        channel.manager.set_on_recv_callback(kernel.shell_main)
        channel.start()
        for subshell in subshells:
            its_loop.add_callback(make_subshell, channel.manager, subshell)
        shell.on_recv(kernel.shell_channel_thread_main, copy=False)
    else:
        kernel.msg_queue = type(kernel.msg_queue)()
        kernel.io_loop.add_callback(kernel.dispatch_queue)
        shell.on_recv(partial(kernel.schedule_dispatch, kernel.dispatch_shell), copy=False)


def make_subshell(manager: Any, subshell: str) -> None:
    """Make a subshell with the id that the clients know."""
    module: Any = sys.modules[type(manager).__module__]

    class Ids:
        """Returns the id that is wanted."""

        uuid4 = staticmethod(lambda: subshell)

    before, module.uuid = module.uuid, Ids
    try:
        manager._create_subshell()
    finally:
        module.uuid = before


def repair_debugger(kernel: Any, control: Any) -> None:
    """Give the kernel a debugger on the new sockets, if it has one."""
    before = getattr(kernel, "debugger", None)
    if before is None:
        return
    remains().grave.append(before)
    options = [kernel.debug_just_my_code, getattr(kernel, "filter_internal_frames", None)]
    modules = getattr(kernel, "_kernel_modules", None)
    if modules is None:
        options = options[:1]
    given = [kernel.log, kernel.debugpy_stream, kernel._publish_debug_event]
    given += [kernel.debug_shell_socket, kernel.session]
    kernel.debugger = type(before)(*given, *([] if modules is None else [modules]), *options)
    kernel.debugpy_stream.on_recv(kernel.dispatch_debugpy, copy=False)
    asyncio.run_coroutine_threadsafe(kernel.poll_stopped_queue(), control)


def repair_streams(app: Any) -> None:
    """Give the streams, to which the user's code has references, new threads and buffers."""
    for stream in (sys.stdout, sys.stderr):
        if type(stream).__module__ != "ipykernel.iostream":
            continue
        its: Any = stream
        its.pub_thread, its._io_loop = app.iopub_thread, app.iopub_thread.io_loop
        its._master_pid = os.getpid()
        its._flush_pending = its._subprocess_flush_pending = False
        its._buffer_lock, its._buffers = threading.RLock(), defaultdict(StringIO)
        if its._should_watch and its._fid is not None:
            read, write = os.pipe()
            os.dup2(write, its._original_stdstream_fd)
            os.close(write)
            os.close(its._fid)
            its._fid = read
            its.watch_fd_thread = threading.Thread(target=watch_pipe, args=(its,), daemon=True)
            its.watch_fd_thread.start()


def watch_pipe(stream: Any) -> None:
    """Send what libraries write past Python's streams. This thread belongs to no request."""
    for each in (sys.stdout, sys.stderr):
        for name in ("_thread_to_parent_header", "_thread_to_parent"):  # ipykernel 6
            getattr(each, name, {}).pop(threading.get_ident(), None)
    stream._watch_pipe_fd()


def repair_history(shell: Any) -> None:
    """Open IPython's history again, as a session of its own."""
    history = shell.history_manager
    if not history.enabled or history.hist_file == ":memory:":
        return
    had_thread = history.save_thread is not None
    remains().grave.append((history.db, history.save_thread))
    history.db_input_cache_lock, history.db_output_cache_lock = threading.Lock(), threading.Lock()
    history.save_thread = None
    history.init_db()
    history.new_session()
    history.db_input_cache.clear()
    history.db_output_cache.clear()
    if had_thread:
        module: Any = sys.modules["IPython.core.history"]
        history.save_thread = module.HistorySavingThread(history)
        if "save_flag" in type(history).class_traits():  # IPython 8
            history.save_flag = threading.Event()
        history.save_thread.start()


def repair_executors() -> None:
    """Let pools of threads start new threads: they count on those of the former process."""
    module = sys.modules.get("concurrent.futures.thread")
    if module is None:
        return
    kind = vars(module)["ThreadPoolExecutor"]
    for each in gc.get_objects():
        if issubclass(type(each), kind):  # `isinstance` would ask the object
            each._threads.clear()
            each._idle_semaphore = threading.Semaphore(0)
            each._work_queue = queue.SimpleQueue()


def watch_server(app: Any, server: int) -> None:
    """End this process when the server has ended, as ipykernel does for the server's children."""
    if app.poller is None:
        return
    number = os.pidfd_open(server)

    def watch_end() -> None:
        ends = select.poll()
        ends.register(number, select.POLLIN)
        ends.poll()
        os._exit(1)

    remains().grave.append(app.poller)
    app.poller = threading.Thread(target=watch_end, daemon=True)
    app.poller.start()
