"""Begins cheaply and looks closer where the answer so far cannot be trusted."""
