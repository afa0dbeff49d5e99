"""Speaking to a person at a terminal: one file per command."""
