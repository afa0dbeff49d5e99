"""Methods inside other programs, which find these modules through their entry points."""
