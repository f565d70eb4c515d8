"""What the tests of kernels share."""

from tests.real_server import gate

__all__ = ["gate"]
