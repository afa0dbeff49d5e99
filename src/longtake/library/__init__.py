"""Many films: a catalogue, an index across them, search, questions and overviews.

::

    from longtake.library import Library
    library = Library()                                  # the user's own
    found = library.search("pricing change", where="meetings")
    print(found.films[0].entry.name, found.films[0].moments[0].time)
"""

from longtake.library.add import Adder, AddProgress, AddReport
from longtake.library.ask import LibraryAnswer, ask_library
from longtake.library.catalog import Entry
from longtake.library.collection import Library
from longtake.library.search import FilmHits, FoundMoment, LibrarySearchResult

__all__ = [
    "AddProgress",
    "AddReport",
    "Adder",
    "Entry",
    "FilmHits",
    "FoundMoment",
    "Library",
    "LibraryAnswer",
    "LibrarySearchResult",
    "ask_library",
]
