"""Who asks, what they may do, and the base of all handlers."""
