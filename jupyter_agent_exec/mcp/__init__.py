"""The MCP endpoint for agents: `/api/agent-exec/mcp`.

`endpoint.py` passes HTTP requests to the MCP SDK, with what the tools need of the request and the
server. `sdk_server.py` maps each MCP method to a function. `call.py` defines one tool call, and
`tool.py` defines tools and their results. The tools are in `tools_*.py`.

The Jupyter server imports `endpoint.py` when it starts. This module and its imports must not need
the SDK: importing the SDK takes half a second, so it waits until the first request.
"""
