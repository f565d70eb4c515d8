"""What of an output may enter a notebook unreviewed: nothing that runs, loads or covers."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from jupyter_agent_exec.text.inert import (
    MAX_HTML_LENGTH,
    MAX_MARKUP_LENGTH,
    inert,
    is_harmless_tex,
    kind_of,
    sanitised,
)
from jupyter_agent_exec.types import Output

CORPUS = json.loads(Path(__file__).with_name("inert_html.json").read_text())
"""HTML and what is left of it. The page's sanitizer is held to the same, in inert.spec.ts."""

TEX = json.loads(Path(__file__).with_name("inert_tex.json").read_text())
"""Formulas that reach beyond themselves, and others. The page holds itself to the same."""

PAYLOADS = [
    "<script>alert(1)</script>",
    "<SCRIPT SRC=https://evil.example/x.js></SCRIPT>",
    "<scr<script>ipt>alert(1)</scr</script>ipt>",
    "<img src=x onerror=alert(1)>",
    "<img src='x' ONERROR='alert(1)'>",
    '<img src="data:image/png;base64,AA==" onload="alert(1)">',
    "<img/src=x/onerror=alert(1)>",
    '<img src="https://evil.example/track.png">',
    '<img src="//evil.example/track.png">',
    '<img srcset="https://evil.example/a.png 1x" src="/files/secret.png">',
    '<img src="data:image/svg+xml;base64,PHN2Zy8+">',
    '<img src="data:text/html,<script>alert(1)</script>">',
    '<img src="javascript:alert(1)">',
    "<svg onload=alert(1)>",
    "<svg><script>alert(1)</script></svg>",
    "<svg><animate onbegin=alert(1) attributeName=x dur=1s>",
    '<svg><a xlink:href="javascript:alert(1)"><text y=20>x</text></a></svg>',
    "<math><mtext><table><mglyph><style><img src=x onerror=alert(1)>",
    '<math href="javascript:alert(1)">x</math>',
    '<iframe src="javascript:alert(1)"></iframe>',
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
    '<object data="data:text/html,<script>alert(1)</script>"></object>',
    "<embed src=javascript:alert(1)>",
    '<a href="javascript:alert(1)">x</a>',
    '<a href=" java\tscript:alert(1)">x</a>',
    '<a href="JaVaScRiPt&colon;alert(1)">x</a>',
    '<a href="&#106;avascript:alert(1)">x</a>',
    '<a href="data:text/html,<script>alert(1)</script>">x</a>',
    '<a href="vbscript:msgbox(1)">x</a>',
    '<a href="/api/contents/x" target="_self" rel="opener">x</a>',
    '<form action="https://evil.example"><input name=p autofocus onfocus=alert(1)></form>',
    "<button formaction=javascript:alert(1)>x</button>",
    "<input type=image src=x onerror=alert(1)>",
    "<details open ontoggle=alert(1)>x</details>",
    "<video><source onerror=alert(1)></video>",
    "<audio src=x onerror=alert(1)>",
    "<body onload=alert(1)>",
    "<link rel=stylesheet href=https://evil.example/x.css>",
    '<meta http-equiv=refresh content="0;url=https://evil.example">',
    "<base href=https://evil.example/>",
    "<style>.jp-Toolbar{display:none}</style>",
    "<style>@import 'https://evil.example/x.css';</style>",
    '<div style="position:fixed;inset:0;background:red">x</div>',
    '<td style="text-align: right; background: url(https://evil.example/x)">x</td>',
    '<table><tr style="text-align: right;position:absolute"><td>x</td></tr></table>',
    '<div id="jp-main-dock-panel" class="jp-Toolbar" name="x">x</div>',
    '<table class="dataframe jp-Dialog"><tr><td>x</td></tr></table>',
    "<noscript><p title='</noscript><img src=x onerror=alert(1)>'></noscript>",
    "<textarea></textarea><img src=x onerror=alert(1)>",
    "<template><img src=x onerror=alert(1)></template>",
    "<select><option><img src=x onerror=alert(1)></select>",
    "<!--><img src=x onerror=alert(1)>-->",
    "<![CDATA[<img src=x onerror=alert(1)>]]>",
    "<xmp><img src=x onerror=alert(1)></xmp>",
    "<plaintext><img src=x onerror=alert(1)>",
    "<marquee onstart=alert(1)>x</marquee>",
    '<x-custom onclick="alert(1)" contenteditable>x</x-custom>',
    '<p onclick="alert(1)" tabindex=1 accesskey=x>x</p>',
    "<form><math><mtext></form><form><mglyph><style></math><img src onerror=alert(1)>",
    '<a href="https://evil.example" ping="https://evil.example/p" onclick=alert(1)>x</a>',
    "<b>x</b>\x00<script>alert(1)</script>",
]

ALLOWED_TAGS = frozenset(
    {"table", "caption", "colgroup", "col", "thead", "tbody", "tfoot", "tr", "th", "td"}
    | {"a", "abbr", "b", "blockquote", "br", "cite", "code", "dd", "del", "details", "dfn", "div"}
    | {"dl", "dt", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "i", "img", "ins", "kbd", "li"}
    | {"mark", "ol", "p", "pre", "q", "s", "samp", "small", "span", "strong", "sub", "summary"}
    | {"sup", "tt", "u", "ul", "var", "wbr"}
)
ALLOWED_ATTRIBUTES = frozenset(
    {"href", "title", "src", "alt", "width", "height", "start", "colspan", "rowspan", "border"}
    | {"align", "valign", "scope", "style", "class", "target", "rel"}
)


class Parsed(HTMLParser):
    """Asserts of each tag that it is harmless."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        assert tag in ALLOWED_TAGS
        for name, value in attrs:
            assert name in ALLOWED_ATTRIBUTES
            assert not name.startswith("on")
            assert value is not None
            self._attribute(tag, name, value)

    def _attribute(self, tag: str, name: str, value: str) -> None:
        fixed = {
            "style": {"text-align: right;", "text-align: left;", "text-align: center;"},
            "class": {"dataframe"},
            "target": {"_blank"},
            "rel": {"noopener noreferrer"},
        }
        if name in fixed:
            assert value in fixed[name]
        if name == "href":
            assert value.startswith(("https://", "http://", "mailto:"))
        if name == "src":
            assert value.startswith("data:image/png;base64,")

    def handle_decl(self, decl: str) -> None:
        raise AssertionError(decl)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)


class Text(HTMLParser):
    """Collects the text of HTML."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(html)
        self.close()

    def handle_data(self, data: str) -> None:
        self.found.append(data)


def display(**data: Any) -> Output:
    bundle = {key.replace("_", "/", 1): value for key, value in data.items()}
    return {"output_type": "display_data", "data": bundle, "metadata": {}}


def of_data(
    data: dict[str, Any], metadata: dict[str, Any] | None = None
) -> tuple[Output, list[str]]:
    output = {"output_type": "display_data", "data": data, "metadata": metadata or {}}
    (copy,), held = inert([output])
    return copy, held


@pytest.mark.parametrize("payload", PAYLOADS)
@pytest.mark.parametrize("frame", ["{}", "<table class='dataframe'><tr><td>{}</td></tr></table>"])
def test_nothing_of_a_payload_is_left(payload: str, frame: str) -> None:
    copy, held = of_data({"text/html": frame.format(payload)})
    html = copy["data"].get("text/html", "")
    Parsed(html)
    assert "alert" not in html or "<" not in html.partition("alert")[2].partition(")")[0]
    assert held
    again, held_again = inert([copy])
    assert (again, held_again) == ([copy], [])


def frames() -> dict[str, str]:
    flat = pd.DataFrame({"region": ["north", "<b>south</b>"], "sales": [1.5, 2.25]})
    product = pd.MultiIndex.from_product
    multi = pd.DataFrame(
        [[1, 2, 3, 4]] * 4,
        index=product([["p", "q"], [1, 2]], names=["k", "l"]),
        columns=product([["A", "B"], ["x", "y"]]),
    )
    return {
        "flat": flat._repr_html_(),  # type: ignore[operator]
        "multi": multi._repr_html_(),  # type: ignore[operator]
        "long": pd.DataFrame({"n": range(100)})._repr_html_(),  # type: ignore[operator]
        "to_html": flat.to_html(justify="center"),
    }


def shape(html: str) -> list[tuple[str, list[tuple[str, str | None]]]]:
    """Return tags with what pandas says of their looks."""
    found: list[tuple[str, list[tuple[str, str | None]]]] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            found.append((tag, sorted(a for a in attrs if a[0] != "halign")))

    Reader().feed(html)
    return [one for one in found if one[0] != "style"]


@pytest.mark.parametrize("name", frames())
def test_a_table_of_pandas_keeps_its_looks_and_nothing_is_held(name: str) -> None:
    html = frames()[name]
    copy, held = of_data({"text/html": html, "text/plain": "…"})
    Parsed(copy["data"]["text/html"])
    assert shape(copy["data"]["text/html"]) == shape(html)
    assert "<style" not in copy["data"]["text/html"]
    assert not held


def test_a_styler_loses_its_colours_and_is_said_to_be_held() -> None:
    html = pd.DataFrame({"a": [1, 2]}).style.highlight_max()._repr_html_()  # type: ignore[operator]
    copy, held = of_data({"text/html": html})
    assert "<style" in html
    Parsed(copy["data"]["text/html"])
    assert "background" not in copy["data"]["text/html"]
    assert held


def test_a_style_of_somebody_else_is_not_taken_for_that_of_pandas() -> None:
    html = "<style scoped>.dataframe td { background: url(https://x) }</style><table></table>x"
    copy, held = of_data({"text/html": html})
    assert copy["data"]["text/html"] == "<table></table>x"
    assert held


def test_text_images_streams_errors_and_json_stay_as_they_are() -> None:
    outputs: list[Output] = [
        {"output_type": "stream", "name": "stdout", "text": "<script>\x1b[31mred"},
        {"output_type": "error", "ename": "E", "evalue": "<b>", "traceback": ["\x1b[0mE: <b>"]},
        {
            "output_type": "execute_result",
            "data": {"text/plain": "<script>", "image/png": "AAAA", "application/json": {"a": [1]}},
            "metadata": {"image/png": {"width": 10, "height": 20}},
            "execution_count": 3,
        },
    ]
    assert inert(outputs) == (outputs, [])


def test_lines_of_a_text_may_be_a_list() -> None:
    copy, held = of_data({"text/html": ["<b>x", "</b>"], "text/plain": ["x\n", "y"]})
    assert copy["data"] == {"text/html": "<b>x</b>", "text/plain": ["x\n", "y"]}
    assert not held


@pytest.mark.parametrize(
    "mimetype",
    [
        "application/javascript",
        "text/javascript",
        "image/svg+xml",
        "application/vnd.plotly.v1+json",
        "application/vnd.vegalite.v5+json",
        "application/vnd.jupyter.widget-view+json",
        "application/vnd.bokehjs_exec.v0+json",
        "application/geo+json",
        "application/pdf",
        "text/HTML",
        "text/html; charset=utf-8",
        "text/vnd.unknown",
    ],
)
def test_what_is_active_or_unknown_is_held_and_named(mimetype: str) -> None:
    copy, held = of_data({mimetype: "alert(1)"}, {mimetype: {"isolated": True}})
    said = f"[{kind_of(mimetype)} hidden until you accept the outputs]"
    assert copy["data"] == {"text/plain": said}
    assert copy["metadata"] == {}
    assert held == [mimetype]
    assert inert([copy]) == ([copy], [])


def test_what_stands_beside_something_held_is_kept() -> None:
    data = {
        "application/vnd.jupyter.widget-view+json": {"model_id": "1"},
        "text/plain": "IntText()",
    }
    held = ["application/vnd.jupyter.widget-view+json"]
    assert of_data(data) == (of_data({"text/plain": "IntText()"})[0], held)


def test_html_that_shows_nothing_without_its_script_is_held() -> None:
    copy, held = of_data(
        {"application/vnd.plotly.v1+json": {}, "text/html": "<div id=a></div><script>p()</script>"}
    )
    assert copy["data"] == {
        "text/plain": "[Plotly chart, HTML hidden until you accept the outputs]"
    }
    assert held


MARKDOWN = [
    (
        "# Title\n\n*a* `b<` ~~c~~",
        "<h1>Title</h1><p><em>a</em> <code>b&lt;</code> <del>c</del></p>",
    ),
    (
        "|a|b|\n|:-|-:|\n|1|2|",
        '<table><thead><tr><th style="text-align: left;">a</th>'
        '<th style="text-align: right;">b</th>'
        '</tr></thead><tbody><tr><td style="text-align: left;">1</td>'
        '<td style="text-align: right;">2</td></tr></tbody></table>',
    ),
    (
        "```python\nx < 1\n```\n\n```mermaid\ngraph\n```",
        "<pre><code>x &lt; 1</code></pre><pre><code>graph</code></pre>",
    ),
    ("$x_1 + y_1$\n\n$$\n\\frac{a}{b}\n$$", r"<p>\(x_1 + y_1\)</p><div>$$\frac{a}{b}$$</div>"),
    (
        "[link](https://example.org)",
        '<p><a href="https://example.org" target="_blank" rel="noopener noreferrer">link</a></p>',
    ),
]


@pytest.mark.parametrize(("source", "html"), MARKDOWN)
def test_markdown_is_rendered(source: str, html: str) -> None:
    stand_in = "<IPython.core.display.Markdown object>"
    copy, held = of_data({"text/markdown": source, "text/plain": stand_in})
    assert re.sub(r"\s*\n\s*", "", copy["data"]["text/html"]) == html
    assert not held
    assert inert([copy]) == ([copy], [])


@pytest.mark.parametrize("payload", PAYLOADS)
@pytest.mark.parametrize("frame", ["{}", "- {}", "| {} |\n| - |", "*x* {}\n===", "[{}](x)"])
def test_nothing_of_a_payload_in_markdown_is_left(payload: str, frame: str) -> None:
    copy, _ = of_data({"text/markdown": frame.format(payload)})
    assert "text/markdown" not in copy["data"]
    Parsed(copy["data"].get("text/html", ""))


@pytest.mark.parametrize(
    "source",
    [
        "[a link](javascript:alert(1)) [b]\n\n[b]: javascript:alert(1)",
        "[a link](java&#x0A;script:alert(1)) <javascript:alert(1)>",
        "![x](https://evil.example/track.png)",
        '![x](https://evil.example "x\\" onerror=\\"alert(1)")',
    ],
)
def test_a_link_that_runs_and_an_image_elsewhere_are_held(source: str) -> None:
    copy, held = of_data({"text/markdown": source})
    Parsed(copy["data"].get("text/html", ""))
    assert held == ["text/markdown"]


def test_latex_is_rendered_if_it_reaches_nothing_else() -> None:
    for source in TEX["harmless"]:
        copy, held = of_data({"text/latex": [source], "text/plain": "x/2"})
        assert copy["data"] == {"text/latex": [source], "text/plain": "x/2"}
        assert not held
    copy, held = of_data({"text/latex": "x" * (MAX_MARKUP_LENGTH + 1), "text/plain": "x"})
    assert (copy["data"], held) == ({"text/plain": "x"}, ["text/latex"])


@pytest.mark.parametrize("tex", TEX["harmful"])
def test_a_formula_that_reaches_beyond_itself_stays_text(tex: str) -> None:
    copy, held = of_data({"text/latex": f"${tex}$"})
    assert copy["data"] == {"text/plain": f"${tex}$"}
    assert held == ["text/latex"]
    for data in ({"text/html": f"<p title='{tex}'>${tex}$</p>"}, {"text/markdown": f"${tex}$"}):
        copy, _ = of_data(data)
        html = copy["data"]["text/html"]
        # An element within it keeps a formula from being typeset; attributes are not typeset.
        assert is_harmless_tex(re.sub('"[^"]*"', "", html))
        assert "".join(Text(html).found).strip("$\n()\\") in f"${tex}$"
        assert inert([copy])[0] == [copy]


def test_markdown_that_is_too_long_stays_text() -> None:
    source = "*x* " * MAX_MARKUP_LENGTH
    copy, held = of_data({"text/markdown": source})
    assert (copy["data"], held) == ({"text/plain": source}, ["text/markdown"])


def test_output_metadata_keeps_sizes_only() -> None:
    copy, _ = of_data(
        {"image/png": "AAAA", "text/html": "x"},
        {
            "isolated": True,
            "image/png": {"width": 5, "height": "100%", "needs_background": "dark", "x": 1},
            "text/html": {"isolated": True},
            "image/jpeg": {"width": 1},
        },
    )
    assert copy["metadata"] == {"image/png": {"width": 5, "needs_background": "dark"}}


def test_fields_that_are_not_of_the_format_are_dropped() -> None:
    (copy,), _ = inert([{**display(text_plain="x"), "transient": {"display_id": "d"}, "x": 1}])
    assert set(copy) == {"output_type", "data", "metadata"}


def test_an_output_of_an_unknown_kind_is_held() -> None:
    (copy,), held = inert([{"output_type": "update", "data": {"text/html": "x"}}])
    assert copy["data"]["text/plain"] == "[Output hidden until you accept the outputs]"
    assert held


def test_links_open_elsewhere_and_lead_out_only() -> None:
    copy, held = of_data({"text/html": '<a href="https://example.com/?a=1&amp;b=2">x</a>'})
    assert copy["data"]["text/html"] == (
        '<a href="https://example.com/?a=1&amp;b=2" target="_blank" rel="noopener noreferrer">x</a>'
    )
    assert not held


@pytest.mark.parametrize(
    "html",
    [
        "x" * (MAX_HTML_LENGTH + 1),
        "&" * 400_000,
        "<b>" * 100_000,
        "<span>" * 20_000 + "</x>" * 20_000,
        "<p>" + "".join(f"<b id={n}>" for n in range(64)) + "</p><p>x" * 30_000,
        "<p>" + "".join(f"<b id={n}>" for n in range(64)) + "<div>x</div>" * 30_000,
        "<table>" + "".join(f"<b id={n}>" for n in range(64)) + "<tr></tr>x" * 30_000,
    ],
    ids=["long", "entities", "deep", "walks up", "opens again", "opens again in p", "foster"],
)
def test_html_that_would_take_long_is_held_unread(html: str) -> None:
    assert sanitised(html) == (None, False)
    copy, held = of_data({"text/html": html, "text/plain": "short"})
    assert copy["data"] == {"text/plain": "short"}
    assert held


def test_a_large_table_is_sanitised() -> None:
    html = pd.DataFrame([[0.5] * 10] * 1500).to_html()
    assert len(html) > 300_000
    assert sanitised(html) == (html, True)


def test_html_that_each_parsing_changes_settles_or_is_held() -> None:
    copy, _ = of_data({"text/html": "<pre>\n\n\nx</pre>"})
    Parsed(copy["data"].get("text/html", ""))
    assert inert([copy])[0] == [copy]


def test_the_text_of_a_script_is_not_shown() -> None:
    assert sanitised("<b>x</b><script>f()</script><svg><text>y</text></svg>") == ("<b>x</b>", False)


@pytest.mark.parametrize("example", CORPUS, ids=lambda example: example["html"][:40])
def test_html_is_sanitised_as_the_page_sanitises_it(example: dict[str, str]) -> None:
    assert (sanitised(example["html"])[0] or "") == example["inert"]
