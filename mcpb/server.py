"""Serve a desktop client. Its configuration names the folder in which a server may be started."""

import os
import sys

from jupyter_agent_exec.cli import main

os.chdir(sys.argv[1])
sys.exit(main(["mcp"]))
