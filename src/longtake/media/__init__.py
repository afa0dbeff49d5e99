"""A file becomes frames, sound and lines of text."""
