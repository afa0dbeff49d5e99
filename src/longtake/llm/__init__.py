"""Talking to models: one protocol, several backends, and layers around them."""
