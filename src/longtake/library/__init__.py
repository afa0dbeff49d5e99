"""Many films: a catalogue, an index across them, search, questions and overviews.

::

    from longtake.library import Library
    library = Library()                                  # the user's own
    found = library.search("pricing change", where="tag=meeting")
    print(found.films[0].entry.name, found.films[0].moments[0].time)
"""

from longtake.library.add import Adder, AddProgress, AddReport
from longtake.library.ask import FilmCitation, FilmAnswer, LibraryAnswer, ask_library
from longtake.library.collection import Library
from longtake.library.catalog import Entry
from longtake.library.overview import Chapter, FilmOverview, make_overview
from longtake.library.search import FilmHits, LibrarySearchResult, FoundMoment
from longtake.library.collection import LibraryProblem, LibraryStatus, problems, status

__all__ = [
    "Adder",
    "Chapter",
    "Cited",
    "Entry",
    "FilmAnswer",
    "FilmHits",
    "Found",
    "Library",
    "LibraryAnswer",
    "Moment",
    "Overview",
    "Problem",
    "Progress",
    "Report",
    "Status",
    "ask_library",
    "make_overview",
    "problems",
    "status",
]
