"""Makes a copy of this kernel, which sleeps. Sent to kernels, never imported there.

The kernel forks when it runs no code, tells the server, and is free again after some milliseconds.
The copy closes its ends of the kernel's connections and waits for a word of the server: to take the
kernel's place (`take_over.py`), or, when the server hangs up, to end.
"""

from __future__ import annotations

import contextvars
import gc
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..kernels.trials.copy import Forked, fork_kernel
    from .guards import LISTENING, clients, ports_of, tcp_sockets, why_not
    from .take_over import Link, remains, take_over


def checkpoint(given: str) -> None:
    """Have the kernel fork as soon as it has answered the request that runs this."""
    plan = json.loads(given)
    kernel = sys.modules["IPython"].get_ipython().kernel
    plan["request"] = kernel.get_parent("shell")["header"]["msg_id"]
    # With no context, `get_parent` returns the request that the kernel handled last.
    kernel.io_loop.asyncio_loop.call_soon(freeze, kernel, plan, context=contextvars.Context())


def stay_for_checkpoints(target: str) -> None:
    """Let this code stay in the kernel, with the code that answers questions about it."""
    kernel = sys.modules["IPython"].get_ipython().kernel
    vars(kernel.comm_manager.targets[target])["checkpoint"] = checkpoint


def freeze(kernel: Any, plan: dict[str, Any]) -> None:
    """Fork, and return in the kernel; in the copy, return when it is the kernel."""
    link = Link(plan["socket"])  # of the copy; what the server needs of it now is known here
    try:
        lock = getattr(kernel, "_main_asyncio_lock", None)
        if lock is not None:
            has_begun = lock.locked()
        else:  # ipykernel 6
            has_begun = kernel.get_parent("shell")["header"]["msg_id"] != plan["request"]
        if has_begun:
            raise RuntimeError("the kernel has begun with other code")
        if os.getpid() != plan["pid"]:
            raise RuntimeError("another program starts and watches the kernel's process")
        fault = why_not(kernel)
        if fault is not None:
            raise RuntimeError(fault)
        told = {
            "count": kernel.shell.execution_count,
            "clients": clients(kernel.parent.iopub_port),
        }
        with duckdb_at_rest():
            forked = fork_kernel()
            if forked.child == 0:
                become(kernel, link, plan["server"], forked)
                return
        link.tell(pid=forked.child, **told)
    except Exception as error:
        link.tell(refused=str(error) or type(error).__name__)
    link.close()


def become(kernel: Any, link: Link, server: int, forked: Forked) -> None:
    """Sleep in the copy until it takes the kernel's place; return when it is the kernel."""
    try:
        of_kernel = remains().link
        if of_kernel is not None:  # whose end the server sees when only the kernel has it
            of_kernel.close()
        listeners = leave_connections(kernel)
        order = link.hear()
        take_over(kernel, link, order, listeners, forked, server)
    except BaseException as error:
        try:
            link.tell(refused=f"{type(error).__name__}: {error}")
        finally:
            os._exit(1)


def leave_connections(kernel: Any) -> dict[int, int]:
    """Close this copy's ends of the kernel's connections; return what listens, by port."""
    ports, listeners = ports_of(kernel), {}
    pipe = getattr(kernel.iopub_thread, "_pipe_port", 0)
    for each in list(tcp_sockets()):
        if each.state == LISTENING and each.local in ports - {pipe}:
            listeners[each.local] = each.number
        elif ports & {each.local, each.peer}:
            os.close(each.number)  # of a ZeroMQ whose threads are not in this process
    return listeners


@contextmanager
def duckdb_at_rest() -> Iterator[None]:
    """Have DuckDB end its threads, which a copy would lack; give them back in both processes."""
    kind = getattr(sys.modules.get("duckdb"), "DuckDBPyConnection", None)
    if kind is None:
        yield
        return
    found = {id(each): each for each in gc.get_objects() if type(each) is kind}
    named = vars(sys.modules["__main__"]).values()
    found |= {id(each): each for each in list(named) if type(each) is kind}
    settings = []
    for each in found.values():
        cursor = each.cursor()
        setting = cursor.execute("SELECT current_setting('threads')").fetchone()[0]
        settings.append((cursor, setting))
        cursor.execute("SET GLOBAL threads = 1")
    try:
        yield
    finally:
        for cursor, setting in settings:
            cursor.execute(f"SET GLOBAL threads = {int(setting)}")
