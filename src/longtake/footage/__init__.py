"""A film as methods see it, and the store of what was derived from it."""
