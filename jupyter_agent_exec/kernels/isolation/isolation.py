"""Which scratch kernels are isolated, whether that can be done here, and how one is started so."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ...errors import InvalidRequest, IsolationUnavailable
from ...kernels.folder import Folder
from ...types import IsolationMode
from ..provisioner import KernelStarter
from ..server_kernels import ServerKernels
from .provisioner import Asked, IsolatedProvisioner, Room
from .view import View
from .ways import IsolationLimits, Way, fault

PACKAGE = Path(__file__).resolve().parents[2]
"""Where our own programs are."""

WAYS: Sequence[Way] = ("bubblewrap", "unshare")


class Isolation:
    """Starts isolated kernels under the server's kernel manager.

    Parameters
    ----------
    mode
        Whether scratch kernels may be isolated, must be, or must not.
    private
        Folders of the server's own: they are not shown, and no isolated kernel works in them.
    root_dir
        The folder that the server serves; of it only the folder that a kernel works in is shown.
    readable
        What isolated kernels may read beside the system's programs, Python and their own program.
    ways
        What to try, in this order.
    """

    def __init__(
        self,
        kernels: ServerKernels,
        starter: KernelStarter,
        *,
        mode: IsolationMode,
        limits: IsolationLimits,
        private: Collection[Path],
        root_dir: Path,
        readable: Collection[Path] = (),
        ways: Sequence[Way] = WAYS,
    ) -> None:
        self.mode = mode
        self._kernels = kernels
        self._starter = starter
        self._limits = limits
        self._private = [path.resolve() for path in private]
        self._root_dir = root_dir
        self._readable = readable
        self._ways = ways
        self._way: Way | None = None
        self._lock = asyncio.Lock()

    def check_allowed(self, kernel_spec: Any) -> None:
        """Raise IsolationUnavailable if no kernel may be isolated, or none of this kernelspec."""
        own = self._starter.own_provisioner(kernel_spec)
        if own is not None:
            raise IsolationUnavailable(
                f"target.isolated: the kernels {kernel_spec.display_name!r} are started by a "
                f"provisioner of their own ({own!r}), which does not isolate them. Choose another "
                "target.kernel_name, or leave target.isolated out.",
                field="target.isolated",
                provisioner=own,
            )
        if self.mode == "off":
            raise IsolationUnavailable(
                "target.isolated: this server does not isolate kernels; its operator switched "
                "that off (isolation='off')."
            )

    def check_folder(self, folder: Path, kernel_spec: Any) -> None:
        """Look whether a kernel may work in a folder, and write whatever is in it.

        Parameters
        ----------
        folder
            Its path without links, which is not looked up here: what stands there may change.

        Raises
        ------
        InvalidRequest
            There is what is private, or what others run or are shown, which it could replace.
        IsolationUnavailable
            The kernel's program cannot be shown.
        """
        view = self._view()
        view.program(kernel_spec.argv[0])
        readable = [path.resolve() for path in self._readable]
        # Whether a folder may not be within these, and what they are. None may hold them.
        barred = [
            ([Path.home().resolve()], False, "the account's home folder"),
            (self._private, True, "folders of the server's own"),
            ([*view.installations, PACKAGE], True, "programs that the server or kernels run"),
            (
                [path for path in readable if path != folder],
                False,
                "what all such kernels may read",
            ),
        ]
        for paths, also_within, what in barred:
            if any(
                path.is_relative_to(folder) or (also_within and folder.is_relative_to(path))
                for path in paths
            ):
                raise InvalidRequest(
                    f"target.cwd: an isolated kernel may not work there, for it would find {what}. "
                    "Name another folder, or leave target.cwd out.",
                    field="target.cwd",
                )

    async def start(
        self, start: Callable[[], Awaitable[str]], folder: Folder, env: Mapping[str, str]
    ) -> str:
        """Start a kernel that is isolated; return its id.

        Parameters
        ----------
        start
            Has the server's kernel manager start it.
        folder
            Where it works; it is held.
        env
            What the session sets for it.

        Raises
        ------
        IsolationUnavailable
        """
        asked = Asked(await self.way(), folder, tuple(env), self._limits, self._view)
        kernel_id = await self._starter.start(start, partial(self._provisioner, asked))
        if not isinstance(self._kernels.get_kernel(kernel_id).provisioner, IsolatedProvisioner):
            await self._kernels.shutdown_kernel(kernel_id, now=True)
            raise IsolationUnavailable(
                "This server's kernel manager starts kernels by means of its own, which are not "
                "isolated."
            )
        return kernel_id

    def _provisioner(self, asked: Asked, manager: Any) -> IsolatedProvisioner:
        self.check_allowed(manager.kernel_spec)  # as it is now, and before anything starts
        return IsolatedProvisioner(asked, manager)

    async def way(self) -> Way:
        """Return the way that works here, tried once; IsolationUnavailable if none does."""
        async with self._lock:
            if self._way is not None:
                return self._way
            self._way = way = await asyncio.to_thread(self._try)
            return way

    def _try(self) -> Way:
        if not sys.platform.startswith("linux"):
            raise IsolationUnavailable("Kernels can be isolated on Linux only.")
        room = Room()
        try:
            faults = {}
            for way in self._ways:
                work = Folder(room.path, ("work",))
                work.path.mkdir(exist_ok=True)
                asked = Asked(way, work, (), self._limits, self._view)
                why = fault(way, room.plan(asked, [sys.executable, "-I", "-S", "-c", "pass"]))
                if why is None:
                    return way
                faults[way] = why
        finally:
            room.remove()
        told = "; ".join(f"{way}: {why}" for way, why in faults.items())
        raise IsolationUnavailable(
            f"This server cannot isolate kernels. Tried {told}. Its operator can install "
            "bubblewrap 0.8 or later, or allow user namespaces (see the page on isolation).",
            tried=faults,
        )

    def _view(self) -> View:
        view = View([*self._private, Path.home(), self._root_dir])
        view.system()
        view.server_python()
        for path in self._readable:
            view.readable(path)
        return view
