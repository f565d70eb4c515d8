"""Talking to kernels: connections, outputs, and scratch kernels."""
