"""What comes from a copy of a kernel, cut into frames."""

from __future__ import annotations

import json
import subprocess
import sys

from jupyter_agent_exec.kernels.trials.trial import LENGTHS, Frames


def frame(msg_type: str, content: object) -> bytes:
    header, told = json.dumps({"msg_type": msg_type}).encode(), json.dumps(content).encode()
    return LENGTHS.pack(len(header), len(told)) + header + told


def test_frames_that_came_before_bytes_that_are_none_count() -> None:
    frames = Frames()
    data = frame("trial_sealed", {"seccomp": True}) + b"x" * 99
    assert [each.header.msg_type for each in frames.feed(data)] == ["trial_sealed"]
    assert frames.is_broken


def test_a_frame_may_come_in_any_pieces() -> None:
    frames = Frames()
    data = frame("stream", {"name": "stdout", "text": "a"}) * 2
    found = [each for at in range(len(data)) for each in frames.feed(data[at : at + 1])]
    assert [each.content["text"] for each in found] == ["a", "a"]


MANY = """
import resource, sys
from tests.kernels.trials.test_frames import LENGTHS, Frames
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
header, told = b'{"msg_type": "display_data"}', b'{"data": [' + b"[]," * 20_000_000 + b"[]]}"
data = LENGTHS.pack(len(header), len(told)) + header + told
before = peak()
[message] = Frames().feed(data)
print(peak() - before, len(told) >> 10, message.unread, message.size == len(told))
"""


def test_a_frame_of_many_small_values_is_counted_and_not_decoded() -> None:
    ran = subprocess.run([sys.executable, "-c", MANY], capture_output=True, text=True, check=True)
    added, size, *told = ran.stdout.split()
    print(f"a frame of {int(size) >> 10} MB added {int(added) >> 10} MB")  # noqa: T201
    assert told == ["True", "True"]
    assert int(added) < 6 * int(size)


def test_text_with_many_commas_is_not_taken_for_many_values() -> None:
    text = 'a,\\"[{' * 1_000_000
    [message] = Frames().feed(frame("display_data", {"data": {"text/plain": text}, "rows": ["x"]}))
    assert message.content["data"]["text/plain"] == text
