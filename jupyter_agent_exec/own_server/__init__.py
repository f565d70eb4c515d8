"""A Jupyter server with this extension, for as long as a command or a program needs one.

It imports nothing: the server begins here, too, and what starts it is no part of it.
"""
