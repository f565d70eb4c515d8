"""Logs, metrics and traces for operators: observers of sessions that the rest does not know."""
