"""Write the OpenAPI document of all routes, from which the lab extension's types are generated.

`python scripts/openapi_document.py FILE` writes FILE; without FILE, it prints the document. The
server's address and the package's version are left out, so that the document changes only when a
route or a model does.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from jupyter_agent_exec.app import AgentExecApp
from jupyter_agent_exec.auth.openapi import document


def main() -> None:
    """Write the document."""
    described = document(AgentExecApp.routes, version="0", base_path="/")
    text = json.dumps(described, indent=2) + "\n"
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(text)
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
