"""Finding what a film says and shows about a question."""
