"""The one place where settings become a store, films, models, a method and a run."""
