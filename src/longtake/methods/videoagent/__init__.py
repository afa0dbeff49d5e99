"""VideoAgent."""
