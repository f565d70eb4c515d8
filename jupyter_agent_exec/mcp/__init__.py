"""The MCP endpoint: what agents find at `/api/agent-exec/mcp`.

`endpoint.py` brings HTTP to the SDK, and `sdk_server.py` says which function answers which method
of MCP. `call.py` is one call of a tool and the managers behind it, `tool.py` what a
tool and its result are, `tools_*.py` the tools, `resources.py` what else agents may read.

The Jupyter server imports `endpoint.py` when it starts. What that imports must not need the SDK,
which takes half a second and is imported at the first request.
"""
