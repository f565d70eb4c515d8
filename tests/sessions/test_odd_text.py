"""Text that a kernel cannot send as it is: half a character, bytes, or very much of it."""

from __future__ import annotations

from typing import Any

from tests.asking import Agent
from tests.sessions.living_notebook import Desk, notebook_target

LONE = "'\\ud83d'"
"""Half of a character (a lone surrogate), which cannot be encoded."""

ESCAPED = "\\ud83d"

PRINTED = {
    f"print({LONE})": f"{ESCAPED}\n",
    f"print('a' + {LONE} + 'b')": f"a{ESCAPED}b\n",
    f"print('before', flush=True); print({LONE}); print('after')": f"before\n{ESCAPED}\nafter\n",
    f"import sys; print('x'); print({LONE}, file=sys.stderr)": f"x\n{ESCAPED}\n",
    f"import logging; logging.getLogger('t').warning({LONE})": f"{ESCAPED}\n",
    f"import threading; t = threading.Thread(target=print, args=({LONE},)); t.start(); t.join()": (
        f"{ESCAPED}\n"
    ),
    "print('a\\0b')": "a\0b\n",
    "print('x' * 3_000_000)": "x" * 3_000_000 + "\n",
}
"""What code prints, by its source."""

FAILS = {
    f"display({{'text/plain': {LONE}}}, raw=True)": "UnicodeEncodeError",
    f"display('x', metadata={{'a': {LONE}}})": "UnicodeEncodeError",
    f"class R:\n    def __repr__(self): return {LONE}\nR()": "UnicodeEncodeError",
    f"raise ValueError({LONE})": "UnicodeEncodeError",
    f"raise type({LONE}, (Exception,), {{}})()": "UnicodeEncodeError",
    "import sys; sys.stdout.write(b'x')": "TypeError",
    "sys.stdout.write(None)": "TypeError",
}
"""What code raises, in a kernel that nobody has touched too."""

FINE = {LONE: f"'{ESCAPED}'", f"globals()[{LONE}] = 1; {LONE}": f"'{ESCAPED}'"}


async def fails_and_goes_on(agent: Agent, session: dict[str, Any]) -> None:
    for source, name in FAILS.items():
        done = await agent.run(session, source, wait=60)
        assert (done["status"], done["error"]["ename"]) == ("error", name), source
    for source, text in FINE.items():
        done = await agent.run(session, source, wait=60)
        assert (done["status"], done["text"].strip()) == ("ok", text), source
    after = await agent.run(session, "6 * 7", wait=60)
    assert (after["text"].strip(), after["kernel"]["incarnation"]) == ("42", 1)


async def test_all_text_that_is_printed_in_a_scratch_kernel_comes(agent: Agent) -> None:
    session = await agent.open()
    for source, printed in PRINTED.items():
        done = await agent.run(session, source, wait=60, max_output_bytes=10_000_000)
        told = "".join(output["text"] for output in done["cell"]["outputs"])
        assert (done["status"], told) == ("ok", printed), source
    await fails_and_goes_on(agent, session)


async def test_a_kernel_of_the_users_answers_what_cannot_be_sent(agent: Agent, desk: Desk) -> None:
    await desk.opens()
    await fails_and_goes_on(agent, await agent.open(target=notebook_target()))


async def test_an_execution_names_letters_of_its_source_that_look_like_others(agent: Agent) -> None:
    session = await agent.open()
    done = await agent.run(session, "\u0440assword = 1  # \u0440\u0443\u0441")
    assert done["lookalikes"] == {"\u0440assword": {"\u0440": "p"}}
    assert (await agent.run(session, "password = 1"))["lookalikes"] == {}
