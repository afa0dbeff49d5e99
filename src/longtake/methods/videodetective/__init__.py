"""VideoDetective."""
