"""What AutoGen's client runs to set up a session, as it can be run here. Pure."""

from __future__ import annotations

from pathlib import Path
from typing import Final

_GO_TO_FOLDER: Final = "import os; os.chdir('/mnt/data')"

_PACKAGES: Final = "import pkg_resources\n[d.project_name for d in pkg_resources.working_set]"

_PACKAGES_HERE: Final = (
    "import importlib.metadata\n"
    "sorted({d.metadata['Name'] for d in importlib.metadata.distributions()} - {None})"
)
"""`pkg_resources` is not everywhere, and where it is, its warnings stand before the list."""


def as_run_here(source: str, folder: Path | None) -> str:
    """Return the source to run: what is known to be the client's own, in words that work here.

    Parameters
    ----------
    folder
        The session's, which Azure has at ``/mnt/data``.
    """
    asked = source.strip()
    if asked == _PACKAGES:
        return _PACKAGES_HERE
    if asked == _GO_TO_FOLDER and folder is not None:
        return f"import os; os.chdir({str(folder)!r})"
    return source
