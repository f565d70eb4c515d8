"""The Jupyter server that the browser tests look at.

Never use this elsewhere: it has no authentication, and gives the page access to JupyterLab's
objects.
"""

import atexit
import os
from pathlib import Path
from tempfile import TemporaryDirectory

from jupyterlab.galata import configure_jupyter_server

c = get_config()  # noqa: F821
folder = TemporaryDirectory(prefix="agent-exec-ui-")
atexit.register(folder.cleanup)
root = Path(folder.name)
(root / "served").mkdir()
os.environ.setdefault("JUPYTERLAB_GALATA_ROOT_DIR", str(root / "served"))
configure_jupyter_server(c)

c.ServerApp.ip = "127.0.0.1"
c.ServerApp.port = int(os.environ["AGENT_EXEC_UI_PORT"])
c.ServerApp.allow_root = hasattr(os, "geteuid") and os.geteuid() == 0
c.LabApp.workspaces_dir = str(root / "workspaces")
c.AgentExecApp.history_dir = str(root / "history")
# Small, so that a test can reach it.
c.AgentExecApp.max_output_bytes = 100_000
