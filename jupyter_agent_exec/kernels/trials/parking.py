"""Makes a kernel's native threads ready for a fork, or says why that is impossible.

Sent to kernels, never imported there. A copy has one thread. Code in it that waits for threads of
a library hangs, unless the library makes new ones after a fork. OpenMP of GNU does so only if it
has given its threads back before. Of every other thread, this asks which library runs it.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
from bisect import bisect
from typing import Any

OMP_PAUSE_SOFT = 1
"""Source: OpenMP 5.0, `omp_pause_resource_t`."""
PREPARED = (
    *("duckdb", "_duckdb", "libarrow", "libgomp", "libiomp", "libomp", "libopenblas", "libpython"),
    *("libscipy_openblas", "libzmq", "_zmq", "python"),
)
"""How the file names of libraries begin that have a handler for a fork, or that a copy can do
without. Python: code of a copy that waits for a thread of Python waits for the user's own."""
STARTS_THREADS = ("/libc.so", "/libc-", "/libpthread", "/libstdc++", "/ld-linux", "/ld-musl")
"""Libraries in which threads of others begin."""
PATIENCE = 0.25
"""Seconds to wait for a thread that runs: those of OpenBLAS do for a while after their work."""
STACK_BYTES = 1 << 16
"""How much of a thread's stack is read, from its beginning."""


def park() -> str | None:
    """Have libraries give their threads back; return why a copy could hang, or None."""
    maps = mapped()
    code = [each for each in maps if "x" in each[2] and each[3].startswith("/")]
    for path in {path for *_, path in code if "libgomp" in path}:
        try:
            library = ctypes.CDLL(path, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
            is_parked = library.omp_pause_resource_all(OMP_PAUSE_SOFT) == 0
        except (OSError, AttributeError):  # from before OpenMP 5.0
            is_parked = False
        if not is_parked:
            return f"OpenMP ({os.path.basename(path)}) does not give its threads back"
    known = {f"{each.native_id}" for each in threading.enumerate()}
    for thread in sorted({*os.listdir("/proc/self/task")} - known):
        try:
            owner = os.path.basename(owner_of(int(thread), maps, code))
        except (FileNotFoundError, ProcessLookupError):  # it has ended
            continue
        except (OSError, StopIteration):  # it may not be read, or its stack is newer than the maps
            owner = ""
        if not owner.startswith(PREPARED):
            owner = owner or "an unknown library"
            return f"its process has threads of {owner}, which a copy would lack"
    return None


def mapped() -> list[tuple[int, int, str, str]]:
    """Return begin, end, rights and file of what is mapped into this process, in this order."""
    found = []
    with open("/proc/self/maps") as maps:
        for line in maps:
            place, rights, _, _, _, path = [*line.rstrip("\n").split(maxsplit=5), ""][:6]
            begin, end = (int(address, 16) for address in place.split("-"))
            found.append((begin, end, rights, path))
    return found


def owner_of(thread: int, maps: list[Any], code: list[Any]) -> str:
    """Return the path of the library that a thread began in; empty if that cannot be seen.

    The first addresses on its stack are those of the function with which it began, and of what
    that called. A thread that runs does not tell where its stack is: it may soon wait again.
    """
    until = time.monotonic() + PATIENCE
    told: list[str] = []
    while len(told) < 2:
        with open(f"/proc/self/task/{thread}/syscall") as file:
            told = file.read().split()
        if len(told) < 2:
            if time.monotonic() > until:
                return ""
            time.sleep(PATIENCE / 50)
    pointer, memory = int(told[-2], 16), os.open("/proc/self/mem", os.O_RDONLY)
    try:
        begin, end = next(each[:2] for each in maps if each[0] <= pointer < each[1])
        begin = max(pointer, begin, end - STACK_BYTES) & ~7
        data = os.pread(memory, end - begin, begin)
    finally:
        os.close(memory)
    begins = [each[0] for each in code]
    for word in reversed(memoryview(data[: len(data) & ~7]).cast("Q")):
        if word < begins[0]:
            continue
        _, last, _, path = code[bisect(begins, word) - 1]
        if word < last and not any(part in path for part in STARTS_THREADS):
            return str(path)
    return ""
