"""Turns settings into a store, films, models, a method and a run; no other package does."""
