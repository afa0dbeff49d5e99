"""How long tests wait."""

PATIENCE = 120.0
"""Seconds that tell waiting in vain from a busy machine."""
FOREVER = 600.0
"""Seconds that something takes which the test ends before; longer than PATIENCE by far."""
