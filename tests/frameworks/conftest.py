from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_agent_exec.adapters.own_servers import OWN_SERVERS

# A shell that starts the tests in the background has them ignore it, and tests send it.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def jupyter_folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Have Jupyter's own folders apart from the user's, for whatever is started here."""
    folder = tmp_path_factory.mktemp("jupyter")
    with pytest.MonkeyPatch.context() as environ:
        for name in [each for each in os.environ if each.startswith(("JUPYTER", "JPY_"))]:
            environ.delenv(name)
        for name in ("CONFIG", "DATA", "RUNTIME"):
            environ.setenv(f"JUPYTER_{name}_DIR", str(folder / name.lower()))
        environ.setenv("IPYTHONDIR", str(folder / "ipython"))
        yield


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory, jupyter_folders: None) -> Iterator[Path]:
    """The current folder, with one server for all that is started in it."""
    before, made = Path.cwd(), tmp_path_factory.mktemp("work")
    os.chdir(made)
    OWN_SERVERS.acquire(made)
    yield made
    OWN_SERVERS.release(made)
    os.chdir(before)
