"""LVAgent."""
