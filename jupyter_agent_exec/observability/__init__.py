"""Logs and metrics for operators: observers of sessions that the rest does not know."""
