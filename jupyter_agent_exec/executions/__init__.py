"""Executions: their queue, approval, states and record."""
