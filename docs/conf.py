"""How Sphinx builds the documentation: `make docs`."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from sphinx.application import Sphinx

from jupyter_agent_exec import __version__

DOCS = Path(__file__).parent
ROOT = DOCS.parent
sys.path.insert(0, str(ROOT))

from scripts.references import completed  # noqa: E402

project = "jupyter-agent-exec"
author = "the jupyter-agent-exec developers"
version = release = __version__
extensions = ["myst_parser", "sphinx_copybutton", "sphinxcontrib.mermaid"]
exclude_patterns = ["_build"]
root_doc = "index"

myst_fence_as_directive = ["mermaid"]
myst_heading_anchors = 4
copybutton_exclude = ".linenos, .gp, .go"

html_theme = "pydata_sphinx_theme"
html_title = "jupyter-agent-exec"
html_theme_options = {
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_show_sourcelink = False
project_copyright = author

ROOT_PAGES = {
    "CHANGELOG.md": "reference/changelog.md",
    "CODE_OF_CONDUCT.md": "how-to/code-of-conduct.md",
    "CONTRIBUTING.md": "how-to/contribute.md",
    "RELEASE.md": "how-to/release.md",
    "SECURITY.md": "explanation/security.md",
    "examples/notebook/README.md": "tutorials/example-in-a-notebook.md",
    "examples/penguins/README.md": "tutorials/example-agent.md",
    "skills/jupyter-agent-exec/SKILL.md": "reference/skill.md",
}
"""Pages that are kept outside of docs/, where people and programs look for them."""


def complete_page(app: Sphinx, docname: str, source: list[str]) -> None:
    """Give a page the text of the file that it stands for, and what the code says."""
    page = DOCS / f"{docname}.md"
    origins = {DOCS / place: ROOT / origin for origin, place in ROOT_PAGES.items()}
    pages = {origin: place for place, origin in origins.items()}
    origin = origins.get(page, page)

    def link(match: re.Match[str]) -> str:
        start, target, end = match.groups()
        if ":" in target:
            return match[0]
        path = Path(os.path.normpath(origin.parent / target))
        return f"{start}{os.path.relpath(pages.get(path, path), page.parent)}{end}"

    text = completed(origin.read_text(encoding="utf-8"))
    source[0] = re.sub(r"(\]\()([^)#\s]+)([^)]*\))", link, text)


def setup(app: Sphinx) -> None:
    """Connect what is ours."""
    app.connect("source-read", complete_page)
