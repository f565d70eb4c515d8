from __future__ import annotations

import hashlib
import json

import pytest

from jupyter_agent_exec.journal import chain


def test_the_first_line_is_what_was_worked_out_by_hand():
    canonical = chain.canonical({"n": 0, "at": "2026", "a": "é\n"})
    assert canonical == '{"a":"é\\n","at":"2026","n":0}'.encode()
    first = hashlib.sha256(b"0" * 64 + canonical).hexdigest()
    assert first == "0084ca0d3ef76cea05340b15821e5324d458f29a8cc1b83b2a80d7edf006ec3c"
    assert chain.link(chain.GENESIS, canonical) == first
    line = chain.format_line(first, canonical, {})
    assert line == b'{"hash":"' + first.encode() + b'","entry":' + canonical + b"}\n"


def test_canonical_bytes_are_sorted_json_with_no_needless_escapes():
    value = {
        "z": [1e-5, 1e16, 60.0, 12, None, True],
        "a": {"b": '\x00\x1f\x7f"\\/\b\f\n\r\t \u2028 😀 é', "B": ""},
    }
    expected = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert chain.canonical(value) == expected.encode()


def test_a_lone_surrogate_does_not_stop_the_record():
    assert chain.canonical({"message": "a\ud800b"}) == b'{"message":"a?b"}'


def test_numbers_that_json_lacks_are_refused():
    with pytest.raises(ValueError, match="JSON compliant"):
        chain.canonical({"timeout": float("inf")})


@pytest.mark.parametrize("salts", [{}, {"ab" * 32: "0f" * 16}])
@pytest.mark.parametrize("payloads", [{}, {"ab" * 32: 'x\n"}\u2028', "cd" * 32: ""}])
def test_a_line_is_parsed_into_what_it_was_made_of(payloads, salts):
    entry = {"n": 3, "type": "x", "tricky": '"},"payloads":{"a":"b"},"salts":{"a":"b"}}'}
    canonical = chain.canonical(entry)
    line = chain.format_line("ef" * 32, canonical, payloads, salts)
    assert line.count(b"\n") == 1
    parsed = chain.parse_line(line)
    assert parsed == ("ef" * 32, canonical, entry, payloads, salts)
    assert json.loads(line)["entry"] == entry


@pytest.mark.parametrize(
    "change",
    [
        lambda line: line[:-2],
        lambda line: line[1:],
        lambda line: line.replace(b'"hash"', b'"Hash"'),
        lambda line: line.replace(b"}\n", b',"more":1}\n'),
        lambda line: line.replace(b'"entry":{', b'"entry": {'),
        lambda line: line.replace(b"\n", b"\n\n"),
        lambda line: b"\xff" + line,
        lambda line: line.replace(b'{"n":1}', b"[1]"),
        lambda line: line.replace(b"}\n", b',"payloads":{"a":1}}\n'),
        lambda line: line.replace(b"}\n", b',"salts":[]}\n'),
        lambda line: line.replace(b"}\n", b',"salts":{"a":"b"},"payloads":{"a":"b"}}\n'),
    ],
)
def test_what_is_not_a_line_is_refused(change):
    line = chain.format_line("ef" * 32, b'{"n":1}', {})
    chain.parse_line(line)
    with pytest.raises(ValueError):  # noqa: PT011
        chain.parse_line(change(line))
