"""How one source is run, once: its queue, its states, its record."""
