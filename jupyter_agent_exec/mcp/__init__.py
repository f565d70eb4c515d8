"""The MCP endpoint: what agents find at `/api/agent-exec/mcp`.

`doors.py` is what tools reach, `call.py` one call of a tool, `tool.py` what a tool is, `tools.py`
the tools, `resources.py` and `prompts.py` what else agents may read. `server.py` registers them
with the SDK, `endpoint.py` and `bridge.py` bring HTTP to it. What `endpoint.py` imports is imported
when the Jupyter server starts, and so must not need the SDK: that takes half a second, and is
imported at the first request.
"""
