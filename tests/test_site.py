"""The documentation builds as a site, without a warning, and no link inside it is dead."""

from __future__ import annotations

import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.real_server import PROJECT


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet"),
            *("--doctree-dir", folder / "doctrees", PROJECT / "docs", folder / "html"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder / "html"


class _Page(HTMLParser):
    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.images: list[dict[str, str | None]] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = dict(attrs)
        self.ids |= {str(told[name]) for name in ("id", "name") if told.get(name)}
        self.links += [str(told[name]) for name in ("href", "src") if told.get(name)]
        if tag == "img":
            self.images.append(told)


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, _Page]:
    return {path: _Page(path) for path in site.rglob("*.html") if "_static" not in path.parts}


def test_no_link_inside_it_is_dead(site: Path, pages: dict[Path, _Page]) -> None:
    dead = []
    for path, page in pages.items():
        for link in page.links:
            url = urlsplit(link)
            if url.scheme or url.netloc:
                continue
            target = (path.parent / unquote(url.path)).resolve() if url.path else path
            if target in pages:
                there = not url.fragment or unquote(url.fragment) in pages[target].ids
            else:
                there = target.is_file()
            if not there:
                dead.append(f"{path.relative_to(site)}: {link}")
    assert dead == []


def test_every_page_can_be_reached_from_the_first(site: Path, pages: dict[Path, _Page]) -> None:
    start = site / "index.html"
    seen, todo = {start}, [start]
    while todo:
        path = todo.pop()
        for link in pages[path].links:
            target = (path.parent / unquote(urlsplit(link).path)).resolve()
            if target in pages and target not in seen:
                seen.add(target)
                todo.append(target)
    assert {path.name for path in pages.keys() - seen} <= {"genindex.html", "search.html"}


def test_every_image_says_what_it_shows(pages: dict[Path, _Page]) -> None:
    images = [image for page in pages.values() for image in page.images]
    assert images
    assert [image for image in images if not image.get("alt")] == []


def test_routes_settings_commands_and_tools_are_in_it(site: Path) -> None:
    for page, text in (
        ("openapi", "POST /sessions/{session_id}/executions"),
        ("configuration", "max_timeout"),
        ("cli", "--isolated"),
        ("mcp-tools", "edit_notebook"),
        ("changelog", "0.2.0"),
    ):
        assert text in (site / "reference" / f"{page}.html").read_text(encoding="utf-8"), page
