"""What is derived from a film and kept on disk."""
