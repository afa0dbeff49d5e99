"""Settings become a store, films, models, a method and a run."""
