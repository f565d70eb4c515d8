"""What an adapter says when its framework is not installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def needed(*requirements: str) -> Iterator[None]:
    """Import, within the block, from a framework.

    Parameters
    ----------
    requirements
        What to install, each as pip takes it: the framework, and what it needs and does not say.

    Raises
    ------
    ImportError
        It is not installed; the message says what to do.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        packages = " ".join(repr(each) for each in requirements)
        raise ImportError(
            f"This adapter needs {packages}, and {error.name!r} is not installed: "
            f"pip install {packages}"
        ) from error
