"""Copy the version in labextension/package.json to the files that repeat it.

They are server.json, the entry for the MCP registry, and the conda recipe.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]


def formatted(document: dict[str, Any]) -> str:
    """Return a document as JSON, as prettier formats such files."""
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def main() -> None:
    """Write the files."""
    file = ROOT / "labextension" / "package.json"
    package = json.loads(file.read_text())
    file.write_text(formatted(package))  # hatch indents it in another way than prettier
    version = package["version"]
    server = ROOT / "server.json"
    entry = json.loads(server.read_text())
    for versioned in (entry, *entry["packages"]):
        versioned["version"] = version
    server.write_text(formatted(entry))
    recipe = ROOT / "conda-recipe" / "recipe.yaml"
    text = re.sub(r'^  version: ".*"$', f'  version: "{version}"', recipe.read_text(), flags=re.M)
    recipe.write_text(text)


if __name__ == "__main__":
    main()
