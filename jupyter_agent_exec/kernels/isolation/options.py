"""What an operator decides about isolated kernels."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import cast

from traitlets import Bunch, Enum, HasTraits, Int, List, TraitError, Unicode, validate

from ...types import IsolationMode
from ..provisioner import KernelStarter
from ..server_kernels import ServerKernels
from .isolation import WAYS, Isolation
from .ways import IsolationLimits, Way


class IsolationTraits(HasTraits):
    """The traits of isolated kernels."""

    isolation = Enum(
        ("allow", "off", "always"),
        "allow",
        config=True,
        help="""Which scratch kernels are isolated from the server, its network and files: those of
        sessions that ask for it (`allow`), none (`off`), or all (`always`). Linux only.""",
    )
    isolation_way = Enum(
        ("auto", *WAYS),
        "auto",
        config=True,
        help="""How kernels are isolated: by `bubblewrap`, by the same system calls without it
        (`unshare`), or by the first of them that works (`auto`).""",
    )
    isolated_memory_bytes = Int(
        8 << 30,
        min=0,
        config=True,
        help="""Bytes of address space for each process in an isolated kernel, more than it uses of
        memory; 0: any.""",
    )
    isolated_cpu_seconds = Int(
        3600,
        min=0,
        config=True,
        help="""Seconds of processor time for each process in an isolated kernel, in all its life;
        0: any.""",
    )
    isolated_processes = Int(
        512,
        min=0,
        config=True,
        help="Processes and threads in an isolated kernel, all together; 0: any.",
    )
    isolated_disk_bytes = Int(
        1 << 30,
        min=0,
        config=True,
        help="""Bytes of each file that an isolated kernel writes, and of all in each of its folders
        in memory, `/tmp` and its home; 0: any, and 1 GiB in memory.""",
    )
    isolated_readable = List(
        Unicode(),
        config=True,
        help="""Absolute paths of folders and files, such as data, that isolated kernels may read
        beside the system's programs, Python and their kernelspec's.""",
    )

    @validate("isolated_readable")
    def _check_readable(self, proposal: Bunch) -> list[str]:
        for path in proposal.value:
            if not Path(path).is_absolute():
                raise TraitError(f"isolated_readable: {path!r} is not an absolute path.")
        return cast(list[str], proposal.value)

    def make_isolation(
        self,
        kernels: ServerKernels,
        starter: KernelStarter,
        private: Collection[Path],
        root_dir: str,
    ) -> Isolation:
        """Return what isolates kernels, as the operator decided."""
        return Isolation(
            kernels,
            starter,
            mode=cast(IsolationMode, self.isolation),
            limits=IsolationLimits(
                memory_bytes=self.isolated_memory_bytes,
                cpu_seconds=self.isolated_cpu_seconds,
                processes=self.isolated_processes,
                disk_bytes=self.isolated_disk_bytes,
            ),
            private=private,
            root_dir=Path(root_dir),
            readable=[Path(path) for path in self.isolated_readable],
            ways=WAYS if self.isolation_way == "auto" else [cast(Way, self.isolation_way)],
        )
