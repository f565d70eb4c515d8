"""Kernels on other machines, and servers that have kernelspecs for them."""

from __future__ import annotations

import getpass
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.kernels.far_provisioner import FAR_ADDRESS, LOST
from tests.ports import free_port
from tests.real_server import environment
from tests.server_process import ServerProcess, server_process

SSHD = Path("/usr/sbin/sshd")


@contextmanager
def other_address(folder: Path) -> Iterator[ServerProcess]:
    """Start a server whose kernels `far` have a provisioner of these tests."""
    package = folder / "packages" / "far-1.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: far\nVersion: 1\n")
    (package / "entry_points.txt").write_text(
        "[jupyter_client.kernel_provisioners]\n"
        "far-provisioner = tests.kernels.far_provisioner:FarProvisioner\n"
    )
    kernelspec = {
        "argv": [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": "Python far away",
        "language": "python",
        "metadata": {"kernel_provisioner": {"provisioner_name": "far-provisioner"}},
    }
    path = folder / "data" / "kernels" / "far" / "kernel.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(kernelspec))
    (folder / "lost").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(package.parent), prepend=os.pathsep)
        patch.setenv(LOST, str(folder / "lost"))
        with server_process(folder) as server:
            yield server


@contextmanager
def over_ssh(folder: Path) -> Iterator[ServerProcess]:
    """Start a server whose kernels `far` are started over SSH."""
    if not SSHD.exists():
        pytest.skip("there is no sshd here: make .make/far-sides")
    command = [sys.executable, "-m", "gateway_provisioners.cli.ssh_specapp", "install", "--user"]
    install = [*command, "--kernel-name=far", f"--remote-hosts={FAR_ADDRESS}"]
    subprocess.run(install, env=environment(folder), check=True)
    path = folder / "data" / "kernels" / "far" / "kernel.json"
    kernelspec = json.loads(path.read_text())
    kernelspec["argv"][0] = sys.executable  # there is no other machine with a Python of its own
    kernelspec["env"]["IPYTHONDIR"] = str(folder / "ipython")
    path.write_text(json.dumps(kernelspec))
    home = folder / "home"
    with ssh_server(folder, home) as port, pytest.MonkeyPatch.context() as patch:
        for name, value in {
            "HOME": str(home),
            "GP_REMOTE_USER": getpass.getuser(),
            "GP_SSH_PORT": str(port),
            "GP_RESPONSE_IP": "127.0.0.1",
            "GP_RESPONSE_PORT": str(free_port()),
            "GP_UNAUTHORIZED_USERS": "nobody",
            "GP_KERNEL_LOG_DIR": str(folder),
            "GP_POLL_INTERVAL": "0.1",
        }.items():
            patch.setenv(name, value)
        with server_process(folder) as server:
            yield server


@contextmanager
def ssh_server(folder: Path, home: Path) -> Iterator[int]:
    """Start an SSH server that lets the owner of a home folder in; yield its port."""
    keys = home / ".ssh"
    keys.mkdir(parents=True, mode=0o700)
    for key in (folder / "host_key", keys / "id_ed25519"):
        make = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)]
        subprocess.run(make, check=True)
    port = free_port()
    config = folder / "sshd_config"
    config.write_text(
        f"Port {port}\nListenAddress {FAR_ADDRESS}\nHostKey {folder / 'host_key'}\n"
        f"AuthorizedKeysFile {keys / 'id_ed25519.pub'}\nStrictModes no\nUsePAM no\nPidFile none\n"
    )
    host_key = " ".join((folder / "host_key.pub").read_text().split()[:2])
    (keys / "known_hosts").write_text(f"[{FAR_ADDRESS}]:{port} {host_key}\n")
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)  # as its own start script does
    server = subprocess.Popen(
        [str(SSHD), "-D", "-e", "-f", str(config)], stderr=subprocess.PIPE, text=True
    )
    try:
        assert server.stderr is not None
        assert any("Server listening" in line for line in server.stderr), "sshd did not start"
        with subprocess.Popen(["cat"], stdin=server.stderr, stdout=sys.stderr):
            yield port
            server.terminate()
    finally:
        server.kill()
        server.wait()
        if server.stderr is not None:
            server.stderr.close()


def processes(kernel_id: str) -> list[Any]:
    """Return the running processes of a kernel, wherever they came from."""
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        command = " ".join(process.info["cmdline"] or [])
        if kernel_id in command and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(process)
    return found
