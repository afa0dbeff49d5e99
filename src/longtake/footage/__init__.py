"""footage."""
