"""Kernels that are isolated from the server. `docs/isolation.md` says what isolation guarantees."""
