"""A JupyterHub service: one MCP endpoint for all users of a hub.

A person signs in with the hub and says what an agent may do. The service mints an agent token at
the person's own server, and forwards the agent's calls to it.
"""
