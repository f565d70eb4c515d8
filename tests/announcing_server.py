"""A Jupyter server in a process of its own that says on standard output when it listens."""

from __future__ import annotations

import json
import sys

from jupyter_client.provisioning import local_provisioner
from jupyter_server.serverapp import ServerApp
from traitlets import Unicode

from tests.forks import KernelForks


class AnnouncingServer(ServerApp):
    kernel_forks = Unicode(
        None,
        config=True,
        allow_none=True,
        help="Address of a process that forks kernels; None to start each with its imports.",
    )

    def start_app(self) -> None:
        if self.kernel_forks is not None:
            forks = KernelForks(address=self.kernel_forks)
            local_provisioner.launch_kernel = forks.launcher(local_provisioner.launch_kernel)
        super().start_app()
        # The loop's first deed is to listen; ours comes after it.
        self.io_loop.add_callback(self._announce)

    def _announce(self) -> None:
        if not self.port:  # older versions do not say which port they chose
            self.port = next(iter(self.http_server._sockets.values())).getsockname()[1]
            self.write_server_info_file()
        sys.stdout.write(json.dumps({"url": self.connection_url}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    app = AnnouncingServer.instance()
    app.initialize(find_extensions=False)
    app.start()
