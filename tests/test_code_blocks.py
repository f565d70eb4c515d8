"""Each code block of the documentation says what tests it, or why nothing does.

The line above a block is `<!-- tested by FILE -->`, of a test file that names the page, or
`<!-- not run: REASON -->`. This file tests the blocks that need no server: configuration, commands
and requests.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
from traitlets.config import Config

from jupyter_agent_exec import models
from jupyter_agent_exec.app import AgentExecApp
from jupyter_agent_exec.cli import make_parser
from tests.test_docs import DOCUMENTS, ROOT

HERE = "tests/test_code_blocks.py"
NO_CODE = ("{toctree}", "mermaid")
REQUESTS = {
    "Open a session": models.OpenSession,
    "Run a source": models.Execute,
    "Several steps at once": models.RunSteps,
    "Input": models.GiveInput,
    "Preload": list[models.PreloadModule | models.PreloadFunction],
    "Approve before it runs": models.Approve,
    "Review": models.SetReview,
    "Restore a kernel that ended": models.Restore,
    "Read and edit a notebook": models.EditNotebook,
}
"""Of which model the requests in api.md are, by the heading above them."""


class Block(NamedTuple):
    """A code block of a page."""

    page: Path
    line: int
    heading: str
    above: str
    language: str
    text: str

    @property
    def name(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks() -> list[Block]:
    found = []
    for page in DOCUMENTS:
        text = page.read_text(encoding="utf-8")
        for match in re.finditer(r"^( *)```([^\n`]*)\n(.*?)^ *```$", text, re.M | re.S):
            before = text[: match.start()]
            headings = re.findall(r"^#+ (.*)$", before, re.M)
            line = before.count("\n") + 1
            above = before.rstrip("\n").rpartition("\n")[2].strip()
            heading = headings[-1] if headings else ""
            found.append(Block(page, line, heading, above, match[2], match[3]))
    return [block for block in found if block.language not in NO_CODE]


BLOCKS = blocks()
TESTED_HERE = [block for block in BLOCKS if block.above == f"<!-- tested by {HERE} -->"]
CONFIGURATION = [block for block in TESTED_HERE if block.text.startswith("c.")]
IN_JSON = [block for block in TESTED_HERE if block.language in ("json", "text")]
COMMANDS = [block for block in TESTED_HERE if block not in (*CONFIGURATION, *IN_JSON)]
COMMAND = re.compile(r"jupyter agent-exec ((?:'[^']*'|\"[^\"]*\"|(?!  )[^|'\"\n])*)")


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.name)
def test_a_block_says_what_tests_it_or_why_nothing_does(block: Block) -> None:
    told = re.fullmatch(r"<!-- (?:tested by (\S+)|not run: (.+)) -->", block.above)
    assert told, f"{block.name}: say `<!-- tested by FILE -->` or `<!-- not run: WHY -->` above it"
    if told[1] and told[1] != HERE:
        tests = (ROOT / told[1]).read_text(encoding="utf-8")
        named = (block.page.name, f'documented("{block.page.stem}")')
        assert any(name in tests for name in named), f"{told[1]} does not name {block.page.name}"
    for file in re.findall(r"tests/[\w/.]+\w", told[2] or ""):
        assert (ROOT / file).exists(), file


@pytest.mark.parametrize("block", CONFIGURATION, ids=lambda block: block.name)
def test_settings_are_known_and_may_have_these_values(block: Block) -> None:
    config = Config()
    exec(block.text, {"c": config})
    assert config
    app = AgentExecApp()
    for name, value in config.pop("AgentExecApp", {}).items():
        assert name in AgentExecApp.class_trait_names(config=True)
        setattr(app, name, value)


@pytest.mark.parametrize("block", COMMANDS, ids=lambda block: block.name)
def test_commands_and_their_options_are_known(block: Block) -> None:
    typed = [match[1] for match in COMMAND.finditer(block.text)]
    assert typed
    for words in typed:
        make_parser().parse_args(shlex.split(words, comments=True))


@pytest.mark.parametrize("block", IN_JSON, ids=lambda block: block.name)
def test_requests_are_those_that_the_server_takes(block: Block) -> None:
    body = re.sub(r"\A[A-Z]+ \S+\n", "", block.text)
    model = REQUESTS[block.heading] if block.page.name == "api.md" else object
    wanted = body.replace('"…"', f'"{"0" * 64}"')
    msgspec.json.decode(wanted, type=model)
