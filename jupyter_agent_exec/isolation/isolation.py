"""Decides which scratch kernels are isolated, by configuration and request, and starts them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Any, cast

from traitlets import Bunch, Enum, HasTraits, Int, List, TraitError, Unicode, validate

from ..errors import InvalidRequest, IsolationUnavailable
from ..kernels.folder import Folder
from ..kernels.provisioner import Isolation
from ..kernels.server_kernels import KernelStarter, ServerKernels
from ..services import Leaf
from ..types import IsolationMode
from .provisioner import IsolatedProvisioner
from .sandbox import WAYS, IsolationLimits, Sandbox, Way

_LIMITS = IsolationLimits()


class KernelIsolation(Isolation):
    """Starts isolated kernels under the server's kernel manager.

    Parameters
    ----------
    sandbox
        The paths and resources of the kernels.
    mode
        Whether scratch kernels may be isolated, must be, or must not.
    """

    def __init__(
        self, kernels: ServerKernels, starter: KernelStarter, sandbox: Sandbox, mode: IsolationMode
    ) -> None:
        self.mode = mode
        self._kernels = kernels
        self._starter = starter
        self._sandbox = sandbox

    def check_allowed(self, kernel_spec: Any) -> None:
        """Raise IsolationUnavailable if no kernel of this kernelspec may be isolated."""
        own = self._starter.own_provisioner(kernel_spec)
        if own is not None:
            raise IsolationUnavailable(
                f"target.isolated: the kernels {kernel_spec.display_name!r} are started by a "
                f"provisioner of their own ({own!r}), so this server cannot isolate them. Choose "
                "another target.kernel_name, or leave target.isolated out.",
                field="target.isolated",
                provisioner=own,
            )
        if self.mode == "off":
            raise IsolationUnavailable(
                "target.isolated: this server does not isolate kernels; its operator disabled "
                "isolation (isolation='off')."
            )

    def check_folder(self, folder: Path, kernel_spec: Any) -> None:
        """Check that a kernel may work in a folder and write to everything in it."""
        found = self._sandbox.found_in(folder, kernel_spec.argv[0])
        if found is not None:
            raise InvalidRequest(
                f"target.cwd: an isolated kernel may not work there, as it would reach {found}. "
                "Name another folder, or leave target.cwd out.",
                field="target.cwd",
            )

    async def start(
        self, start: Callable[[], Awaitable[str]], folder: Folder, env: Mapping[str, str]
    ) -> str:
        """Start a kernel that is isolated; return its id."""
        await self._sandbox.way()
        make = partial(self._provisioner, folder, tuple(env))
        kernel_id = await self._starter.start(start, make)
        if not isinstance(self._kernels.get_kernel(kernel_id).provisioner, IsolatedProvisioner):
            await self._kernels.shutdown_kernel(kernel_id, now=True)
            raise IsolationUnavailable(
                "This server's kernel manager starts kernels in its own way, without isolation."
            )
        return kernel_id

    def _provisioner(
        self,
        folder: Folder,
        env_names: Collection[str],
        kernel_id: str,
        kernel_spec: Any,
        parent: Any,
    ) -> IsolatedProvisioner:
        self.check_allowed(kernel_spec)  # the current settings, before anything starts
        return IsolatedProvisioner(
            kernel_id=kernel_id,
            kernel_spec=kernel_spec,
            parent=parent,
            folder=folder,
            sandbox=self._sandbox,
            env_names=env_names,
        )


class IsolationTraits(HasTraits):
    """The traits of isolated kernels."""

    isolation = Enum(
        ("allow", "off", "always"),
        "allow",
        config=True,
        help="""Which scratch kernels are isolated from the server, its network and files: only for
        sessions that request it (`allow`), none (`off`), or all (`always`). Linux only.""",
    )
    isolation_way = Enum(
        ("auto", *WAYS),
        "auto",
        config=True,
        help="""How kernels are isolated: with `bubblewrap`, with the same system calls but without
        bubblewrap (`unshare`), or with the first of them that works (`auto`).""",
    )
    isolated_memory_bytes = Int(
        _LIMITS.memory_bytes,
        min=0,
        config=True,
        help="""Bytes of address space for each process in an isolated kernel; 0: no limit. A
        process reserves more address space than it uses memory.""",
    )
    isolated_cpu_seconds = Int(
        _LIMITS.cpu_seconds,
        min=0,
        config=True,
        help="""Seconds of processor time for each process in an isolated kernel, over its whole
        life; 0: no limit.""",
    )
    isolated_processes = Int(
        _LIMITS.processes,
        min=0,
        config=True,
        help="""Processes and threads in an isolated kernel, all together; 0: no limit. If root runs
        the server and may make no control group, there may be up to 300 more.""",
    )
    isolated_disk_bytes = Int(
        _LIMITS.disk_bytes,
        min=0,
        config=True,
        help="""Bytes of each file that an isolated kernel writes, and of all files in each of its
        in-memory folders, `/tmp` and its home; 0: no limit for a file, 1 GiB for each in-memory
        folder.""",
    )
    isolated_readable = List(
        Unicode(),
        config=True,
        help="""Absolute paths of folders and files, such as data, that isolated kernels may read,
        besides the system's programs, Python and their kernelspec's files.""",
    )

    @validate("isolated_readable")
    def _check_readable(self, proposal: Bunch) -> list[str]:
        for path in proposal.value:
            if not Path(path).is_absolute():
                raise TraitError(f"isolated_readable: {path!r} is not an absolute path.")
        return cast(list[str], proposal.value)


class IsolationLeaf(Leaf):
    """Isolates scratch kernels from the server."""

    traits = IsolationTraits
    settings: IsolationTraits

    def isolation(
        self,
        kernels: ServerKernels,
        starter: KernelStarter,
        private: Collection[Path],
        root_dir: Path,
    ) -> KernelIsolation:
        """Return what isolates kernels, as configured."""
        settings = self.settings
        sandbox = Sandbox(
            IsolationLimits(
                memory_bytes=settings.isolated_memory_bytes,
                cpu_seconds=settings.isolated_cpu_seconds,
                processes=settings.isolated_processes,
                disk_bytes=settings.isolated_disk_bytes,
            ),
            private=private,
            root_dir=root_dir,
            readable=[Path(path) for path in settings.isolated_readable],
            ways=WAYS if settings.isolation_way == "auto" else [cast(Way, settings.isolation_way)],
        )
        return KernelIsolation(kernels, starter, sandbox, cast(IsolationMode, settings.isolation))
