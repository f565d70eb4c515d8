"""Gives the agents in chats of Jupyter AI the MCP endpoint. Imports nothing of Jupyter AI."""
