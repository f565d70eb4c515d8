"""Build dist/jupyter-agent-exec-<version>.mcpb, the bundle for desktop clients of MCP.

The version and the tools are taken from the package. The same version gives the same bytes.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from jupyter_agent_exec import __version__
from jupyter_agent_exec.mcp.sdk_server import TOOLS

ROOT = Path(__file__).parents[1]

PYPROJECT = f"""\
[project]
name = "jupyter-agent-exec-bundle"
version = "{__version__}"
requires-python = ">=3.11"
dependencies = ["jupyter-agent-exec[mcp]=={__version__}"]
"""


def bundled() -> dict[str, str]:
    """Return the files of the bundle, by name."""
    manifest = json.loads((ROOT / "mcpb" / "manifest.json").read_text())
    manifest["version"] = __version__
    manifest["tools"] = [
        {"name": tool.name, "description": tool.description.partition(". ")[0].rstrip(".")}
        for tool in TOOLS
    ]
    return {
        "manifest.json": json.dumps(manifest, indent=2, ensure_ascii=False) + "\n",
        "pyproject.toml": PYPROJECT,
        "server.py": (ROOT / "mcpb" / "server.py").read_text(),
    }


def build(folder: Path) -> Path:
    """Write the bundle into a folder, and return its path."""
    folder.mkdir(exist_ok=True)
    path = folder / f"jupyter-agent-exec-{__version__}.mcpb"
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        for name, text in bundled().items():
            archive.writestr(ZipInfo(name), text, ZIP_DEFLATED)  # ZipInfo: of a fixed date
    return path


if __name__ == "__main__":
    print(build(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "dist"))
