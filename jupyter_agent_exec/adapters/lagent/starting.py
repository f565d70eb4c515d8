"""What runs first in a kernel of the interpreter's own."""

from __future__ import annotations

import os
from typing import Final

from ...client import AsyncSession
from ...errors import KernelNotOwned
from ..kernel_session import KernelSession, SessionOptions, SessionTarget

START_CODE: Final = """
def input(*args, **kwargs):
    raise NotImplementedError("Python input() function is disabled.")

get_ipython().system = lambda *args: print("Assume we have this package, ! is disabled!")
{}
"""
"""Where the braces are, the code goes that changes the folder."""


def folder_code(user_data_dir: str) -> str:
    """Return code that goes to the parent folder of the user's data; none if there is none.

    Parameters
    ----------
    user_data_dir
        Where the kernel runs; ``ENV`` for what ``USER_DATA_DIR`` says.
    """
    if user_data_dir == "ENV":
        user_data_dir = os.environ.get("USER_DATA_DIR", "")
    folder = os.path.dirname(user_data_dir)
    return f"import os\nos.chdir({folder!r})" if folder else ""


def workplace(where: SessionTarget, agent: str | None, change_folder: str) -> KernelSession:
    """Return where an interpreter's code runs.

    A kernel of a person's is left as it is: only our own starts with `START_CODE`.
    """
    init_source = START_CODE.format(change_folder) if where.is_scratch else None
    return KernelSession(where, SessionOptions(agent=agent or "lagent", init_source=init_source))


def reset_source(place: KernelSession, change_folder: str) -> str:
    """Return code that forgets all variables and starts anew.

    Raises
    ------
    KernelNotOwned
        They are a person's.
    """
    if not place.where.is_scratch:
        raise KernelNotOwned(
            "The kernel is a person's, with their variables: it is not reset. "
            "Delete by name what your code has made."
        )
    reset = "get_ipython().run_line_magic('reset', '-f')\n"
    return reset + START_CODE.format(change_folder)


async def restarted(session: AsyncSession) -> None:
    """Get a fresh kernel, which starts with `START_CODE` too."""
    await session.restart()
