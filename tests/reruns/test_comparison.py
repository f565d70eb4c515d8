"""What counts as a difference between two runs, and what does not."""

from __future__ import annotations

import io
from base64 import b64decode, b64encode
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from jupyter_agent_exec.reruns.comparison import MAX_DIFF_CHARACTERS, compare
from PIL import Image, ImageDraw

from jupyter_agent_exec.models import RerunRules

NOW = datetime(2026, 11, 24, 17, 0, tzinfo=UTC)
BEFORE = NOW - timedelta(days=40)


def printed(text: str, name: str = "stdout") -> dict[str, Any]:
    return {"output_type": "stream", "name": name, "text": text}


def shown(**data: Any) -> dict[str, Any]:
    data = {name.replace("__", "+").replace("_", "/"): value for name, value in data.items()}
    return {"output_type": "display_data", "data": data, "metadata": {}}


def raised(ename: str, evalue: str) -> dict[str, Any]:
    return {"output_type": "error", "ename": ename, "evalue": evalue, "traceback": []}


def picture(*, dot: bool = False, width: int = 40, noise: int = 0) -> str:
    image = Image.new("RGB", (width, 30), (250 - noise, 250, 250))
    if dot:
        ImageDraw.Draw(image).rectangle((5, 5, 20, 20), fill="red")
    file = io.BytesIO()
    image.save(file, "PNG")
    return b64encode(file.getvalue()).decode()


def told(before: list[Any], after: list[Any], **rules: Any) -> list[str]:
    found = compare(before, after, RerunRules(**rules), NOW)
    assert not found.unclear
    return [difference.what for difference in found.differences]


THE_SAME = {
    "an address": ("<object at 0x7f3a2c1b9d30>", "<object at 0x7fae00c19ab0>"),
    "an id": ("550e8400-e29b-41d4-a716-446655440000", "7c9e6679-7425-40de-944b-e07fc1f90ae7"),
    "a temporary folder": ("/tmp/tmpab12/plot.png saved", "/tmp/tmpzz98/plot.png saved"),
    "how long it took": ("Wall time: 1.2 s", "Wall time: 980 ms"),
    "a loop": ("4.5 µs ± 30 ns per loop", "4.7 µs ± 9.1 ns per loop"),
    "a progress bar": (
        "100%|██| 3/3 [00:01<00:00, 2.9it/s]",
        "100%|██| 3/3 [00:02<00:00, 1.9it/s]",
    ),
    "the time of the run": (f"run at {BEFORE.isoformat()}", f"run at {NOW.isoformat()}"),
    "a local time": ("at 2026-10-15 17:00:03.123", "at 2026-11-24 16:58"),
    "a date of C": ("Thu Oct 15 17:00:00 2026", "Tue Nov 24 17:00:00 2026"),
    "the last digits": ("mean 0.30000000000000004", "mean 0.3"),
    "a column that became wider": ("a     0.1000000001\nb  12.0", "a  0.1\nb  12.0"),
    "what a terminal shows": ("10%\r100%", "100%"),
    "colours": ("\x1b[31mred\x1b[0m", "red"),
    "spaces at the end": ("x  \n", "x"),
}

DRIFTS = {
    "an integer": ("344 rows", "343 rows"),
    "a number": ("mean 4.207", "mean 4.201"),
    "a sign": ("slope 0.5", "slope -0.5"),
    "a word": ("penguins: Adelie", "penguins: Gentoo"),
    "a line more": ("a\nb", "a\nb\nc"),
    "the order": ("a\nb", "b\na"),
    "a digest": ("d41d8cd98f00b204e9800998ecf8427e", "0cc175b9c0f1b6a831c399e269772661"),
    "a time in data": ("first 2020-01-01 00:00:00", "first 2020-01-02 00:00:00"),
    "a file's name": ("/data/a/sales.csv", "/data/b/costs.csv"),
    "seconds that are data": ("reaction: 12 s", "reaction: 19 s"),
}


@pytest.mark.parametrize("what", THE_SAME)
def test_what_differs_by_itself_is_no_difference(what: str) -> None:
    before, after = THE_SAME[what]
    assert told([printed(before)], [printed(after)]) == []
    assert told([shown(text_plain=before)], [shown(text_plain=after)]) == []


@pytest.mark.parametrize("what", DRIFTS)
def test_a_drift_is_told(what: str) -> None:
    before, after = DRIFTS[what]
    assert told([printed(before)], [printed(after)]) == ["What the code printed to stdout differs."]
    assert told([shown(text_html=before)], [shown(text_html=after)]) == [
        "Output 1 (text/html) differs."
    ]


def test_a_difference_comes_with_the_lines_that_differ_and_no_others() -> None:
    before = "at 0x7f3a2c1b9d30\nmean 1.0000000001\nrows 3"
    after = "at 0x7fae00c19ab0\nmean 1.0\nrows 4"
    [difference] = compare([printed(before)], [printed(after)], RerunRules(), NOW).differences
    lines = difference.diff.split("\n")
    assert [line for line in lines if line[0] in "+-" and line[:3] not in ("+++", "---")] == [
        "-rows 3",
        "+rows 4",
    ]


def test_a_long_difference_is_cut_and_says_so() -> None:
    after = [printed("\n".join(map(str, range(10_000))))]
    [difference] = compare([printed("x")], after, RerunRules(), NOW).differences
    assert len(difference.diff) < MAX_DIFF_CHARACTERS + 100
    assert difference.diff.endswith(" more)")


def test_many_lines_that_are_alike_are_compared_and_numbered() -> None:
    before, after = ["0"] * 100_000, ["0"] * 100_000
    after[50_000] = "1"
    [difference] = compare(
        [printed("\n".join(before))], [printed("\n".join(after))], RerunRules(), NOW
    ).differences
    assert difference.diff.split("\n")[2] == "@@ -49999,5 +49999,5 @@"
    assert "+1" in difference.diff


def test_a_pattern_that_takes_forever_is_ended_and_told() -> None:
    before, after = [printed("a" * 200 + "b")], [printed("a" * 200 + "c")]
    found = compare(before, after, RerunRules(ignore=["(a+)+$"]), NOW)
    assert found.differences == []
    [unclear] = found.unclear
    assert unclear.startswith("rules.ignore: The pattern takes more than")


def test_the_order_of_both_streams_does_not_count() -> None:
    before = [printed("a\n"), printed("warning", "stderr"), printed("b\n")]
    assert told(before, [printed("warning", "stderr"), printed("a\nb\n")]) == []


def test_images_are_compared_by_what_they_show() -> None:
    def told_of(before: str, after: str) -> list[str]:
        return told([shown(image_png=before)], [shown(image_png=after)])

    assert told_of(picture(), picture(noise=1)) == []
    assert told_of(picture(), picture(dot=True))[0].startswith(
        "Output 1 (image/png) looks different"
    )
    assert told_of(picture(), picture(width=41)) == ["Output 1 (image/png) has another size."]
    assert told_of(picture(), "bm8=")[0].startswith("Output 1 (image/png) cannot be read")
    broken = b64decode(picture())
    huge = broken[:16] + bytes((0, 0, 0x7F, 0xFF, 0, 0, 0x7F, 0xFF)) + broken[24:]
    for damaged in (huge, broken[:40] + b"?" + broken[41:]):
        shown_now = b64encode(damaged).decode()
        assert told_of(picture(), shown_now)[0].startswith("Output 1 (image/png) cannot be read")


def test_ids_in_an_svg_do_not_count_but_colours_do() -> None:
    svg = '<svg><g id="{id}"/><use href="#{id}" fill="#{fill}" clip-path="url(#{id})"/></svg>'
    mimetype = "image/svg+xml"

    def told_of(**after: str) -> list[str]:
        one, other = svg.format(id="m1", fill="f00"), svg.format(**after)
        return told(
            [{"output_type": "display_data", "data": {mimetype: one}}],
            [{"output_type": "display_data", "data": {mimetype: other}}],
        )

    assert told_of(id="m2", fill="f00") == []
    assert told_of(id="m1", fill="0f0") == ["Output 1 (image/svg+xml) differs."]


def test_a_widget_is_compared_without_the_id_of_its_model() -> None:
    kind = "application/vnd.jupyter.widget-view+json"

    def widget(**view: Any) -> list[Any]:
        return [{"output_type": "display_data", "data": {kind: view}}]

    assert told(widget(model_id="a", version_major=2), widget(model_id="b", version_major=2)) == []
    assert told(widget(model_id="a", version_major=2), widget(model_id="a", version_major=3))


def test_outputs_that_are_missing_or_new_are_told() -> None:
    one = shown(text_plain="a")
    assert told([one], []) == ["There were 1 results and displays; now there are 0."]
    assert told([one], [shown(text_plain="a", text_html="<b>a</b>")]) == [
        "Output 1 had no text/html before."
    ]
    assert told([shown(text_plain="a", text_html="<b>a</b>")], [one]) == [
        "Output 1 has no text/html now."
    ]


def test_errors_are_compared_by_name_and_message() -> None:
    error = raised("KeyError", "'x'")
    assert told([error], [error]) == []
    assert told([error], []) == ["It raised KeyError before, and nothing now."]
    assert told([], [error]) == ["It raised KeyError now."]
    assert told([error], [raised("ValueError", "'x'")]) == [
        "It raised KeyError before, and ValueError now."
    ]
    assert told([error], [raised("KeyError", "'y'")]) == ["The error's message differs."]


def test_rules_say_what_else_does_not_count() -> None:
    assert told([printed("seed 42")], [printed("seed 43")], ignore=[r"seed \d+"]) == []
    assert told([printed("0.51")], [printed("0.52")], float_tolerance=0.05) == []
    images = [shown(image_png=picture())], [shown(image_png=picture(dot=True))]
    assert told(*images, image_tolerance=1) == []
