"""Looks a question up in what a film says and shows."""
