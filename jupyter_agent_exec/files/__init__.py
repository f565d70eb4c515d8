"""The files in the working folder of a session's kernel."""
