"""The person's documents: reached, read, changed, with nothing of theirs spoiled."""
