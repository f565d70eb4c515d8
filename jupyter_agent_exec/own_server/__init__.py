"""A temporary Jupyter server with this extension, for a command or a program.

This module imports nothing, because the server process imports it too and does not need `launch`.
"""
