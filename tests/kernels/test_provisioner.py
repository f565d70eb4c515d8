"""How a kernel's command is run, and by our launcher."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from jupyter_server.services.kernels.kernelmanager import AsyncMappingKernelManager

from jupyter_agent_exec.kernels.provisioner import (
    LAUNCHER,
    FolderProvisioner,
    KernelStarter,
    with_folder_last,
)

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


async def test_a_kernel_whose_start_is_given_up_can_be_shut_down() -> None:
    kernels = AsyncMappingKernelManager()
    starter = KernelStarter(kernels)
    make = partial(FolderProvisioner, None)
    start = asyncio.create_task(starter.start(kernels.start_kernel, make))
    for _ in range(5):
        await asyncio.sleep(0)  # until it is under way
    start.cancel()
    await asyncio.wait({start})
    assert start.cancelled()
    assert len(kernels) == 1
    await kernels.shutdown_all()
    assert len(kernels) == 0
