"""Typed replies: what is asked for, and how what comes back is read."""
