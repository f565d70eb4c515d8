from tests.real_server import gate

__all__ = ["gate"]
