"""The Jupyter servers that the browser tests look at: without and with collaboration.

`AGENT_EXEC_UI_COLLABORATION` is `off`, `on`, or `documents`: through jupyter-server-documents.

Never use this elsewhere: without a token it has no authentication, and it gives the page access to
JupyterLab's objects.
"""

import atexit
import json
import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from jupyter_client.provisioning import local_provisioner
from jupyter_server.auth import passwd
from jupyterlab.galata import configure_jupyter_server

c = get_config()  # noqa: F821
collaboration = os.environ["AGENT_EXEC_UI_COLLABORATION"]
if "AGENT_EXEC_UI_FOLDER" in os.environ:  # of a test that starts a server more than once
    root = Path(os.environ["AGENT_EXEC_UI_FOLDER"])
else:
    folder = TemporaryDirectory(prefix="agent-exec-ui-")
    atexit.register(folder.cleanup)
    root = Path(folder.name)
    if "AGENT_EXEC_UI_JUPYTER_LAB" not in os.environ:
        # Its kernels share their imports, which are most of what starting them costs.
        sys.path.append(str(Path(__file__).parents[1]))
        from tests.forks import KernelForks

        forks = KernelForks()
        atexit.register(forks.stop)
        local_provisioner.launch_kernel = forks.launcher(local_provisioner.launch_kernel)
        c.AgentExecApp.warm_kernels = 0
(root / "served").mkdir(exist_ok=True)
os.environ["JUPYTERLAB_GALATA_ROOT_DIR"] = str(root / "served")
configure_jupyter_server(c)

c.ServerApp.ip = "127.0.0.1"
c.ServerApp.port = int(os.environ["AGENT_EXEC_UI_PORT"])
c.ServerApp.allow_root = hasattr(os, "geteuid") and os.geteuid() == 0
c.LabApp.workspaces_dir = str(root / "workspaces")
c.LabApp.user_settings_dir = str(root / "settings")
# JupyterLab asks at its first start whether it may tell news: nobody is there to answer.
notifications = root / "settings" / "@jupyterlab" / "apputils-extension"
notifications.mkdir(parents=True, exist_ok=True)
(notifications / "notification.jupyterlab-settings").write_text(
    json.dumps({"checkForUpdates": False, "fetchNews": "false"})
)
c.AgentExecApp.history_dir = str(root / "history")
# What is tested of approving sets the policy itself.
c.AgentExecApp.approval = {"notebook": "none", "kernel": "none"}
if "AGENT_EXEC_UI_TOKEN" in os.environ:  # as it is where nothing is configured
    c.IdentityProvider.token = os.environ["AGENT_EXEC_UI_TOKEN"]
    c.ServerApp.disable_check_xsrf = False
    c.AgentExecApp.approval = {}
if "AGENT_EXEC_UI_PASSPHRASE" in os.environ:
    c.AgentExecApp.approval = {"scratch": "always"}
    c.AgentExecApp.decision_passphrase_hash = passwd(os.environ["AGENT_EXEC_UI_PASSPHRASE"])
if "AGENT_EXEC_UI_APPROVAL_TIMEOUT" in os.environ:
    c.AgentExecApp.approval_timeout = float(os.environ["AGENT_EXEC_UI_APPROVAL_TIMEOUT"])
# Small, so that a test can reach it.
c.AgentExecApp.max_output_bytes = 100_000

c.ServerApp.jpserver_extensions = {
    "jupyter_server_fileid": collaboration != "off",
    "jupyter_server_ydoc": collaboration == "on",
}
if collaboration != "off":
    c.BaseFileIdManager.db_path = str(root / "file_ids.db")
    c.SQLiteYStore.db_path = str(root / "updates.db")
    c.YDocExtension.session_store_path = str(root / "collaboration_sessions.json")
else:
    # It has core plugins switched off in favour of its own: the whole of it has to be off, and then
    # they are on again. `YDocExtension.disable_rtc` would leave its file browser in the page.
    app_settings = root / "app" / "settings"
    app_settings.mkdir(parents=True, exist_ok=True)
    c.LabApp.app_settings_dir = str(app_settings)
    (app_settings / "page_config.json").write_text(
        json.dumps(
            {
                "disabledExtensions": [
                    "@jupyter/collaboration-extension",
                    "@jupyter/docprovider-extension",
                ]
            }
        )
    )
