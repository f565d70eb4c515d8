"""Secrets are found wherever a text is divided, and no pattern takes for ever."""

from __future__ import annotations

import base64
import json
import random
import sys
from types import FrameType
from typing import Any

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st
from traitlets import TraitError

from jupyter_agent_exec.kernels.displays import Displays
from jupyter_agent_exec.kernels.messages import decoded
from jupyter_agent_exec.kernels.outputs import Outputs
from jupyter_agent_exec.text import redaction as module
from jupyter_agent_exec.text.redaction import (
    MOST_HELD,
    OWN_TOKENS,
    Redaction,
    Redactor,
    Rule,
    may_be,
)
from jupyter_agent_exec.text.redaction_traits import CREDENTIALS, RedactionTraits
from jupyter_agent_exec.text.terminal import clean
from jupyter_agent_exec.types import ExecutionId
from tests.fuzzing import examples

TOKEN = f"jaex_t_{'01J0AB' * 4}0Z_{'0123456789abcdef' * 4}"
REFRESH = TOKEN.replace("jaex", "jaer")
PASSWORD = 'hunter2 "quoted" \\ <ü>'
IMAGE = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4).decode()
PATTERNS = {"customer": r"KD-\d{8}", "names": r"Ms\. [A-Z][a-z]{1,20}"}


@pytest.fixture
def redactor(monkeypatch: pytest.MonkeyPatch) -> Redactor:
    monkeypatch.setenv("DB_PASSWORD", PASSWORD)
    traits = RedactionTraits(redact_env=["DB_PASSWORD", "NOT_SET"], redact_patterns=PATTERNS)
    return traits.redactor()


def streamed(redactor: Redactor, pieces: list[str]) -> tuple[str, int]:
    redaction = Redaction(redactor)
    shown = [redaction.stream("stdout", piece) for piece in pieces]
    shown += [text for _, text in redaction.rest()]
    return "".join(shown), redaction.count


def test_tokens_are_replaced_without_any_configuration() -> None:
    text = f"a {TOKEN} b {REFRESH}{TOKEN} c"
    marked = "[redacted: agent token]"
    assert Redactor().text(text) == (f"a {marked} b {marked}{marked} c", 3)
    assert Redactor().text(f"KD-12345678 {PASSWORD}") == (f"KD-12345678 {PASSWORD}", 0)


def test_secrets_are_found_wherever_a_stream_is_divided(redactor: Redactor) -> None:
    text = f"say {TOKEN}, KD-12345678 of Ms. Grace, {PASSWORD}!"
    secret = [TOKEN[-64:], "12345678", "Grace", PASSWORD]
    divided = [[text[:at], text[at:]] for at in range(len(text) + 1)] + [list(text)]
    for seed in range(50):
        some = random.Random(seed)
        cuts = sorted(some.sample(range(1, len(text)), 8))
        divided.append([text[i:j] for i, j in zip([0, *cuts], [*cuts, len(text)], strict=True)])
    for pieces in divided:
        shown, count = streamed(redactor, pieces)
        assert count == 4, pieces
        for each in secret:  # nothing of it that would help to guess it
            assert not any(each[at : at + 4] in shown for at in range(len(each) - 3)), pieces
        assert shown.startswith("say ")
        assert shown.endswith("[redacted: DB_PASSWORD]!")


HIDDEN = ("", "\x1b[1m", "\x1b[0;31m", "\x1b[K", "x\b", "xy\b\b", "\x07", "\x1b]8;;http://x\x07")


@st.composite
def hidden(draw: st.DrawFn) -> tuple[str, list[str]]:
    """Text that a terminal shows with a secret, and the pieces in which it comes."""
    between = st.sampled_from(HIDDEN)
    secret = draw(st.sampled_from([TOKEN, "KD-12345678", PASSWORD, "Ms. Grace"]))
    text = "".join(each for letter in secret for each in (letter, draw(between)))
    if draw(st.booleans()):  # the line's end first, then its beginning
        at = draw(st.integers(1, len(secret) - 1))
        text = f"{'x' * at}{secret[at:]}\r{secret[:at]}\x1b[m\n"
    text = draw(st.sampled_from(["", "a line\n", "\x1b[32m"])) + text
    text += draw(st.sampled_from(["", "\n", "\x1b[m", "\n\x1b[m more\n"]))
    cuts = sorted(draw(st.sets(st.integers(1, len(text) - 1), max_size=4)))
    return text, [text[i:j] for i, j in zip([0, *cuts], [*cuts, None], strict=True)]


@examples(100)
@given(hidden())
def test_a_secret_that_only_a_terminal_shows_is_replaced_also_in_pieces(
    redactor: Redactor, found: tuple[str, list[str]]
) -> None:
    text, pieces = found
    assert redactor.text(clean(text))[1] == 1
    for shown, count in (redactor.text(text), streamed(redactor, pieces)):
        assert count == 1
        assert redactor.text(shown) == (shown, 0)
        assert redactor.text(clean(shown)) == (clean(shown), 0)
        assert "[redacted: " in clean(shown)


def test_only_what_may_begin_a_secret_waits(redactor: Redactor) -> None:
    redaction = Redaction(redactor)
    assert redaction.stream("stdout", "xj") == "xj"
    assert redaction.stream("stdout", "aex_t_") == "aex_t_"  # no secret so far
    assert redaction.stream("stdout", "01") == ""
    assert redaction.stream("stderr", "y KD-") == "y "
    assert redaction.stream("stdout", "!") == "01!"
    assert redaction.rest() == [("stderr", "KD-")]
    assert redaction.rest() == []
    assert redaction.count == 0


def test_a_secret_of_any_length_does_not_wait_for_ever() -> None:
    redactor = Redactor([Rule("long", regex.compile("<<[^>]{1,1000000}>>"))])
    shown, count = streamed(redactor, ["a <<", "s" * 10_000, "s" * 10_000, "t"])
    assert (shown, count) == ("a [redacted: long]t", 1)
    assert 10_000 < MOST_HELD < 20_000


def test_values_are_found_as_json_python_html_and_addresses_write_them(redactor: Redactor) -> None:
    mark = "[redacted: DB_PASSWORD]"
    for written in (
        PASSWORD,
        repr(PASSWORD)[1:-1],
        "hunter2 &quot;quoted&quot; \\ &lt;ü&gt;",
        'hunter2 "quoted" \\ &lt;ü&gt;',
        "hunter2%20%22quoted%22%20%5C%20%3C%C3%BC%3E",
    ):
        assert redactor.text(f"({written})") == (f"({mark})", 1)
    for ascii_only in (True, False):
        text = json.dumps({"p": [PASSWORD, {PASSWORD: 1}]}, ensure_ascii=ascii_only)
        shown, count = redactor.text(text)
        assert (json.loads(shown), count) == ({"p": [mark, {mark: 1}]}, 2)


def test_a_cut_preview_has_no_part_of_a_secret(
    redactor: Redactor,
) -> None:
    mark = "[redacted: the beginning of a secret]"
    assert redactor.text(f"'{TOKEN}, {PASSWORD[:7]}…") == (
        f"'[redacted: agent token], {mark}…",
        2,
    )
    assert redactor.text(f"'{TOKEN[:60]}…") == (f"'{mark}…", 1)
    assert redactor.text("'some words of hun…") == ("'some words of hun…", 0)


def test_json_stays_json_and_what_has_no_secret_stays_as_it_is(redactor: Redactor) -> None:
    eats_all = Redactor([Rule("all", regex.compile("password.{1,50}"))])
    shown, count = eats_all.text('{"said": "password: 1234", "n": 1}')
    assert (json.loads(shown), count) == ({"said": "[redacted: all]", "n": 1}, 1)
    for text in ('{"a":  "\\n"}', "[1, 2", "{" * 100_000, "\\", "", '["\\ud800"]'):
        assert redactor.text(text) == (text, 0)


def test_what_was_replaced_is_not_replaced_again() -> None:
    redactor = Redactor([Rule("words", regex.compile(r"(?:agent|red)\w{1,9}|token|words"))])
    once, count = redactor.text(f"redder {TOKEN} token")
    assert (once, count) == ("[redacted: words] [redacted: agent token] [redacted: words]", 3)
    assert redactor.text(once) == (once, 0)
    assert Redactor().text(f"[redacted: {TOKEN}]") == ("[redacted: [redacted: agent token]]", 1)


def test_images_stay_as_they_are_and_other_outputs_do_not() -> None:
    content = {
        "data": {
            "image/png": IMAGE,
            "image/svg+xml": f"<svg>{TOKEN}</svg>",
            "text/html": [f"<b>{TOKEN}", "</b>"],
            "application/json": {"a": [TOKEN, 1, None]},
        },
        "metadata": {TOKEN: {"x": TOKEN}},
        "transient": {"display_id": TOKEN},
    }
    redaction = Redaction(Redactor())
    shown = redaction.content(content)
    assert (shown["data"]["image/png"], shown["transient"]) == (IMAGE, content["transient"])
    del shown["data"]["image/png"], shown["transient"]
    assert TOKEN not in json.dumps(shown)
    assert redaction.count == 5


@pytest.mark.parametrize(
    ("mimetype", "data"),
    [
        ("text/html", "<b>KD</b>-<i class='a > b'>12345678</i>"),
        ("text/html", "&#75;D-1234<!-- x -->5678"),
        ("text/html", "KD-1234<script>1</script>5678"),
        ("text/markdown", "KD-1234<b></b>5678"),
        ("image/svg+xml", "<svg><text>KD-<tspan>12345678</tspan></text></svg>"),
        ("text/plain", ["KD-", "12345678"]),
        ("text/plain", "KD-\x1b[1m12345678"),
        ("image/png", "KD-12345678"),
        ("image/png", ["KD-", "12345678"]),
        ("audio/wav", base64.b64encode(b"KD-12345678").decode()),
        ("application/pdf", base64.b64encode(bytes(1000) + b"KD-12345678").decode()),
        ("application/json", {"key": "x"}),
    ],
)
def test_a_secret_is_found_in_what_a_reader_sees_of_data(mimetype: str, data: Any) -> None:
    patterns = {"customer": r"KD-\d{8}", "pair": '"key": "x'}
    redactor = RedactionTraits(redact_patterns=patterns).redactor()
    redaction = Redaction(redactor)
    shown = redaction.content({"data": {mimetype: data}, "metadata": {}})["data"]
    assert redaction.count == 1
    assert "[redacted: " in json.dumps(shown)
    assert redaction.content({"data": shown, "metadata": {}})["data"] == shown
    assert redaction.count == 1


def test_markup_around_a_secret_stays() -> None:
    redactor = Redactor([Rule("customer", regex.compile(r"KD-\d{8}"))])
    page = "<p>a &lt; b</p><td>of <b>KD</b>-12345678</td><td>&eacute;</td>"
    shown, count = redactor.value({"text/html": page})
    assert shown["text/html"] == (
        "<p>a &lt; b</p><td>of <b>[redacted: customer]</td><td>&eacute;</td>"
    )
    assert count == 1


def test_without_rules_an_execution_costs_one_object_and_one_check() -> None:
    calls: list[str] = []

    def note(frame: FrameType, event: str, arg: object) -> None:
        if event == "call" and frame.f_code.co_filename == module.__file__:
            calls.append(frame.f_code.co_qualname)

    redactor = Redactor()
    said = [
        ("stream", {"name": "stdout", "text": "a line\n"}),
        ("display_data", {"data": {"text/plain": "<a page>", "text/html": "<b>a</b>"}}),
        ("error", {"ename": "E", "evalue": "v", "traceback": ["\x1b[31mE\x1b[0m: v"]}),
    ]
    sys.setprofile(note)
    try:
        redactor.text("print('a line')")
        outputs = Outputs(
            ExecutionId("x_1"), Displays(), max_output_bytes=1000, sink=None, redactor=redactor
        )
        for msg_type, content in said * 3:
            message = decoded(b"{}", b"{}", json.dumps(content).encode())
            outputs.feed(msg_type, message.content, may_have_token=message.may_have_token)
        outputs.finish()
    finally:
        sys.setprofile(None)
    assert calls == ["Redactor.text", "Redaction.__init__"]


def test_what_was_shown_before_other_output_still_begins_a_secret(redactor: Redactor) -> None:
    redaction = Redaction(redactor)
    assert redaction.stream("stdout", "of KD-1234") == "of "
    assert redaction.rest() == [("stdout", "KD-1234")]
    assert redaction.stream("stdout", "5678, ") == "[redacted: customer], "
    assert redaction.stream("stdout", "KD-1234") == ""
    assert redaction.rest() == [("stdout", "KD-1234")]
    assert redaction.stream("stdout", " 5678\n") == " 5678\n"
    assert redaction.count == 1


def test_a_secret_over_lines_of_a_traceback_is_found() -> None:
    redactor = Redactor([Rule("key", regex.compile(r"BEGIN\n\w{1,9}\nEND"))])
    redaction = Redaction(redactor)
    error = {"ename": "E", "evalue": "", "traceback": ["a BEGIN", "secret", "END b"]}
    assert redaction.content(error)["traceback"] == ["a [redacted: key] b"]


def test_each_common_credential_is_known_by_its_form() -> None:
    a = "aB3" * 20
    examples = {
        "AWS access key": "AKIAIOSFODNN7EXAMPLE",
        "AWS secret key": f"aws_secret_access_key = {a[:40]}",
        "GitHub token": f"ghp_{a[:36]}",
        "GitLab token": f"glpat-{a[:20]}",
        "Google API key": f"AIza{a[:35]}",
        "Hugging Face token": f"hf_{a[:34]}",
        "JSON web token": f"eyJ{a[:20]}.eyJ{a[:40]}.{a[:43]}",
        "npm token": f"npm_{a[:36]}",
        "password in an address": "://ada:lovelace@",
        "private key": f"-----BEGIN RSA PRIVATE KEY-----\n{a}\n-----END RSA PRIVATE KEY-----",
        "PyPI token": f"pypi-{a}",
        "secret API key": f"sk-proj-{a}",
        "Slack token": f"xoxb-{a}",
        "Stripe key": f"sk_live_{a[:24]}",
    }
    assert examples.keys() == CREDENTIALS.keys()
    redactor = RedactionTraits(redact_credentials=True).redactor()
    for name, example in examples.items():
        assert redactor.text(f"x {example} y") == (f"x [redacted: {name}] y", 1)
        for at in range(4, len(example)):
            shown, count = streamed(redactor, [f"x {example[:at]}", f"{example[at:]} y"])
            assert count == 1, (name, at)
            assert example[4:] not in shown
    said = "The risk-free https://example.org:8888/ask-me, sk-learn and github_pat are no secrets."
    assert redactor.text(said) == (said, 0)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"redact_patterns": {"a": "a+"}}, "'a' has a repeat without a bound"),
        ({"redact_patterns": {"a": "(?:a|b*)c"}}, "without a bound"),
        ({"redact_patterns": {"a": "a{2,}"}}, "without a bound"),
        ({"redact_patterns": {"a": "((a{1,9})b){1,9}"}}, "a repeat within a repeat"),
        ({"redact_patterns": {"a": "("}}, "'a' is not a regular expression: "),
        ({"redact_patterns": {"a": "x?"}}, "which is everywhere"),
        ({"redact_patterns": {"a]": "x"}}, "cannot be a name"),
        ({"redact_env": ["SHORT_ONE"]}, "SHORT_ONE has less than 6 characters"),
    ],
)
def test_what_would_hang_or_replace_too_much_is_refused_at_the_start(
    given: dict[str, Any], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHORT_ONE", "12345")
    with pytest.raises(TraitError, match=regex.escape(why)):
        RedactionTraits(**given)


def test_a_pattern_that_takes_too_long_hides_the_text_once_and_for_all() -> None:
    slow = Rule("slow", regex.compile(r"(?:a{1,30}){1,30}b"))  # refused as a configuration
    redaction = Redaction(Redactor([slow]))
    shown = redaction.stream("stdout", "a" * 200)
    assert shown == "[redacted: slow took too long, with all that follows]"
    assert redaction.stream("stdout", "more") == ""  # in no time
    assert redaction.content({"data": {"text/plain": "x"}}) == {"data": {"text/plain": shown}}
    assert Redactor([slow]).text("a" * 200) == ("[redacted: slow took too long]", 1)


def test_a_source_fits_its_record_if_only_replaced_secrets_differ() -> None:
    recorded = "a = '[redacted: agent token]'\nb = '[redacted: X]'\n"
    assert may_be(f"a = '{TOKEN}'\nb = 'x'\n", recorded)
    assert may_be(recorded, recorded)
    assert not may_be(f"a = '{TOKEN}'\nc = 'x'\n", recorded)
    assert not may_be("a = '", recorded)
    assert not may_be("other", "no marks")
    assert OWN_TOKENS.public < len(TOKEN)
