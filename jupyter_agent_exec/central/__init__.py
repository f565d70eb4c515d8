"""Reads what the servers of a site have sent to one sink: verifies it, and searches it."""
