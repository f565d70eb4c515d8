"""What an adapter says when its framework is missing, or a version that it cannot work with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version

from packaging.requirements import Requirement


@contextmanager
def needed(*requirements: str) -> Iterator[None]:
    """Import, within the block, from a framework.

    Parameters
    ----------
    requirements
        What to install, each as pip takes it, with the versions that work: the framework, and what
        it needs and does not say.

    Raises
    ------
    ImportError
        It is not installed, or another version of it; the message says what to do.
    """
    advice = f"pip install {' '.join(repr(each) for each in requirements)}"
    for requirement in map(Requirement, requirements):
        try:
            installed = version(requirement.name)
        except PackageNotFoundError:
            continue  # another distribution may bring the same modules; else the import says so
        if not requirement.specifier.contains(installed, prereleases=True):
            raise ImportError(
                f"This adapter works with {requirement}, and {requirement.name} {installed} is "
                f"installed: {advice}"
            )
    packages = " ".join(repr(each) for each in requirements)
    try:
        yield
    except ModuleNotFoundError as error:
        raise ImportError(
            f"This adapter needs {packages}, and {error.name!r} is not installed: {advice}"
        ) from error
    except ImportError as error:
        raise ImportError(
            f"This adapter works with {packages}, and something else is installed ({error}): "
            f"{advice}"
        ) from error
