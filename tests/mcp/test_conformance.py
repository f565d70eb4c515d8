"""The conformance suite of the MCP project, against the real endpoint."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from tests.mcp.mcp_clients import CLIENTS, NODE_MODULES, endpoint
from tests.real_server import TOKEN, RealServer

SUITE = NODE_MODULES / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"

OF_THE_SUITES_OWN_SERVER = "calls a {} that only the suite's own example server has"
TOOL = OF_THE_SUITES_OWN_SERVER.format("tool")
NO_RESOURCES = "the server offers no resources: tools read all that an answer leaves out"
NO_PROMPTS = "the server offers no prompts, and no completion of their arguments"

EXPECTED_FAILURES = {
    "tools-call-simple-text": TOOL,
    "tools-call-image": TOOL,
    "tools-call-audio": TOOL,
    "tools-call-embedded-resource": TOOL,
    "tools-call-mixed-content": TOOL,
    "tools-call-with-logging": TOOL,
    "tools-call-error": TOOL,
    "tools-call-with-progress": TOOL,
    "tools-call-sampling": TOOL,
    "tools-call-elicitation": TOOL,
    "json-schema-2020-12": TOOL,
    "elicitation-sep1034-defaults": TOOL,
    "elicitation-sep1330-enums": TOOL,
    "resources-list": NO_RESOURCES,
    "resources-read-text": NO_RESOURCES,
    "resources-read-binary": NO_RESOURCES,
    "resources-templates-read": NO_RESOURCES,
    "resources-subscribe": NO_RESOURCES,
    "resources-unsubscribe": NO_RESOURCES,
    "completion-complete": NO_PROMPTS,
    "prompts-list": NO_PROMPTS,
    "prompts-get-simple": NO_PROMPTS,
    "prompts-get-with-args": NO_PROMPTS,
    "prompts-get-embedded-resource": NO_PROMPTS,
    "prompts-get-with-image": NO_PROMPTS,
}
"""Scenarios that this server cannot pass, and why. Our own tests cover what they are about."""


def scenarios(server: RealServer, folder: Path) -> dict[str, bool]:
    """Run all server scenarios; return whether each passed."""
    done = subprocess.run(
        [
            *("node", "--import", CLIENTS / "with_glob_sync.mjs", SUITE, "server"),
            *("--suite", "all", "--url", f"{endpoint(server)}?token={TOKEN}"),
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    found = re.findall(r"^([✓✗]) ([\w-]+): \d+ passed, \d+ failed", done.stdout, re.MULTILINE)
    assert found, done.stdout + done.stderr
    return {name: mark == "✓" for mark, name in found}


def test_the_conformance_suite_finds_only_the_failures_that_are_expected(
    server: RealServer, tmp_path: Path
) -> None:
    passed = scenarios(server, tmp_path)
    assert {name for name, good in passed.items() if not good} == set(EXPECTED_FAILURES)
    assert {name for name, good in passed.items() if good} == {
        "dns-rebinding-protection",
        "logging-set-level",
        "ping",
        "server-initialize",
        "server-sse-multiple-streams",
        "server-sse-polling",
        "tools-list",
    }
