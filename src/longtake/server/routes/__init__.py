"""The HTTP API, one module per subject."""
