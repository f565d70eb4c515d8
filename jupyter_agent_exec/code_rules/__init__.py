"""Rules that say which code runs without a user's approval: a convenience, not a guard."""
