"""Uses and changes of private members of other packages, where they have no public API.

Each function says why it is needed, and which upstream issue would remove it. It gets the other
package's object, and does not import the package. `tests/test_workarounds.py` and, with
collaboration, `tests/notebooks/test_collaboration.py` fail when a private name is removed, or when
a workaround is no longer needed. For jupyter_server_documents, `tests/notebooks/
test_server_documents.py` does.

Three others stand alone: `kernels/in_kernel/ipykernel_workarounds.py` is sent to kernels,
`notebooks/backends/atomic_contents.py` is a contents manager, and the page has
`labextension/src/ui/workarounds.ts`.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
from typing import Any, Final

# -- jupyter_server --------------------------------------------------------------------------------


def note_current_user(handler: Any, user: Any) -> None:
    """Make Jupyter's `check_xsrf_cookie` check a request whose user we have authenticated.

    It accepts every request until `JupyterHandler.prepare` has set `_jupyter_current_user`. Our
    handlers do not call that `prepare`, because it has its own error messages and redirects. No
    upstream issue is known.
    """
    handler._jupyter_current_user = user


LARGE_BLOCK_BYTES: Final = 1 << 20


def give_back_large_blocks() -> None:
    """Make glibc give the memory of each freed large block back to the system at once.

    By default it raises the size of what it calls large to 32 MB, and keeps smaller blocks for each
    thread: after ten kernels with outputs of 10 MB, more than 100 MB stay. Python has no option for
    that. Other C libraries have no `mallopt`, or ignore it.
    """
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, LARGE_BLOCK_BYTES)


_M_MMAP_THRESHOLD: Final = -3
"""Source: glibc, *malloc.h*."""


# -- jupyter_client and ipykernel ------------------------------------------------------------------

IPYKERNEL_ARGUMENTS: Final = (
    # Agents' code stays out of the user's own IPython history, as with nbclient.
    "--HistoryManager.hist_file=:memory:",
    # ipykernel waits half a millisecond before each reply, for frontends that take the reply for
    # the end of the output. Here a run ends with reply and idle, and idle follows all output. The
    # trait is configurable, though its name is private. No upstream issue is known.
    "--Kernel._execute_sleep=0",
)
"""Arguments for the ipykernels of scratch sessions."""


def forget_failed_starts(kernels: Any) -> None:
    """Forget kernels that did not start, so that the server can stop.

    jupyter_client 8.10 keeps such a kernel in its list of starting kernels, and has no public API
    to remove it. When jupyter_server 2.21 shuts down all kernels, it gets the error that there is
    no such kernel, and does not stop. No issue about exactly this is known; the question what
    `shutdown_all` should do with starting kernels is in
    https://github.com/jupyter/jupyter_client/issues/616.

    Parameters
    ----------
    kernels
        The server's kernel manager.
    """
    starting: dict[str, asyncio.Future[None]] = getattr(kernels, "_pending_kernels", {})
    for kernel_id, start in list(starting.items()):
        if start.done() and kernel_id not in kernels:
            del starting[kernel_id]


def tell_restarted(manager: Any) -> None:
    """Tell the pages of a kernel that it is another one, so that they wait for no cell of before.

    Only the restarter can, when it has restarted a kernel itself. No upstream issue is known.
    """
    restarter = getattr(manager, "_restarter", None)
    if restarter is not None:
        restarter._fire_callbacks("restart")


# -- jupyter_server_ydoc ---------------------------------------------------------------------------


async def room_settled(room: Any) -> None:
    """Wait while a `DocumentRoom` reads its document again from the file.

    It does that in one transaction over many turns of the loop. Nothing else may change the
    document meanwhile. No upstream
    issue is known.
    """
    async with room._update_lock:
        pass


async def save_room(room: Any) -> None:
    """Make a `DocumentRoom` save at once, so that it knows the state of the file.

    The public API for that is only a message on a page's WebSocket. No upstream issue is known.
    """
    saving = room._save_to_disc()
    if saving is not None:
        await asyncio.wait({saving})


# -- jupyter_server_documents ----------------------------------------------------------------------


async def load_changed_file(room: Any, document: Any) -> None:
    """Make a `YRoom` load its file at once, if it was written by others.

    It looks twice a second, and then puts what it finds in place of the document. No upstream issue
    is known.
    """
    await room.file_api._check_file(document)
