"""A provisioner whose kernels are no processes that anybody else can see: not even their ids."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

from jupyter_client.connect import KernelConnectionInfo, write_connection_file
from jupyter_client.provisioning import KernelProvisionerBase

FAR_ADDRESS = "127.0.0.2"

LOST = "LOST_KERNELS"
"""Environment variable: a folder. A kernel with a file of its id there has ended, this says."""


class FarProvisioner(KernelProvisionerBase):
    """Starts kernels at another address, with connection information of their own."""

    _hidden: subprocess.Popen[bytes] | None = None

    @property
    def has_process(self) -> bool:
        return self._hidden is not None

    async def poll(self) -> int | None:
        if self._hidden is None or (Path(os.environ[LOST]) / self.kernel_id).exists():
            return 0
        return None if self._hidden.poll() is None else 0

    async def wait(self) -> int | None:
        return 0  # as one that gave up waiting

    async def send_signal(self, signum: int) -> None:
        if self._hidden is not None:
            self._hidden.send_signal(signum)

    async def kill(self, restart: bool = False) -> None:
        if self._hidden is not None:
            self._hidden.kill()
            await asyncio.to_thread(self._hidden.wait)
            self._hidden = None

    async def terminate(self, restart: bool = False) -> None:
        await self.send_signal(signal.SIGTERM)

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        folder = Path(self.parent.connection_file).parent
        file = folder / f"far-{self.kernel_id}.json"
        _, told = write_connection_file(str(file), ip=FAR_ADDRESS)
        self.connection_info = {**told, "key": told["key"].encode()}
        argv = [part.replace("{connection_file}", str(file)) for part in self.kernel_spec.argv]
        return await super().pre_launch(cmd=argv, **kwargs)

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> KernelConnectionInfo:
        start = partial(subprocess.Popen, env=kwargs["env"], start_new_session=True)
        self._hidden = await asyncio.to_thread(start, cmd)
        return self.connection_info

    async def cleanup(self, restart: bool = False) -> None:
        pass
