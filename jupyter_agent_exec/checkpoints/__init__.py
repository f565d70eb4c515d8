"""Checkpoints of kernels: sleeping copies that take a kernel's place, at an undo or a crash."""
