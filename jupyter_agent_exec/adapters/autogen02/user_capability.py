"""What an agent is told, so that its model writes code that the executor can run."""

from __future__ import annotations

from typing import Final

from ...guide import DATA, about_kernel, about_preloaded
from ...models import Session
from .framework import ConversableAgent

_HOW: Final = """\
# Running code in a Jupyter kernel

You can solve tasks with code: you write it, and it is run for you. Put it into a Markdown code \
block with the language, such as:

```python
x = 3
```

- Each block runs as a cell, in order, up to the first that fails. You are told what the blocks \
wrote and showed, and why one failed; what was done before a failure is done.
- Variables, imports and functions stay from one block to the next, and from one message to the \
next. Use them rather than loading or computing things again.
- The value of a block's last expression is shown; print what else you want to see. Print shapes, \
heads and summaries, not whole data.
- Images and HTML that a block shows are saved to files. You are told their paths.
- Code cannot ask for input, and nobody sees windows that it opens. It may run for \
{timeout:g} seconds; do less at a time if that is not enough.
- If you are told that the kernel was restarted, variables are gone and files are still there. Run \
again what you need of your earlier code."""


DEFAULT_SYSTEM_MESSAGE_UPDATE: Final = "\n\n".join([_HOW.format(timeout=60), DATA])
"""What an agent is told of any executor: without its kernel, and what is preloaded there."""


class UserCapability:
    """What `add_to_agent` tells an agent.

    Parameters
    ----------
    system_message_update
        The text.
    """

    def __init__(self, system_message_update: str) -> None:
        self.system_message_update = system_message_update

    @classmethod
    def of(cls, session: Session, timeout: float) -> UserCapability:
        """Return what an agent should know whose code runs in a session, so many seconds."""
        parts = [
            _HOW.format(timeout=timeout),
            "\n".join(["## The kernel", *about_kernel(session), *about_preloaded(session)]),
            DATA,
        ]
        return cls("\n\n".join(parts))

    def add_to_agent(self, agent: ConversableAgent) -> None:
        """Append the text to an agent's system message, unless it is in there already."""
        before = agent.system_message
        if self.system_message_update not in before:
            agent.update_system_message(f"{before}\n\n{self.system_message_update}".lstrip())
