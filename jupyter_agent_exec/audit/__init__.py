"""Holds the record against its writer: signed heads, and copies outside the server."""
