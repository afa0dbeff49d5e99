"""The words that worlds are made of.

Changing anything here, even the order, changes every world and requires a new profile.
"""

from __future__ import annotations

from collections.abc import Mapping

COLOURS: Mapping[str, tuple[int, int, int]] = {
    "red": (206, 34, 38),
    "green": (34, 150, 62),
    "blue": (38, 84, 204),
    "yellow": (246, 212, 40),
    "purple": (134, 52, 170),
    "orange": (240, 130, 28),
    "pink": (244, 138, 188),
    "white": (248, 248, 244),
}
"""Colours of coats, things and signs."""

HATS = ("tall hat", "round cap", "pointed hat", "straw hat")

VERBS: Mapping[str, str] = {
    "lift": "lifts",
    "lower": "lowers",
    "open": "opens",
    "close": "closes",
    "throw": "throws",
    "spin": "spins",
    "shake": "shakes",
    "wash": "washes",
    "paint": "paints",
    "hide": "hides",
}
"""Base form to third-person form."""

THEMES: Mapping[str, tuple[str, ...]] = {
    "music": ("drum", "bell", "flute"),
    "cooking": ("cup", "pot", "plate"),
    "travel": ("suitcase", "umbrella", "map"),
    "sport": ("ball", "racket", "hoop"),
    "study": ("book", "pencil", "lamp"),
}
"""The themes a film can have, with the things that belong to each."""

THINGS = tuple(thing for things in THEMES.values() for thing in things)
THEME_OF: Mapping[str, str] = {thing: theme for theme, things in THEMES.items() for thing in things}

PLACES = (
    "harbour",
    "market",
    "library",
    "station",
    "garden",
    "kitchen",
    "rooftop",
    "workshop",
    "museum",
    "school",
    "farm",
    "bridge",
)

SIGN_FIRST = (
    "SILVER",
    "COPPER",
    "NORTH",
    "SOUTH",
    "WINTER",
    "SUMMER",
    "GRAND",
    "QUIET",
    "LITTLE",
    "MARBLE",
)
SIGN_SECOND = (
    "GATE",
    "TOWER",
    "FERRY",
    "GARAGE",
    "CORNER",
    "STUDIO",
    "CELLAR",
    "MEADOW",
    "TUNNEL",
    "ARCADE",
)

SAID_FIRST = (
    "glass",
    "paper",
    "iron",
    "velvet",
    "wooden",
    "golden",
    "broken",
    "painted",
    "ancient",
    "tiny",
)
SAID_SECOND = (
    "anchor",
    "carriage",
    "clock",
    "compass",
    "dragon",
    "fiddle",
    "lantern",
    "mirror",
    "parcel",
    "ribbon",
    "saddle",
    "statue",
    "teapot",
    "telescope",
    "wagon",
    "wheel",
)

AMOUNTS = (
    "eleven",
    "twelve",
    "thirteen",
    "fifteen",
    "sixteen",
    "eighteen",
    "twenty",
    "thirty",
    "forty",
    "fifty",
    "sixty",
    "seventy",
    "eighty",
    "ninety",
)
HOURS = (
    "noon",
    "midnight",
    "dawn",
    "dusk",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
)
OWNERS = (
    "Ada",
    "Bruno",
    "Clara",
    "Dmitri",
    "Elena",
    "Farid",
    "Greta",
    "Hugo",
    "Ines",
    "Jonas",
    "Kira",
    "Leo",
    "Mona",
    "Nils",
)

SMALL_TALK = (
    "What a day it has been so far.",
    "Let us see what comes next.",
    "Nobody seems to be in a hurry here.",
    "The light is changing slowly.",
    "One could stay here for hours.",
    "And so the story goes on.",
)
