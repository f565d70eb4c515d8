"""Nested executions: a cell waits for code in its own kernel.

The code cannot wait for its turn, since the cell would never end. A subshell runs it beside the
cell, in the same namespace, where the kernel has subshells (ipykernel 7); else it is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from ..errors import KernelUnavailable, KernelWaitsForItself
from .inspection import Unanswered
from .kernel import Kernel

ADVICE: Final = (
    "Leave out notebook= and kernel_id= to run it in a kernel of its own, or run your program "
    "outside of this kernel, such as in a terminal."
)
AT_AGENTS_CODE: Final = (
    "The program that asks runs in this kernel itself, and the kernel runs or is about to run an "
    f"agent's code: each would wait for the other. {ADVICE}"
)
NO_SUBSHELLS: Final = (
    "The program that asks runs in this kernel itself, and the kernel runs a cell: if the cell "
    "waits for the program, each would wait for the other. With ipykernel 7 or newer in the kernel "
    f"it can run beside the cell. {ADVICE}"
)


async def is_nested(kernel: Kernel, host_kernels: Mapping[str, str]) -> bool:
    """Tell whether what a program asks to run would wait for the program itself.

    Parameters
    ----------
    host_kernels
        What the program shows of the kernels in which it runs (`jupyter_agent_exec.host_kernel`).

    Raises
    ------
    KernelWaitsForItself
        It would, and cannot run beside it.
    """
    connection = kernel.connection
    if not connection.is_host(host_kernels.get(kernel.id)):
        return False
    if connection.quiet is not None:
        with suppress(Unanswered, KernelUnavailable):  # the start of its cell may not be heard yet
            await connection.inspector.catch_up()
    if connection.quiet is not None:
        return False
    if kernel.owned or not kernel.turns.admits_nested:
        raise KernelWaitsForItself(AT_AGENTS_CODE, kernel_id=kernel.id)
    await subshell_of(kernel)
    return True


async def subshell_of(kernel: Kernel) -> str:
    """Return the subshell for nested executions.

    Raises
    ------
    KernelWaitsForItself
        The kernel has no subshells.
    """
    try:
        return await kernel.connection.inspector.nested_subshell()
    except Unanswered:
        raise KernelWaitsForItself(NO_SUBSHELLS, kernel_id=kernel.id) from None
