from __future__ import annotations

import base64
import json
import math
import random

import pytest

from jupyter_agent_exec.journal.blobs import (
    INLINE_BYTES,
    BlobStore,
    TextSpill,
    pack_outputs,
    unpack_outputs,
)
from jupyter_agent_exec.records import Payload, commitment
from jupyter_agent_exec.storage.durability import replace_file
from tests.journal.recorded import PNG, display, stream
from tests.on_disk import system_calls

LARGE = "x" * (INLINE_BYTES + 1)
RAW = bytes(range(256)) * 100


def unpacked(outputs):
    packed = pack_outputs(outputs)
    payloads = {payload.digest: payload.data for payload in packed.payloads}
    assert all(commitment(each.salt, each.data) == each.digest for each in packed.payloads)
    return unpack_outputs(payloads[packed.digest], packed.blobs, payloads.get)


OUTPUTS = [
    [stream("é\x1b[0m\r\n")],
    [stream(LARGE), stream("é" * INLINE_BYTES, "stderr")],
    [stream("\ud800 alone"), stream("\udfff" + LARGE)],
    [display({"image/png": base64.b64encode(RAW).decode()}, width=3)],
    [display({"image/png": base64.b64encode(RAW).decode() + "\n"})],
    [display({"image/png": base64.encodebytes(RAW).decode(), "image/jpeg": "not base64 at all"})],
    [display({"image/png": "", "image/gif": "AA==", "image/webp": "AB=="})],
    [display({"image/svg+xml": "<svg/>", "text/html": "<b>" + LARGE, "text/plain": "x"})],
    [display({"application/json": {"a": [None, 1.5, "\ud800", 2**70], "large": LARGE}})],
    [display({"text/plain": base64.b64encode(RAW).decode(), "application/pdf": "QUJD" * 9000})],
    [display({"image/png": None, "application/json": None})],
    [display({"application/json": {"at": [0, "data"], "sha256": "0" * 64, "blobs": [LARGE]}})],
    [{"output_type": "error", "ename": "E", "evalue": LARGE, "traceback": [LARGE, "b"]}],
    [{"output_type": "execute_result", "execution_count": 3, "data": {}, "metadata": {"m": LARGE}}],
    [stream("one"), display({"image/png": PNG}), display({"image/png": PNG}), stream(LARGE)],
]


@pytest.mark.parametrize("outputs", OUTPUTS)
def test_outputs_come_back_as_they_were(outputs):
    assert unpacked(outputs) == outputs


def test_numbers_that_json_lacks_come_back():
    (output,) = unpacked([display({"application/json": [math.nan, math.inf, LARGE]})])
    assert math.isnan(output["data"]["application/json"][0])
    assert output["data"]["application/json"][1] == math.inf


def any_value(chance: random.Random, depth: int = 0):
    kinds = [
        lambda: None,
        lambda: chance.choice([True, 0, -1, 1e-5, 2**80]),
        lambda: chance.choice(["", "é", "\0", "\ud83d", '"\\\n', PNG, LARGE]),
        lambda: base64.b64encode(chance.randbytes(chance.randrange(12_000))).decode(),
    ]
    if depth < 3:
        kinds += [
            lambda: [any_value(chance, depth + 1) for _ in range(chance.randrange(4))],
            lambda: {
                chance.choice("abc"): any_value(chance, depth + 1)
                for _ in range(chance.randrange(4))
            },
        ]
    return chance.choice(kinds)()


@pytest.mark.parametrize("seed", range(100))
def test_any_outputs_come_back_as_they_were(seed):
    chance = random.Random(seed)
    types = ["image/png", "image/svg+xml", "text/plain", "application/json", "application/pdf"]
    outputs = [
        display({mimetype: any_value(chance) for mimetype in chance.sample(types, 3)}, x=seed)
        for _ in range(4)
    ]
    assert unpacked(outputs) == outputs


def test_no_outputs_are_nothing():
    assert pack_outputs([]) == (None, (), ())


def test_images_are_files_that_hold_the_image_itself():
    packed = pack_outputs([display({"image/png": base64.b64encode(RAW).decode()})])
    (ref,) = packed.blobs
    (image,) = (p for p in packed.payloads if p.digest == ref.sha256)
    assert image.as_file
    assert image.data == RAW
    assert (ref.bytes, ref.encoding, ref.mimetype) == (len(RAW), "base64", "image/png")
    assert ref.at == (0, "data", "image/png")


def test_what_only_looks_like_an_image_is_called_text():
    packed = pack_outputs([display({"image/png": "<script>"})])
    assert (packed.blobs[0].encoding, packed.blobs[0].mimetype) == ("text", "text/plain")


def test_small_values_stay_in_their_outputs():
    outputs = [stream("x" * INLINE_BYTES), display({"text/html": "<b>b</b>"})]
    packed = pack_outputs(outputs)
    assert packed.blobs == ()
    assert json.loads(packed.payloads[0].data) == outputs


def test_values_that_are_gone_leave_valid_outputs():
    outputs = [
        stream(LARGE),
        display({"text/html": LARGE, "text/plain": "left"}),
        {"output_type": "error", "ename": "E", "evalue": "v", "traceback": [LARGE]},
    ]
    packed = pack_outputs(outputs)
    whole = next(p.data for p in packed.payloads if p.digest == packed.digest)
    assert unpack_outputs(whole, packed.blobs, lambda digest: None) == [
        stream(""),
        display({"text/plain": "left"}),
        {"output_type": "error", "ename": "E", "evalue": "v", "traceback": []},
    ]


def test_large_binary_and_image_payloads_become_private_files(tmp_path):
    store = BlobStore(tmp_path / "blobs")
    small, large = Payload.of(b"small"), Payload.of(LARGE.encode())
    image, binary = Payload.of(b"image", as_file=True), Payload.of(b"\xff\xfe")
    assert store.keep([small]) == [small]
    assert not store.folder.exists()
    kept = store.keep([small, large, image, binary, large])
    assert [each.data for each in kept] == [b"small", None, None, None, None]
    assert [each.salt for each in kept] == [
        each.salt for each in (small, large, image, binary, large)
    ]
    assert {path.name for path in store.folder.iterdir()} == {
        large.digest,
        image.digest,
        binary.digest,
    }
    assert store.find(large.digest) == large.data
    assert store.find(small.digest) is None
    assert store.folder.stat().st_mode & 0o777 == 0o700
    assert store.path(image.digest).stat().st_mode & 0o777 == 0o600


def test_a_payload_in_a_file_is_on_the_disk_before_it_has_its_name(tmp_path):
    made = system_calls(lambda: replace_file(tmp_path / "blob", RAW))
    assert made.index("fsync") < made.index("rename")


def test_a_spilled_text_becomes_a_blob_cut_at_a_character(tmp_path):
    spill = TextSpill(tmp_path / "blobs", 10)
    spill.write("abcdefgh")
    spill.write("")
    spill.write("ijé€z")
    spill.write("more")
    spilled = spill.finish()
    assert spilled is not None
    assert (tmp_path / "blobs" / spilled.payload.digest).read_text() == "abcdefghij"
    assert (spilled.bytes, spilled.omitted_bytes) == (10, len("é€zmore".encode()))
    assert spilled.payload.digest == commitment(spilled.payload.salt, b"abcdefghij")
    spill.discard()
    spill.write("late")
    assert [path.name for path in (tmp_path / "blobs").iterdir()] == [spilled.payload.digest]


def test_no_part_of_a_character_is_kept(tmp_path):
    spill = TextSpill(tmp_path, 4)
    spill.write("ab€")
    spill.write("c")
    spilled = spill.finish()
    assert spilled is not None
    assert (tmp_path / spilled.payload.digest).read_text() == "ab"
    assert spilled.omitted_bytes == 4


def test_a_long_text_is_kept_whole(tmp_path):
    spill = TextSpill(tmp_path, 1_000_000)
    text = "".join(f"line {n}\n" for n in range(30_000))
    for line in text.splitlines(keepends=True):
        spill.write(line)
    spilled = spill.finish()
    assert spilled is not None
    assert (tmp_path / spilled.payload.digest).read_text() == text
    assert spilled[1:] == (len(text), 0)


def test_a_text_that_nobody_wants_leaves_nothing(tmp_path):
    spill = TextSpill(tmp_path, 1_000_000)
    spill.write("x" * 100_000)
    spill.discard()
    spill.discard()
    assert list(tmp_path.iterdir()) == []
    assert spill.finish() is None


def test_a_disk_that_fails_is_no_error_but_a_count(tmp_path):
    spill = TextSpill(tmp_path / "missing" / "blobs", 1_000_000)
    spill.write("x" * 100_000)
    spill.write("more")
    assert spill.finish() is None


def test_an_empty_text_is_no_blob(tmp_path):
    assert TextSpill(tmp_path, 10).finish() is None
