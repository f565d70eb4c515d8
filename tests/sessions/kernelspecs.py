"""Install kernels of a test's own."""

from __future__ import annotations

import json
import sys
from pathlib import Path


def install_kernel(data_dir: Path, name: str, *arguments: str, language: str = "python") -> Path:
    """Install a kernel that Python starts with these arguments; return its folder."""
    folder = data_dir / "kernels" / name
    folder.mkdir(parents=True)
    argv = [sys.executable, *arguments, "-f", "{connection_file}"]
    spec = {"argv": argv, "display_name": name.title(), "language": language}
    (folder / "kernel.json").write_text(json.dumps(spec))
    return folder
