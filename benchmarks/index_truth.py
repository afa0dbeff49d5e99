"""What is known to be said and shown in the clips, and how much of it an index found."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from joined_film import Placed

from longtake.algorithms import passages

TRUTH: dict[str, dict[str, list[str]]] = {
    "openboard_wannaworktogether": {
        "speech": [
            "share your creativity",
            "be inspired by it",
            "take the teacher",
            "bits and pieces",
            "richer, better, more vibrant culture",
            "all rights reserved copyright",
            "millions and millions of people",
            "luckily there's an answer",
            "we provide free copyright licenses",
            "it's totally free",
            "just come to our website",
            "you don't give up your copyright",
            "just a few years ago",
        ],
        "onscreen": [
            "all rights reserved",
            "except fair use",
            "it only takes a minute",
            "allow commercial uses of your work",
            "yes, as long as others share alike",
            "get a license",
            "refine the rules",
            "remix",
            "reuse",
            "Ryan Junell",
            "Sara Kraft",
            "Eric Steuer",
            "MacArthur Foundation",
            "Hewlett Foundation",
            "redhat.com",
            "Omidyar Network",
            "Stanford Law School",
            "Public Domain",
        ],
    },
    "moviepy_trailer_bbb": {
        "onscreen": [
            "The Blender Foundation",
            "An unlucky bird",
            "slightly overweight bunny",
            "three rodent pests",
            "Revenge is coming",
            "Made with",
        ],
        "pictures": ["rabbit", "butterfly"],
    },
    "gnome_dual_monitors": {
        "onscreen": [
            "Tiffany Antopolski",
            "Mirror displays",
            "Detect Displays",
            "System Settings",
            "Acer Technologies",
            "Rotation",
            "Type to search",
            "Applications",
        ],
        "pictures": ["computer monitor"],
    },
    "yuefan_kitchen": {"pictures": ["refrigerator", "microwave oven"]},
    "bikes": {"pictures": ["bicycle"]},
    "torchcodec_nasa": {
        "speech": ["largest cleanrooms in the world", "Goddard Space Flight Center"]
    },
}
"""What is said and shown in the clips, heard and read by people."""


def queries(placed: Sequence[Placed]) -> list[str]:
    """The pictures to search for."""
    return sorted({text for place in placed for text in _truth(place, "pictures")})


def recall(
    found: dict[str, Any], placed: Sequence[Placed]
) -> dict[str, tuple[int, int, list[str]]]:
    """By kind: how many known things were found where they are, of how many, and what was not."""
    table = {}
    for kind in ("speech", "onscreen"):
        wanted = [(place, text) for place in placed for text in _truth(place, kind)]
        missed = [text for place, text in wanted if not _said(found[kind], place, text)]
        table[kind] = (len(wanted) - len(missed), len(wanted), sorted(set(missed)))
    missed = []
    wanted = queries(placed)
    for query in wanted:
        places = [place for place in placed if query in _truth(place, "pictures")]
        times = found["pictures"][query][:5]
        if not any(place.start <= t < place.end for place in places for t in times):
            missed.append(query)
    table["pictures"] = (len(wanted) - len(missed), len(wanted), missed)
    return table


def _truth(place: Placed, kind: str) -> list[str]:
    return TRUTH.get(place.clip.stem, {}).get(kind, [])


def _said(lines: Sequence[Any], place: Placed, text: str) -> bool:
    nearby = sorted(line for line in lines if line[0] < place.end and line[1] > place.start)
    # a phrase may be cut between two lines of speech, or stand on two lines of a screen
    together = [f"{one[2]} {two[2]}" for one, two in pairwise(nearby)]
    candidates = {line[2] for line in nearby} | set(together)
    return any(passages.match(text, line) >= passages.SURE for line in candidates)
