"""The files in the folder in which a session's kernel works."""
