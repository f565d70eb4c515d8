"""Signs the heads of chains, and has them timestamped. Nothing else of the server knows of it."""
