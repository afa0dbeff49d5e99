"""Pictures of results (extra ``plot``)."""
