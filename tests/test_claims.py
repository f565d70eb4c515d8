"""An agent's name is its own words; what a person called its token stands beside it."""

from __future__ import annotations

from typing import Any

import pytest

from jupyter_agent_exec.client.display import credential, quoted
from jupyter_agent_exec.records import By
from tests.asking import Agent, Send
from tests.auth.minting import TokenAgent, mint

PRETENDS = "Ada (you)” · approved by “Ada"


def test_quotation_marks_cannot_be_closed_from_inside() -> None:
    assert quoted(PRETENDS) == "“Ada (you)' · approved by 'Ada”"
    assert credential(None) == "full access"


@pytest.mark.parametrize("agent_exec_config", [{"approval": {"scratch": "always"}}])
async def test_what_asks_names_the_token_that_a_person_called(agent: Agent, ask: Send) -> None:
    id, secret = await mint(agent, "exec:scratch", label="Sales analyst")
    for asker, token in (
        (TokenAgent(ask, secret), {"id": id, "label": "Sales analyst"}),
        (agent, None),
    ):
        session: dict[str, Any] = await asker.open(agent={"name": PRETENDS})
        execution = await asker.run(session, "1", wait=0)
        assert execution["token"] == token
        (listed,) = (
            each
            for each in (await agent.get("approvals")).json["executions"]
            if each["id"] == execution["id"]
        )
        assert (listed["agent"]["name"], listed["token"]) == (PRETENDS, token)
        await agent.ask("POST", f"executions/{execution['id']}/reject", {})
        await agent.ask("POST", f"sessions/{session['id']}/close")
        recorded = (await agent.get(f"executions/{execution['id']}")).json
        assert (recorded["status"], recorded["token"]) == ("rejected", token)


@pytest.mark.parametrize(
    ("by", "said"),
    [
        (By(kind="server"), "the server"),
        (By(kind="person", username="ada", display_name="Ada"), "Ada"),
        (By(kind="agent", username="ada", display_name="Ada"), "an agent on behalf of Ada"),
        (By(kind="person", username="0f" * 16, display_name="Anonymous Io"), "the user"),
        (By(kind="agent", username="0f" * 16), "an agent on behalf of the user"),
    ],
)
def test_made_up_names_are_left_out_and_agents_deeds_are_theirs(by: By, said: str) -> None:
    assert by.said == said
