"""Error messages for a framework that is missing or has an unsupported version."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version

from packaging.requirements import Requirement


@contextmanager
def needed(*requirements: str) -> Iterator[None]:
    """Import from a framework in a ``with`` block.

    Parameters
    ----------
    requirements
        Requirements for pip with supported versions: the framework, and dependencies that it does
        not declare.

    Raises
    ------
    ImportError
        The framework is missing or has an unsupported version. The message says what to install.
    """
    advice = f"pip install {' '.join(repr(each) for each in requirements)}"
    for requirement in map(Requirement, requirements):
        try:
            installed = version(requirement.name)
        except PackageNotFoundError:
            continue  # another distribution may have these modules; else the import fails
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
