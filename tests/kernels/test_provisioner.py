"""How a kernel's command is run, and by our launcher."""

from __future__ import annotations

import asyncio
import gc
import json
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from jupyter_client.provisioning import LocalProvisioner
from jupyter_server.services.kernels.kernelmanager import AsyncMappingKernelManager

from jupyter_agent_exec.errors import IsolationUnavailable
from jupyter_agent_exec.kernels.provisioner import (
    LAUNCHER,
    FolderProvisioner,
    folder_provisioner,
    with_folder_last,
)
from jupyter_agent_exec.kernels.server_kernels import KernelStarter
from tests.isolation.isolation_server import prefix_of

FILE = ("-f", "{connection_file}")


@pytest.mark.parametrize(
    ("command", "becomes"),
    [
        ("python -m ipykernel_launcher", "python LAUNCHER ipykernel_launcher"),
        ("/env/bin/python3.9 -m bash_kernel", "/env/bin/python3.9 LAUNCHER bash_kernel"),
        ("python -Xfrozen_modules=off -m a", "python -Xfrozen_modules=off LAUNCHER a"),
        ("python -X a=b -W ignore -m a", "python -X a=b -W ignore LAUNCHER a"),
        ("conda run -n env python -m a -m b", "conda run -n env python LAUNCHER a -m b"),
        ("env A=1 pypy3 -m a", "env A=1 pypy3 LAUNCHER a"),
        ("python program.py -m a", "python program.py -m a"),
        ("python -c pass -m a", "python -c pass -m a"),
        ("R --slave -e IRkernel::main()", "R --slave -e IRkernel::main()"),
        ("bash -m", "bash -m"),
    ],
)
def test_a_module_that_python_runs_is_run_by_the_launcher(command: str, becomes: str) -> None:
    ran = with_folder_last([*command.split(), *FILE], "LAUNCHER")
    assert ran == [*becomes.split(), *FILE]


def test_the_launcher_runs_any_module_with_its_arguments(tmp_path: Path) -> None:
    for name in ("json", "argparse", "runpy", "os"):
        (tmp_path / f"{name}.py").write_text("print('planted')")
    (tmp_path / "kernel.py").write_text(
        "import json, sys; print(json.dumps([__name__, sys.argv[1:], sys.path[-1]]))"
    )
    ran = subprocess.run(
        [sys.executable, str(LAUNCHER), "kernel", "-f", "file"],
        cwd=tmp_path,
        env={"PYTHONPATH": f"{tmp_path}:"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout == '["__main__", ["-f", "file"], ""]\n'


def test_a_kernel_that_is_interrupted_while_it_imports_goes_on(tmp_path: Path) -> None:
    (tmp_path / "IPython.py").write_text(
        "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nos.write(1, b'on'); os._exit(0)"
    )
    ran = subprocess.run(
        [sys.executable, str(LAUNCHER), "ipykernel_launcher"],
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert (ran.stdout, ran.stderr) == ("on", "")


async def test_a_kernel_whose_start_is_given_up_can_be_shut_down() -> None:
    kernels = AsyncMappingKernelManager()
    starter = KernelStarter(kernels)
    make = partial(folder_provisioner, None)
    start = asyncio.create_task(starter.start(kernels.start_kernel, make))
    for _ in range(5):
        await asyncio.sleep(0)  # until it is under way
    start.cancel()
    await asyncio.wait({start})
    assert start.cancelled()
    assert len(kernels) == 1
    await kernels.shutdown_all()
    assert len(kernels) == 0


async def test_a_start_that_fails_after_it_was_given_up_leaves_no_error_unread() -> None:
    under_way, fail = asyncio.Event(), asyncio.Event()
    unread: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unread.append(context))

    async def start_kernel() -> str:
        under_way.set()
        await fail.wait()
        raise OSError("no such program")

    starter = KernelStarter(AsyncMappingKernelManager())
    start = asyncio.create_task(starter.start(start_kernel, partial(folder_provisioner, None)))
    await under_way.wait()
    start.cancel()
    fail.set()
    with pytest.raises(asyncio.CancelledError):
        await start
    del start
    await asyncio.sleep(0)  # until nobody holds it
    gc.collect()
    assert unread == []


async def test_only_kernels_that_a_session_starts_have_a_provisioner_of_ours() -> None:
    kernels = AsyncMappingKernelManager()
    starter = KernelStarter(kernels)
    agents = await starter.start(kernels.start_kernel, partial(folder_provisioner, None))
    persons = await kernels.start_kernel()
    try:
        assert type(kernels.get_kernel(agents).provisioner) is FolderProvisioner
        assert type(kernels.get_kernel(persons).provisioner) is LocalProvisioner
    finally:
        await kernels.shutdown_all(now=True)


async def test_any_application_isolates_kernels_whose_kernelspec_says_so(tmp_path: Path) -> None:
    prefix_of("unshare")
    (tmp_path / "work").mkdir()
    (tmp_path / "secret").write_text("secret")
    manager = AsyncKernelManager(kernel_name="apart", kernel_spec_manager=specs(tmp_path))
    await manager.start_kernel(cwd=str(tmp_path / "work"))
    client = manager.client()
    client.start_channels()
    try:
        await client.wait_for_ready(timeout=60)
        source = (
            "import json, os, resource\n"
            "limit = resource.getrlimit(resource.RLIMIT_CPU)[0]\n"
            "seen = os.path.exists('../secret')\n"
            "print(json.dumps([os.getcwd(), seen, limit, os.environ.get('GIVEN')]))\n"
        )
        printed: list[str] = []
        await client.execute_interactive(
            source,
            timeout=60,
            output_hook=lambda message: printed.append(message["content"].get("text", "")),
        )
        assert json.loads("".join(printed)) == [str(tmp_path / "work"), False, 77, "yes"]
    finally:
        client.stop_channels()
        await manager.shutdown_kernel(now=True)


async def test_an_isolated_kernel_works_in_no_private_folder(
    tmp_path: Path,
) -> None:
    manager = AsyncKernelManager(kernel_name="apart", kernel_spec_manager=specs(tmp_path))
    for _ in range(2):  # it is not tried in that folder after it was refused
        with pytest.raises(IsolationUnavailable, match="the account's home folder"):
            await manager.start_kernel(cwd=str(Path.home()))


async def test_a_kernel_that_cannot_be_isolated_leaves_no_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("work", "temporary"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.setenv("PATH", str(tmp_path))
    found = specs(tmp_path, way="bubblewrap")
    manager = AsyncKernelManager(kernel_name="apart", kernel_spec_manager=found)
    with pytest.raises(IsolationUnavailable, match="bubblewrap"):
        await manager.start_kernel(cwd=str(tmp_path / "work"))
    assert list((tmp_path / "temporary").iterdir()) == []


def specs(folder: Path, way: str = "unshare") -> KernelSpecManager:
    """Return a kernelspec manager that knows one, whose kernels are isolated."""
    spec = {
        "argv": [sys.executable, "-m", "ipykernel_launcher", *FILE],
        "display_name": "Apart",
        "language": "python",
        "env": {"GIVEN": "yes"},
        "metadata": {
            "kernel_provisioner": {
                "provisioner_name": "isolated-provisioner",
                "config": {"cpu_seconds": 77, "way": way, "processes": 0},
            }
        },
    }
    (folder / "kernels" / "apart").mkdir(parents=True)
    (folder / "kernels" / "apart" / "kernel.json").write_text(json.dumps(spec))
    return KernelSpecManager(kernel_dirs=[str(folder / "kernels")])
