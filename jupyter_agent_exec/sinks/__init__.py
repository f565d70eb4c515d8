"""Places outside the server that get a copy of the record; the rest of the server knows none."""
