"""The approval policy without a server: its rules, and what is left of the mode `rules`."""

from __future__ import annotations

import json
import logging
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from traitlets import TraitError

from jupyter_agent_exec.auth.token_store import StoredToken
from jupyter_agent_exec.executions.rules import Modes, Rules, checked_modes
from jupyter_agent_exec.executions.shared_decisions import PauseEntry, SharedDecisions
from jupyter_agent_exec.journal.fold import opened
from jupyter_agent_exec.models import Chain, NotebookTarget, ScratchTarget
from jupyter_agent_exec.records import JOURNAL_ENTRY, Opened, current_mode
from jupyter_agent_exec.types import ApprovalMode, Digest, TokenId
from tests.journal.recorded import opened as recorded_opened
from tests.real_server import PROJECT

LOG = logging.getLogger("policy")


async def unheard(_: PauseEntry | None) -> None:
    pass


def rules_in(folder: Path, configured: Modes | None = None, forced: Modes | None = None) -> Rules:
    with ThreadPoolExecutor(1) as thread:
        decisions = SharedDecisions(folder, thread, LOG, changed=unheard)
        return Rules(decisions, configured or {}, forced or {}, 1)


@pytest.mark.parametrize("demanded", [None, "first", "always"])
@pytest.mark.parametrize(
    ("target", "forced", "asks"),
    [
        (ScratchTarget(isolated=True), None, False),
        (ScratchTarget(isolated=True), "first", True),
        (ScratchTarget(isolated=True, cwd="data"), None, True),
        (ScratchTarget(isolated=True, cwd=""), None, True),
        (ScratchTarget(own_folder=True), None, True),
    ],
)
def test_only_an_isolated_kernel_in_a_folder_of_its_own_does_not_ask(
    tmp_path: Path,
    target: ScratchTarget,
    forced: ApprovalMode | None,
    asks: bool,
    demanded: ApprovalMode | None,
) -> None:
    rules = rules_in(tmp_path, {"scratch": "always"}, {} if forced is None else {"scratch": forced})
    mode = rules.mode(target, demanded)
    assert (mode != "none") == asks
    if forced is not None:
        assert mode == forced


@pytest.mark.parametrize("name", ["approval", "forced_approval"])
def test_a_configuration_that_names_rules_says_what_to_use(name: str) -> None:
    with pytest.raises(TraitError, match=rf"^{name}: notebook cannot.*'rules'.*'first'"):
        checked_modes(name, {"notebook": "rules"})


def test_a_stored_policy_of_rules_is_first_and_the_log_says_so_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    stored = {"scratch": "rules", "notebook": "always", "allow": ["read"]}
    (tmp_path / "approval-policy.json").write_text(json.dumps(stored))
    rules = rules_in(tmp_path)
    notebook = NotebookTarget(path="a.ipynb")
    modes = (rules.mode(ScratchTarget(), None), rules.mode(notebook, None))
    assert modes == ("first", "always")
    [told] = caplog.messages
    assert "for scratch is 'first' now, not 'rules'" in told


def test_what_was_recorded_of_rules_is_read_as_first() -> None:
    written = msgspec.json.encode(replace(recorded_opened(), approval="rules"))
    entry = msgspec.json.decode(written, type=JOURNAL_ENTRY)
    assert isinstance(entry, Opened)
    assert opened(entry, Chain(head=Digest("h"), length=1)).approval == "first"
    token = StoredToken(
        id=TokenId("t_1"),
        secret_sha256=Digest("0"),
        label="a",
        scopes=(),
        approval="rules",
        username="ada",
        display_name="Ada",
        created_at="",
        expires_at="",
    )
    token = msgspec.json.decode(msgspec.json.encode(token), type=StoredToken)
    assert token.approval is not None
    assert current_mode(token.approval) == "first"


@pytest.mark.parametrize(
    "path",
    [
        "docs/explanation/approval.md",
        "docs/explanation/overview.md",
        "docs/how-to/lab.md",
        "jupyter_agent_exec/traits.py",
        "jupyter_agent_exec/auth/token_form.py",
    ],
)
def test_first_is_described_in_the_same_words_everywhere(path: str) -> None:
    text = " ".join((PROJECT / path).read_text().split()).lower()
    assert "once for each agent, until the kernel restarts" in text
