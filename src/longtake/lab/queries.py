"""Queries: the meaning of questions, written as sentences and recognised in text.

A query is solved over a list of sightings (:mod:`longtake.lab.solving`). The same solver proves an
answer when a question is generated and answers for a simulated model from what that model saw.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from longtake.lab import vocabulary as v
from longtake.lab.facts import Deed, Fact, Saying, Sign
from longtake.lab.grammar import base, expression, person_in, thing_in
from longtake.types import Segment

FORMS: Mapping[str, str] = {
    "what": "What does {person} {verb} at the {place}?",
    "who": "Who {verbs} {thing} at the {place}?",
    "where": "Where does {person} {verb} {thing}?",
    "deed": "What does {person} do with {thing} at the {place}?",
    "colour": "What colour is the {kind} that {person} {verbs} at the {place}?",
    "scope": "What does {person} {verb} {scope}?",
    "sign": "What does the {colour} sign at the {place} say?",
    "cost": "According to the narrator, what does the {subject} cost?",
    "weigh": "According to the narrator, what does the {subject} weigh?",
    "leave": "According to the narrator, when does the {subject} leave?",
    "own": "According to the narrator, who owns the {subject}?",
    "before": "Which of these happens before {person} {verbs} {thing} at the {place}?",
    "after": "Which of these happens after {person} {verbs} {thing} at the {place}?",
    "count": "How many times does {person} {verb} something?",
    "count_kind": "How many times does anybody {verb} a {kind}?",
    "next": "Right after {person} {verbs} {thing} at the {place}, what does the same person do?",
    "previous": (
        "Right before {person} {verbs} {thing} at the {place}, what does the same person do?"
    ),
    "hop_person": (
        "What does the person who {verbs} {thing} at the {place} {verb2} at the {place2}?"
    ),
    "hop_place": "Who {verbs2} {thing2} at the place where {person} {verbs} {thing}?",
    "topic": "What is this film mostly about?",
}
"""Every question that can be asked, by form."""

RELATIONS = ("cost", "weigh", "leave", "own")
WHOLE_FILM = frozenset({"topic", "count", "count_kind"})
"""Forms that need the whole film rather than a few moments."""

_SCOPE = (
    r"(?P<scope>in\s+the\s+(?:first|second)\s+half\s+of\s+the\s+film"
    r"|at\s+the\s+(?:beginning|end)\s+of\s+the\s+film"
    r"|(?:before|after)\s+minute\s+\d+)"
)


@dataclass(frozen=True)
class Query:
    """The meaning of a question: ``first`` must be found, ``second`` is what it leads to."""

    form: str
    first: Fact | None = None
    second: Deed | None = None
    scope: str | None = None
    kind: str | None = None
    """The kind of thing, in questions about its colour or the number of such things."""

    @property
    def text(self) -> str:
        """The question as a sentence."""
        return FORMS[self.form].format(**self._words())

    def needs(self) -> list[Fact]:
        """Patterns of what must be seen, as far as the question itself tells."""
        needs: list[Fact] = [self.first] if self.first else []
        if self.second and self.second != Deed():
            needs.append(self.second)
        return needs

    def within(self, time: float | None, duration: float) -> bool:
        """Whether a time lies in the part of the film that the question is about."""
        if self.scope is None:
            return True
        return time is not None and time in scope_segment(self.scope, duration)

    def _words(self) -> dict[str, str]:
        words: dict[str, str] = {"scope": self.scope or "", "kind": self.kind or ""}
        for number, fact in (("", self.first), ("2", self.second)):
            match fact:
                case Deed(person, verb, thing, place):
                    words |= {
                        f"person{number}": str(person),
                        f"verb{number}": str(verb),
                        f"thing{number}": str(thing),
                        f"verbs{number}": v.VERBS.get(str(verb), ""),
                        f"place{number}": str(place),
                    }
                case Sign(colour, _, place):
                    words |= {"colour": str(colour), "place": str(place)}
                case Saying(subject):
                    words["subject"] = str(subject)
        return words


def scope_segment(scope: str, duration: float) -> Segment:
    """The part of the film that a scope names; "beginning" and "end" are one fifth each."""
    words = " ".join(scope.lower().split())
    if match := re.fullmatch(r"(before|after) minute (\d+)", words):
        cut = min(duration, 60.0 * int(match[2]))
        return Segment(0.0, cut) if match[1] == "before" else Segment(cut, duration)
    shares = {
        "in the first half of the film": (0.0, 0.5),
        "in the second half of the film": (0.5, 1.0),
        "at the beginning of the film": (0.0, 0.2),
        "at the end of the film": (0.8, 1.0),
    }
    start, end = shares[words]
    return Segment(start * duration, end * duration)


@cache
def _expressions() -> tuple[tuple[str, re.Pattern[str]], ...]:
    compiled = []
    for form, template in FORMS.items():
        if form == "scope":  # a closed set of phrases, not a word list
            text = expression(template.removesuffix("{scope}?")) + _SCOPE + r"\?"
        else:
            text = expression(template)
        compiled.append((form, re.compile(text, re.IGNORECASE)))
    return tuple(compiled)


def query_in(text: str) -> tuple[int, Query] | None:
    """The first question in a text, with the position of its end."""
    first: tuple[str, re.Match[str]] | None = None
    for form, pattern in _expressions():
        match = pattern.search(text)
        if match and (first is None or match.start() < first[1].start()):
            first = form, match
    if first is None:
        return None
    form, match = first
    return match.end(), _query(form, match.groupdict())


def _query(form: str, g: Mapping[str, str]) -> Query:
    """The query that the groups of a match describe."""
    if form == "topic":
        return Query("topic")
    if form == "sign":
        return Query(form, Sign(g["colour"].lower(), None, g["place"].lower()))
    if form in RELATIONS:
        return Query(form, Saying(" ".join(g["subject"].lower().split()), form))
    person = person_in(g) if "coat" in g else None
    thing = thing_in(g) if "kind" in g and "colour" in g else None
    verb = base(g["verbs"]) if "verbs" in g else None
    if "verb" in g:
        verb = g["verb"].lower()
    place = g["place"].lower() if "place" in g else None
    first = Deed(person, verb, thing, place)
    if form == "hop_person":
        return Query(form, first, Deed(None, g["verb2"].lower(), None, g["place2"].lower()))
    if form == "hop_place":
        return Query(form, first, Deed(None, base(g["verbs2"]), thing_in(g, "2"), None))
    scope = " ".join(g["scope"].lower().split()) if "scope" in g else None
    # with a colour, the kind belongs to the thing
    kind = g["kind"].lower() if "kind" in g and "colour" not in g else None
    return Query(form, first, None, scope, kind)


_CLAUSE = expression("{person} {verbs} {thing} at the {place}")


def clause(deed: Deed) -> str:
    """A deed as an answer option states it."""
    return f"{deed.person} {v.VERBS[str(deed.verb)]} {deed.thing} at the {deed.place}"


def deed_in(text: str) -> Deed | None:
    """The deed that an option states."""
    match = re.search(_CLAUSE, text, re.IGNORECASE)
    if match is None:
        return None
    g = match.groupdict()
    return Deed(person_in(g), base(g["verbs"]), thing_in(g), g["place"].lower())


def doing(deed: Deed) -> str:
    """A deed without the person: ``lifts the green cup at the harbour``."""
    return f"{v.VERBS[str(deed.verb)]} {deed.thing} at the {deed.place}"


def value_of(form: str, fact: Fact) -> str:
    """The answer that a fact gives to a question of the given form."""
    match fact:
        case Sign(_, text, _):
            return str(text)
        case Saying(_, _, value):
            return str(value)
        case Deed(person, verb, thing, place):
            values = {
                "what": str(thing),
                "scope": str(thing),
                "hop_person": str(thing),
                "who": str(person),
                "hop_place": str(person),
                "where": f"at the {place}",
                "deed": f"{v.VERBS[str(verb)]} it",
                "colour": thing.colour if thing else "",
                "before": clause(fact),
                "after": clause(fact),
                "next": doing(fact),
                "previous": doing(fact),
                "topic": v.THEME_OF[thing.kind] if thing else "",
            }
            return values.get(form, "")
    return ""


def same(one: str, other: str) -> bool:
    """Whether two values are equal, ignoring case, spacing and a final full stop."""
    return _normal(one) == _normal(other)


def _normal(value: str) -> str:
    return " ".join(value.lower().split()).rstrip(".")


def index_of(options: Sequence[str], value: str) -> int | None:
    """The index of the option that states a value."""
    return next((number for number, option in enumerate(options) if same(option, value)), None)
