"""Code that the tests of several frameworks run, and what is left of it."""

from __future__ import annotations

from pathlib import Path

from tests.real_server import PROJECT

PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9"
    "awAAAABJRU5ErkJggg=="
)
"""One pixel."""

SHOW_IMAGE = f"""\
from IPython.display import Image, display
import base64
display(Image(base64.b64decode({PNG!r}), format='png'))
"""

PROCESSES = "import os\nprint(os.getppid(), os.getpid())"
"""Prints the ids of the server and of the kernel."""

CRASH = "import os\nos.kill(os.getpid(), 9)"


def endless(started: Path) -> str:
    """Return code that makes a file and then goes on until it is stopped."""
    return f"open({str(started)!r}, 'w').close()\nwhile True: pass"


def runs(process: str) -> bool:
    """Tell whether a process is there."""
    return Path(f"/proc/{process}").exists()


def documented(page: str) -> str:
    """Return the first example in Python of a framework's page."""
    text = (PROJECT / "docs" / "how-to" / "frameworks" / f"{page}.md").read_text()
    return text.partition("```python\n")[2].partition("```")[0]
