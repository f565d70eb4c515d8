"""The page about MCP clients shows what `jupyter agent-exec connect` prints for each."""

from __future__ import annotations

import re
from pathlib import Path

from jupyter_agent_exec.text.connections import connections

PAGE = Path(__file__).parent.parent / "docs" / "how-to" / "clients.md"


def test_the_page_shows_the_lines_of_each_client() -> None:
    text = PAGE.read_text(encoding="utf-8")
    block = r"<!-- tested by tests/test_client_pages.py -->\n```\w+\n(.*?)```"
    shown = re.findall(rf"\n## ([^\n]+)\n[^#]*?{block}", text, re.S)
    made = connections("http://localhost:8888/api/agent-exec/mcp")
    assert shown == [(each.title.partition(":")[0], each.text) for each in made]
    for each in made:
        assert f"`{each.file}`" in text or each.file is None
