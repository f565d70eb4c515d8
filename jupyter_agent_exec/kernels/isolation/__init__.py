"""Kernels that are kept apart from the server: what they see, what they may use, and by which way.

What is promised and what is not: `docs/isolation.md`.
"""
