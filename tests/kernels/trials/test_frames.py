"""What comes from a copy of a kernel, cut into frames."""

from __future__ import annotations

import json

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
