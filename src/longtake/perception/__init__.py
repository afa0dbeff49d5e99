"""Models that see, read and hear. Nothing is loaded on import."""
