"""Set the version in server.json, the entry for the MCP registry, to the package's."""

from __future__ import annotations

import json
from pathlib import Path

ROOT = Path(__file__).parents[1]


def main() -> None:
    """Write the file."""
    package = json.loads((ROOT / "labextension" / "package.json").read_text())
    file = ROOT / "server.json"
    entry = json.loads(file.read_text())
    for versioned in (entry, *entry["packages"]):
        versioned["version"] = package["version"]
    file.write_text(json.dumps(entry, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
