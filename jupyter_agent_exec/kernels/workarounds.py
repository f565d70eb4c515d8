"""What Jupyter has no public way for, on the server's side of a kernel; each says why it is needed.

`in_kernel/ipykernel_workarounds.py` is the kernel's side. `tests/kernels/test_workarounds.py` fails
when a name that is used here goes, or when a workaround is needed no longer.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from .server_kernels import ServerKernels

IPYKERNEL_ARGUMENTS: Final = (
    # What agents run stays out of the person's own IPython history, as with nbclient.
    "--HistoryManager.hist_file=:memory:",
    # ipykernel waits half a millisecond before each reply, for frontends that take the reply for
    # the end of the output. Here a run ends with reply and idle, and idle follows all output. The
    # trait is configurable, though its name is private.
    "--Kernel._execute_sleep=0",
)
"""For the ipykernels of scratch sessions."""


def interrupt_in_subshell(subshell: str) -> str:
    """Return an expression that interrupts what a subshell runs.

    ipykernel 7 interrupts the whole kernel by a signal, which reaches the main thread alone. It
    names the threads of its subshells.
    """
    return (
        "(lambda i: [i('ctypes').pythonapi.PyThreadState_SetAsyncExc("
        "i('ctypes').c_ulong(each.ident), i('ctypes').py_object(KeyboardInterrupt)) "
        f"for each in i('threading').enumerate() if each.name == 'subshell-{subshell}'])"
        "((lambda: 0).__builtins__['__import__'])"
    )


def forget_failed_starts(kernels: ServerKernels) -> None:
    """Forget kernels that did not start, whoever wanted them, so that the server can stop.

    jupyter_client 8.10 keeps such a kernel among those that are starting, and has no public way to
    remove it; when jupyter_server 2.21 shuts all kernels down, it answers that there is no such
    kernel, and stays. See https://github.com/jupyter/jupyter_client/issues/616.
    """
    starting: dict[str, asyncio.Future[None]] = getattr(kernels, "_pending_kernels", {})
    for kernel_id, start in list(starting.items()):
        if start.done() and kernel_id not in kernels:
            del starting[kernel_id]
