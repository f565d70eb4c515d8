"""What the tests of kernels share."""

from real_server import gate

__all__ = ["gate"]
