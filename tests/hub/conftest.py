"""Fixtures that the tests of hubs share."""

from tests.real_server import gate

__all__ = ["gate"]
