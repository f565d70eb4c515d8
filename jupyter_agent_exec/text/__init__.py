"""Text for language models, terminals and notebooks: made readable, redacted, or made inert."""
