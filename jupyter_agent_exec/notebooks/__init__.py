"""The person's documents: reached, read, changed, with nothing of released_cell spoiled."""
