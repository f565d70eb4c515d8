"""Run `python -m jupyter_agent_exec.cli` where the console script is not installed."""

from __future__ import annotations

import sys

from . import main

if __name__ == "__main__":
    sys.exit(main())
