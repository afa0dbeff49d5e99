"""Many films: a catalogue, an index across them, search, questions and overviews.

::

    from longtake.library import Library
    library = Library()                                  # the user's own
    found = library.search("pricing change", where="tag=meeting")
    print(found.films[0].entry.name, found.films[0].moments[0].time)
"""

from longtake.library.adding import Adder, Progress, Report
from longtake.library.asking import Cited, FilmAnswer, LibraryAnswer, ask_library
from longtake.library.collection import Library
from longtake.library.entries import Entry
from longtake.library.overviews import Chapter, Overview, make_overview
from longtake.library.searching import FilmHits, Found, Moment
from longtake.library.status import Problem, Status, problems, status

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
