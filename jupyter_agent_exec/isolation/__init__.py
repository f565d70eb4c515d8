"""Kernels that are isolated from the server; docs/explanation/isolation.md says how far."""
