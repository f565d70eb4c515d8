"""Make this process look like Windows to the package, then run a program: an approximation.

`python tests/like_windows.py MODULE_OR_FILE ARGUMENT…`. What others wrote is imported before,
because it chooses by system what it imports. Then modules and names that Windows lacks are
taken away. This shows what the package imports and calls, not how Windows behaves.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
from importlib import import_module
from importlib.abc import MetaPathFinder

MODULES = {
    *("fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "posix", "syslog", "curses"),
    *("crypt", "spwd", "nis", "ossaudiodev", "readline"),
}
NAMES = {
    os: (
        *("O_NOFOLLOW", "O_DIRECTORY", "O_CLOEXEC", "O_NONBLOCK", "O_NOCTTY", "O_PATH"),
        *("geteuid", "getegid", "getuid", "getgid", "fork", "fdatasync", "openpty", "setsid"),
        *("killpg", "getpgid", "uname", "posix_spawn", "WNOHANG", "mkfifo", "statvfs", "fchmod"),
    ),
    signal: ("SIGKILL", "SIGHUP", "SIGCHLD", "SIGPIPE", "SIGUSR1", "SIGALRM", "SIGXFSZ"),
}
THEIRS = (
    *("anyio._backends._asyncio", "httpx2", "jupyter_core.application", "msgspec", "packaging"),
    *("email.utils", "getpass", "http.client", "multiprocessing", "ssl", "subprocess", "tempfile"),
)
OF_A_SERVER = (
    *("concurrent.futures.thread", "jupyter_client", "jupyter_server.extension.application"),
    *("jupyter_server.serverapp", "zmq.eventloop.zmqstream"),
)


class _Absent(MetaPathFinder):
    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name.partition(".")[0] in MODULES:
            raise ModuleNotFoundError(f"No module named {name!r} (as on Windows)", name=name)


def main() -> None:
    serves = sys.argv[1].endswith("server.py")
    for name in (*THEIRS, *(OF_A_SERVER if serves else ())):
        import_module(name)
    for name in MODULES:
        sys.modules.pop(name, None)
    for module, names in NAMES.items():
        for name in names:
            if hasattr(module, name):
                delattr(module, name)
    sys.meta_path.insert(0, _Absent())
    sys.platform = "win32"
    del sys.argv[0]
    run = runpy.run_path if sys.argv[0].endswith(".py") else runpy.run_module
    run(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
