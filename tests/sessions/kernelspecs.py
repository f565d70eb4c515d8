"""Install kernels of a test's own."""

from __future__ import annotations

import json
import sys
from importlib.metadata import EntryPoint, version
from pathlib import Path

import pytest
from jupyter_client.provisioning.factory import KernelProvisionerFactory
from jupyter_client.provisioning.local_provisioner import LocalProvisioner

needs_ipykernel_7 = pytest.mark.skipif(
    int(version("ipykernel").partition(".")[0]) < 7,
    reason="ipykernel 6 answers nothing while code runs, and misses errors of what shows a value",
)

COUNTS = """
import pathlib, sys
starts = pathlib.Path(sys.argv[1])
starts.write_text(starts.read_text() + "x" if starts.exists() else "x")
if len(starts.read_text()) <= int(sys.argv[2]):
    sys.exit("Address already in use")
sys.argv[1:] = sys.argv[3:]
from ipykernel.kernelapp import launch_new_instance
launch_new_instance()
"""


def install_kernel(
    data_dir: Path,
    name: str,
    *arguments: str,
    language: str = "python",
    executable: Path | str = sys.executable,
) -> Path:
    """Install a kernel that Python starts with these arguments; return its folder."""
    folder = data_dir / "kernels" / name
    folder.mkdir(parents=True)
    argv = [str(executable), *arguments, "-f", "{connection_file}"]
    spec = {"argv": argv, "display_name": name.title(), "language": language}
    (folder / "kernel.json").write_text(json.dumps(spec))
    return folder


def install_ending_kernel(data_dir: Path, fails: int) -> Path:
    """Install a kernel, `ends`, that ends so many times as it starts; return where it counts."""
    starts = data_dir / "starts"
    install_kernel(data_dir, "ends", "-c", COUNTS, str(starts), str(fails))
    return starts


class OtherProvisioner(LocalProvisioner):
    """Starts kernels as Jupyter does, but is not Jupyter's."""


def install_kernel_with_provisioner(data_dir: Path, name: str) -> None:
    """Install a kernel with a provisioner of its own, `other`."""
    folder = install_kernel(data_dir, name, "-m", "ipykernel_launcher")
    spec = json.loads((folder / "kernel.json").read_text())
    spec["metadata"] = {"kernel_provisioner": {"provisioner_name": "other"}}
    (folder / "kernel.json").write_text(json.dumps(spec))
    KernelProvisionerFactory.provisioners["other"] = EntryPoint(
        "other", f"{__name__}:{OtherProvisioner.__name__}", KernelProvisionerFactory.GROUP_NAME
    )
