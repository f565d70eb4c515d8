"""A model that follows a script, at loopback, for clients of three APIs.

`python -m tests.mcp.agents.scripted_model` prints its address. The model reads the notebook
`sales.ipynb` and draws a picture in it. If the user rejects this, the model takes the colour from
their reason. At the end it says what it sees.
"""

from __future__ import annotations

import io
import json
import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from PIL import Image

from tests.mcp.agents import anthropic_messages, gemini_content, openai_responses
from tests.mcp.agents.turns import Call, Seen

APIS = (anthropic_messages, openai_responses, gemini_content)
PATH = "sales.ipynb"
USED = ("read_notebook", "execute", "get_execution")
DRAW = "from PIL import Image as Picture\nPicture.new('RGB', (40, 30), '{colour}')"


def next_turn(seen: Seen) -> Call | str:
    """Return what the model does next."""
    if not seen.tools:
        return "A title"  # for which some clients ask besides
    if "execute" not in seen.tools:
        names = ",".join(f"mcp__jupyter__{each}" for each in USED)
        return Call(seen.tools["ToolSearch"], {"query": f"select:{names}"})
    if not seen.answers:
        return Call(seen.tools["read_notebook"], {"path": PATH})
    last = seen.answers[-1]
    if last.images:
        picture = Image.open(io.BytesIO(last.images[-1])).convert("RGB")
        width, height = picture.size
        return f"I see {width} x {height} in #{bytes(picture.getpixel((0, 0))).hex()}."
    if len(seen.answers) == 1:
        return _draw(seen, "#ff0000", target={"kind": "notebook", "path": PATH})
    session, execution = (re.search(rf"\b{kind}_\w+", last.text) for kind in "sx")
    if execution and "awaiting_approval" in last.text:
        return Call(seen.tools["get_execution"], {"execution_id": execution[0], "wait": 50})
    reason = re.search(r"says: .*(#[0-9a-f]{6})", last.text)
    if session and execution and reason:
        return _draw(seen, reason[1], session_id=session[0], revises=execution[0])
    return f"I do not know what to do about: {last.text}"


def _draw(seen: Seen, colour: str, **given: Any) -> Call:
    source = DRAW.format(colour=colour)
    return Call(seen.tools["execute"], {"source": source, "wait": 50, **given})


class Model(BaseHTTPRequestHandler):
    """Answers as the API whose path it is."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        for api in APIS:
            if self.path.startswith(api.PATH):
                self._answer(api.write(next_turn(api.read(asked))))
                return
        self._answer("", 404)

    def _answer(self, text: str, status: int = 200) -> None:
        content = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


if __name__ == "__main__":
    with ThreadingHTTPServer(("127.0.0.1", 0), Model) as server:
        sys.stdout.write(f"http://127.0.0.1:{server.server_port}\n")
        sys.stdout.flush()
        server.serve_forever()
