"""Agent sessions and their executions: the use cases and their routes."""
