"""What executors get wrong in their answers: text, errors, and what is displayed."""

from __future__ import annotations

import re

from tests.frameworks.probing import RIGHT, Bench, Timed, Verdict, answered, brief, plain, probe

_BASE64 = re.compile(r"[A-Za-z0-9+/]{300,}")
_LEFT_OUT = re.compile(r"left out|omitted|truncated", re.IGNORECASE)
_FIRST_BYTES = {".png": b"\x89PNG", ".jpg": b"\xff\xd8", ".gif": b"GIF8", ".svg": b"<svg"}


@probe("Words such as “KeyboardInterrupt” or “not picklable” in outputs and errors change nothing")
def telling_words(bench: Bench) -> Verdict:
    subject = bench.subject()
    words = "KeyboardInterrupt: cannot pickle, not picklable, Timeout, kernel died"
    said = bench.run(subject, f"count = globals().get('count', 0) + 1\nprint({words!r})")
    if said.failed or words not in said.text:
        return Verdict(False, f"printed, they were told as: {brief(said.text)}")
    said = bench.run(subject, f"count += 1\nraise ValueError({words!r})")
    if not said.failed or "ValueError" not in said.text:
        return Verdict(False, f"raised, they were told as: {brief(said.text)}")
    return answered(bench.run(subject, "print('count', count)"), "count 2")


@probe("10 MB of text come back, or it is said what was left out")
def ten_megabytes(bench: Bench) -> Verdict:
    return _all_or_told(bench, "x" * 99, 100_000)


@probe("200,000 lines come back, or it is said what was left out")
def many_lines(bench: Bench) -> Verdict:
    return _all_or_told(bench, "line", 200_000)


@probe("300 KB on raw file descriptor 2 hold nothing up")
def raw_stderr(bench: Bench) -> Verdict:
    subject = bench.subject(20.0)
    said = bench.run(
        subject,
        "import os\nfor _ in range(3000): os.write(2, b'e' * 99 + b'\\n')\nprint('written')",
    )
    if said.failed or "written" not in said.text:
        return Verdict(False, f"it was told as: {brief(said.text)}")
    return answered(bench.run(subject, "print('next')"), "next")


@probe("What was printed before an error comes with the error")
def stdout_before_an_error(bench: Bench) -> Verdict:
    said = bench.run(bench.subject(), "print('be' + 'fore')\n1 / 0")
    if not said.failed:
        return Verdict(False, "the error was not told")
    missing = [word for word in ("before", "ZeroDivisionError") if word not in said.text]
    return Verdict(not missing, f"without {missing[0]!r}" if missing else RIGHT)


@probe("An error says in which line of the code it was")
def line_numbers(bench: Bench) -> Verdict:
    said = bench.run(bench.subject(), "x = 1\n\nraise ValueError('here')")
    text = plain(said.text)
    right = re.search(r"line 3\b|-> 3 ", text) is not None
    return Verdict(right, RIGHT if right else "without its line, or another")


@probe("`input()` and `getpass()` fail at once, and the next call works")
def asking_for_input(bench: Bench) -> Verdict:
    subject = bench.subject()
    for source in ("input('name? ')", "import getpass\ngetpass.getpass()"):
        asked = source.splitlines()[-1]
        said = bench.run(subject, source)
        if not said.failed:
            return Verdict(False, f"`{asked}` did not fail")
        if said.seconds > 5 + bench.grace:
            return Verdict(False, f"`{asked}` came back after {said.seconds:.0f} s")
        verdict = answered(bench.run(subject, "print('next')"), "next")
        if not verdict.right:
            return Verdict(False, f"after `{asked}`: {verdict.seen}")
    return Verdict(True, RIGHT)


@probe("A value that cannot be serialised is shown, and stays")
def unserialisable_value(bench: Bench) -> Verdict:
    subject = bench.subject()
    said = bench.run(subject, "import threading\nlock = threading.Lock()\nlock")
    if said.failed or "lock" not in said.text:
        return Verdict(False, f"it was told as: {brief(said.text)}")
    return answered(bench.run(subject, "print(lock.locked())"), "False")


@probe("An updated display has its latest content, and cleared output is left out")
def updates_and_clear_output(bench: Bench) -> Verdict:
    said = bench.run(
        bench.subject(),
        """
from IPython.display import clear_output, display
print('cleared')
clear_output()
shown = display({'text/plain': 'old'}, raw=True, display_id=True)
shown.update({'text/plain': 'new'}, raw=True)
print('stays')
""",
    )
    if said.failed:
        return Verdict(False, f"it failed: {brief(said.text)}")
    wrong = [word for word in ("cleared", "old") if word in said.text]
    wrong += [f"no {word}" for word in ("new", "stays") if word not in said.text]
    return Verdict(not wrong, f"in the answer: {', '.join(wrong)}" if wrong else RIGHT)


@probe("PNG, JPEG, GIF and SVG become files with their own suffix, and never base64 in the text")
def kinds_of_images(bench: Bench) -> Verdict:
    said = bench.run(
        bench.subject(),
        """
import base64, io
from IPython.display import SVG, display
from PIL import Image
for kind in ('png', 'jpeg', 'gif'):
    file = io.BytesIO()
    Image.effect_noise((64, 64), 90).save(file, kind)
    data = {f'image/{kind}': base64.b64encode(file.getvalue()).decode(), 'text/plain': '<image>'}
    display(data, raw=True)
display(SVG('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"></svg>'))
""",
    )
    return _image_files(said, [".gif", ".jpg", ".png", ".svg"])


@probe("Each of several plots of one cell becomes a file")
def several_plots(bench: Bench) -> Verdict:
    said = bench.run(
        bench.subject(),
        """
import matplotlib.pyplot as plt
for n in range(3):
    plt.figure(figsize=(2, 2))
    plt.plot([0, n])
    plt.show()
""",
    )
    return _image_files(said, [".png"] * 3)


@probe("An image of 20 MB becomes a file, whole")
def large_image(bench: Bench) -> Verdict:
    said = bench.run(
        bench.subject(),
        """
import os, struct, zlib
from IPython.display import Image, display
def chunk(kind, data):
    return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))
header = struct.pack('>IIBBBBB', 2600, 2600, 8, 2, 0, 0, 0)
rows = b''.join(b'\\0' + os.urandom(3 * 2600) for _ in range(2600))
parts = [(b'IHDR', header), (b'IDAT', zlib.compress(rows, 0)), (b'IEND', b'')]
png = b'\\x89PNG\\r\\n\\x1a\\n' + b''.join(chunk(*part) for part in parts)
display(Image(data=png, format='png'))
""",
    )
    verdict = _image_files(said, [".png"])
    if verdict.right and said.files[0].stat().st_size < 20_000_000:
        return Verdict(False, "the file is not whole")
    return verdict


def _all_or_told(bench: Bench, line: str, count: int) -> Verdict:
    """Look whether lines come back, and whether the executor goes on."""
    subject = bench.subject()
    said = bench.run(subject, f"for _ in range({count}): print({line!r})")
    if said.failed:
        return Verdict(False, f"it was told as: {brief(said.text)}")
    came = said.text.count(line)
    if came > count:
        return Verdict(False, f"{came - count:,} lines came twice")
    if came < count and not _LEFT_OUT.search(said.text):
        return Verdict(False, f"{count - came:,} lines were missing, without a word")
    if came == 0:
        return Verdict(False, "no line came back")
    verdict = answered(bench.run(subject, "print('next')"), "next")
    if not verdict.right or came == count:
        return verdict
    return Verdict(True, f"{count - came:,} lines were left out, and it said so")


def _image_files(said: Timed, expected: list[str]) -> Verdict:
    if said.failed:
        return Verdict(False, f"it failed: {brief(said.text)}")
    if _BASE64.search(said.text):
        return Verdict(False, "base64 in the text")
    suffixes = sorted(path.suffix.lower().replace(".jpeg", ".jpg") for path in said.files)
    if suffixes != expected:
        return Verdict(False, f"files: {', '.join(suffixes) or 'none'}")
    for path, suffix in zip(sorted(said.files, key=lambda p: p.suffix), expected, strict=True):
        if _FIRST_BYTES[suffix] not in path.read_bytes()[:300]:
            return Verdict(False, f"a file {suffix} is something else")
    return Verdict(True, RIGHT)
