"""Which output widgets capture what an execution puts out. Pure.

`with out:` of ipywidgets tells frontends, over its comm, to send the outputs of a request into the
widget. They stay in the cell here, so that the record has them; but what the widget clears is then
its own, not the cell.
"""

from __future__ import annotations

from typing import Any


class OutputWidgets:
    """Knows the output widgets that capture one request's outputs.

    Parameters
    ----------
    msg_id
        Of the request.
    """

    def __init__(self, msg_id: str) -> None:
        self._msg_id = msg_id
        self._capturing: set[str] = set()

    @property
    def capture(self) -> bool:
        """Whether one captures now."""
        return bool(self._capturing)

    def feed(self, content: dict[str, Any]) -> None:
        """Take the content of a `comm_open` or `comm_msg`."""
        data = content.get("data")
        state = data.get("state") if isinstance(data, dict) else None
        if not isinstance(state, dict) or "msg_id" not in state:
            return
        comm_id = str(content.get("comm_id"))
        if state["msg_id"] == self._msg_id:
            self._capturing.add(comm_id)
        else:
            self._capturing.discard(comm_id)
