"""The backends that reach a notebook: collaboration, an open tab, the contents manager."""
