"""A kernel that takes half a second from being busy to heeding interrupts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sessions.kernelspecs import install_kernel

SLOW_TO_HEED = """
import time
from ipykernel.ipkernel import IPythonKernel
from ipykernel.kernelapp import IPKernelApp

class SlowToHeed(IPythonKernel):
    def pre_handler_hook(self):
        if "while True" in self.get_parent()["content"].get("code", ""):
            time.sleep(0.5)
        super().pre_handler_hook()

IPKernelApp.launch_instance(kernel_class=SlowToHeed)
"""


@pytest.fixture
def slow_kernel(jp_data_dir: Path) -> str:
    """Install the kernel; return its name."""
    return install_kernel(jp_data_dir, "slow", "-c", SLOW_TO_HEED).name
