"""Ports of this machine for servers and kernels that tests start."""

from __future__ import annotations

import itertools
import os
import random
import socket
from contextlib import suppress

_EACH = 5_000
"""How many ports each process of the tests has for itself."""

_WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
_OWN = range(10_000 + _WORKER % 4 * _EACH, 10_000 + (_WORKER % 4 + 1) * _EACH)
_START = random.randrange(_EACH)
_NEXT = itertools.cycle([*_OWN[_START:], *_OWN[:_START]])


def free_port(ip: str = "127.0.0.1") -> int:
    """Return a port that nothing takes before the program that it is meant for.

    The system gives ports from 32768 on to whoever asks for any port, and to each connection: one
    that was found free there may be taken a moment later.
    """
    while True:
        port = next(_NEXT)
        with suppress(OSError), socket.socket() as listener:
            listener.bind((ip, port))
            return port
