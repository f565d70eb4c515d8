"""What executors get wrong, looked for in any of them: the same code, and what comes of it.

Here what is about time, other code, and the end of a kernel; `probes_of_answers` has what is about
answers.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.frameworks import probes_of_answers
from tests.frameworks.probing import (
    PROBES,
    RIGHT,
    ROOMY_TIMEOUT,
    TIMEOUT,
    Bench,
    Verdict,
    answered,
    brief,
    probe,
)
from tests.frameworks.subject import Subject

__all__ = ["PROBES", "probes_of_answers"]

INTERRUPT_SECONDS = 8.0
"""How long code that takes no notice of an interrupt may be given before its kernel is ended."""
PROGRAM_SECONDS = 60.0

_STATE_GONE = re.compile(r"restart|variables|state|fresh|new kernel", re.IGNORECASE)
_DIED = re.compile(r"\b(died|dead|crash\w*|killed|ended|exited)\b", re.IGNORECASE)


@probe("After a timeout, the next answer holds nothing of the code before")
def late_output_after_a_timeout(bench: Bench) -> Verdict:
    subject = bench.subject(TIMEOUT)
    slow = f"import time\nprint('early', flush=True)\ntime.sleep({2 * TIMEOUT})\nprint('OLD')"
    first = bench.run(subject, slow)
    if not first.failed:
        return Verdict(False, "the timeout was not told")
    second = bench.run(subject, "print('new')")
    if "OLD" in second.text:
        return Verdict(False, "the next answer held the old output")
    return answered(second, "new")


@probe("An endless loop ends within a second of its timeout, and the variables are still there")
def endless_loop(bench: Bench) -> Verdict:
    return _ends(bench, "while True: pass")


@probe("The timeout of code that prints all the while counts from its beginning")
def chatty_loop(bench: Bench) -> Verdict:
    return _ends(bench, "import time\nwhile True: print('still', flush=True), time.sleep(0.02)")


@probe("Code that swallows KeyboardInterrupt is ended too, and the next call works")
def swallowed_interrupt(bench: Bench) -> Verdict:
    subject = bench.subject(TIMEOUT)
    bench.run(subject, "kept = 1")
    source = """
import time
while True:
    try:
        time.sleep(0.1)
    except KeyboardInterrupt:
        pass
"""
    first = bench.run(subject, source)
    if not first.failed:
        return Verdict(False, "the timeout was not told")
    if first.seconds > TIMEOUT + INTERRUPT_SECONDS + bench.grace:
        return Verdict(False, f"it came back after {first.seconds:.0f} s")
    return _goes_on(bench, subject)


@probe("Cancelled in mid-run, the code stops, and the variables are still there")
def cancel_in_mid_run(bench: Bench) -> Verdict:
    subject = bench.subject(20.0)
    started = bench.file("started")
    source = (
        f"import time\nticks = 0\nopen({str(started)!r}, 'w').close()\n"
        "for ticks in range(200): time.sleep(0.05)"
    )
    try:
        bench.run_and_cancel(subject, source, started)
    except NotImplementedError:
        return Verdict(None, "it has no way to cancel")
    said = bench.run(subject, "print('ticks', ticks)")
    found = re.search(r"ticks (\d+)", said.text)
    if found is None:
        return Verdict(False, f"the next call failed: {brief(said.text)}")
    if int(found[1]) >= 199:
        return Verdict(False, "the code ran to its end")
    return Verdict(True, RIGHT)


@probe("Two calls at the same time each get their own output, and all of it")
def two_at_once(bench: Bench) -> Verdict:
    subject = bench.subject()
    source = "import time\nfor n in range(20): print({!r}, n, flush=True), time.sleep(0.02)"
    letters = ("A", "B")
    answers = bench.run_at_once(subject, *map(source.format, letters))
    for letter, said in zip(letters, answers, strict=True):
        if said.failed:
            return Verdict(False, f"one of them failed: {brief(said.text)}")
        others = sum(f"{other} {n}\n" in said.text + "\n" for other in letters for n in range(20))
        own = sum(f"{letter} {n}\n" in said.text + "\n" for n in range(20))
        if own < 20:
            return Verdict(False, f"{20 - own} of 20 lines were missing in one answer")
        if others > own:
            return Verdict(False, "one answer held output of the other")
    return Verdict(True, RIGHT)


@probe("What a thread prints once its code has ended is not in the next answer")
def late_output_of_a_thread(bench: Bench) -> Verdict:
    subject = bench.subject()
    go, done = bench.file("go"), bench.file("done")
    bench.run(
        subject,
        f"""
import os, threading, time
def late():
    while not os.path.exists({str(go)!r}): time.sleep(0.01)
    print('LATE', flush=True)
    open({str(done)!r}, 'w').close()
threading.Thread(target=late).start()
print('first')
""",
    )
    go.touch()
    if not bench.wait_for(done.exists):
        return Verdict(False, "the thread did not go on")
    said = bench.run(subject, "print('second')")
    if "LATE" in said.text:
        return Verdict(False, "the next answer held what the thread printed")
    return answered(said, "second")


@probe("Two agents share nothing")
def two_agents(bench: Bench) -> Verdict:
    one, other = bench.subject(), bench.subject()
    bench.run(one, "secret = 'of the first'")
    said = bench.run(other, "print('secret' in globals())")
    if "True" in said.text:
        return Verdict(False, "the second read a variable of the first")
    return answered(said, "False")


@probe("A crash is named at once, the code ran once, and the next call works and says what is gone")
def crash(bench: Bench) -> Verdict:
    subject = bench.subject(20.0)
    ran = bench.file("ran")
    bench.run(subject, "kept = 1")
    first = bench.run(
        subject,
        f"import os\nwith open({str(ran)!r}, 'a') as f: f.write('x')\nos.kill(os.getpid(), 9)",
    )
    times = len(ran.read_text())
    if times > 1:
        return Verdict(False, f"the code ran {times} times")
    if not first.failed or not _DIED.search(first.text):
        return Verdict(False, f"it was told as: {brief(first.text)}")
    if first.seconds > 5 + bench.grace:
        return Verdict(False, f"it was told after {first.seconds:.0f} s")
    return _goes_on(bench, subject)


@probe("`exit()` and `sys.exit()` end neither the program nor the executor")
def exit_calls(bench: Bench) -> Verdict:
    subject = bench.subject(20.0)
    for source in ("exit()", "import sys\nsys.exit(1)"):
        bench.run(subject, "kept = 1")
        try:
            bench.run(subject, source)
        except SystemExit:
            return Verdict(False, f"`{source.splitlines()[-1]}` ended the program that called")
        verdict = _goes_on(bench, subject)
        if not verdict.right:
            return Verdict(False, f"after `{source.splitlines()[-1]}`: {verdict.seen}")
    return Verdict(True, RIGHT)


@probe("After it was closed, its kernel and the kernel's children are gone")
def processes_after_close(bench: Bench) -> Verdict:
    subject = bench.subject()
    if not subject.has_close:
        return Verdict(None, "it has no way to close")
    child = _child(bench, subject)
    kernel = subject.kernel_pid()
    bench.close(subject)
    return _gone(bench, kernel, child)


@probe("When a program ends without closing it, kernel and children are gone too")
def processes_without_close(bench: Bench) -> Verdict:
    pids, output = bench.file("pids"), bench.file("output")
    program = (
        "from pathlib import Path\n"
        f"from {bench.make.__module__} import {bench.make.__name__} as make\n"
        f"subject = make(Path({str(bench.folder)!r}), {ROOMY_TIMEOUT})\n"
        f"subject.run({bench.marked(_child_source(pids))!r})\n"
        "kernel = subject.kernel_pid()\n"
        f"with open({str(pids)!r}, 'a') as file: print(kernel, file=file)\n"
    )
    try:
        # No pipe: its end would be that of all who have inherited it.
        with output.open("w") as file:
            ended = subprocess.run(
                [sys.executable, "-c", program], stdout=file, stderr=file, timeout=PROGRAM_SECONDS
            )
    except subprocess.TimeoutExpired:
        return Verdict(False, "the program did not end")
    child, *kernel = pids.read_text().split() if pids.exists() else [""]
    if ended.returncode != 0 or not kernel:
        return Verdict(False, f"the program failed: {brief(output.read_text())}")
    return _gone(bench, int(kernel[0]), int(child))


def _ends(bench: Bench, source: str) -> Verdict:
    """Look whether code ends by its timeout, and the variables are still there."""
    subject = bench.subject(TIMEOUT)
    bench.run(subject, "kept = 1")
    said = bench.run(subject, source)
    if not said.failed:
        return Verdict(False, "the timeout was not told")
    if said.seconds > TIMEOUT + bench.grace:
        return Verdict(False, f"it came back {said.seconds - TIMEOUT:.0f} s after its timeout")
    return answered(bench.run(subject, "print('kept', kept)"), "kept 1")


def _goes_on(bench: Bench, subject: Subject) -> Verdict:
    """Look whether the next call works, and says so if the variable `kept` is gone."""
    said = bench.run(subject, "print(6 * 7, 'kept' in globals())")
    verdict = answered(said, "42")
    if not verdict.right or "42 True" in said.text or _STATE_GONE.search(said.text):
        return verdict
    return Verdict(False, "the next call does not say that the variables are gone")


def _child_source(pid_file: Path) -> str:
    return (
        "import subprocess\nchild = subprocess.Popen(['sleep', '600'])\n"
        f"with open({str(pid_file)!r}, 'w') as file: print(child.pid, file=file)"
    )


def _child(bench: Bench, subject: Subject) -> int:
    """Have code start a process, and return its id."""
    pid_file = bench.file("pid")
    bench.run(subject, _child_source(pid_file))
    return int(pid_file.read_text())


def _gone(bench: Bench, kernel: int, child: int) -> Verdict:
    if not bench.gone(kernel):
        return Verdict(False, "the kernel goes on")
    return Verdict(True, RIGHT) if bench.gone(child) else Verdict(False, "its child goes on")
