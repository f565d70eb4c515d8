"""A kernel whose messages are right for its protocol, and not what ipykernel sends."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sessions.kernelspecs import install_kernel

ODD = """
from ipykernel.kernelapp import IPKernelApp
from ipykernel.kernelbase import Kernel

class Odd(Kernel):
    implementation = "odd"
    implementation_version = banner = "1"
    language_info = {"name": "odd", "mimetype": "text/plain", "file_extension": ".odd"}

    def do_execute(self, code, silent, store_history=True, user_expressions=None, **options):
        counted = {"execution_count": self.execution_count}
        if code == "fail":
            told = {"ename": "OddError", "evalue": "why", "traceback": ["line 1"]}
            return {"status": "error", **told, **counted}
        if code == "nameless":
            return {"status": "error", **counted}
        self.send_response(self.iopub_socket, "stream", {"name": "stdout", "text": ["a", "b\\n"]})
        return {"status": "ok", "payload": [], "user_expressions": {}, **counted}

IPKernelApp.launch_instance(kernel_class=Odd)
"""


@pytest.fixture
def odd_kernel(jp_data_dir: Path) -> str:
    """Install the kernel; return its name."""
    return install_kernel(jp_data_dir, "odd", "-c", ODD, language="odd").name
