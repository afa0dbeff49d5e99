"""Queries: the meaning of questions, written as sentences and recognised in text.

A query is solved over a list of sightings (:mod:`longtake_bench.lab.queries`). The same solver
proves an answer when a question is generated, and answers for a simulated model from what it saw.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise

from longtake.types import Segment
from longtake_bench.lab import vocabulary as v
from longtake_bench.lab.facts import (
    Deed,
    Fact,
    Saying,
    Sighting,
    Sign,
    deed_in,
    expression,
    fits,
    slots_of,
)

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
"""Forms of questions that the narrator answers."""
WHOLE_FILM = frozenset({"topic", "count", "count_kind"})
"""Forms that need the whole film rather than a few moments."""

_SCOPE = (
    r"(?P<scope>in\s+the\s+(?:first|second)\s+half\s+of\s+the\s+film"
    r"|at\s+the\s+(?:beginning|end)\s+of\s+the\s+film"
    r"|(?:before|after)\s+minute\s+\d+)"
)


@dataclass(frozen=True)
class LabQuery:
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
        words = {**slots_of(self.second, "2"), **slots_of(self.first)}
        words |= {"scope": self.scope or "", "kind": self.kind or ""}
        return FORMS[self.form].format(**words)

    def needs(self) -> list[Fact]:
        """Patterns of what must be seen, as the question states them."""
        needs: list[Fact] = [self.first] if self.first else []
        if self.second and self.second != Deed():
            needs.append(self.second)
        return needs

    def within(self, time: float | None, duration: float) -> bool:
        """Whether a time lies in the part of the film that the question is about."""
        if self.scope is None:
            return True
        return time is not None and time in scope_segment(self.scope, duration)


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


def query_in(text: str) -> tuple[int, LabQuery] | None:
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


def _query(form: str, g: Mapping[str, str]) -> LabQuery:
    """The query that the groups of a match describe."""
    if form == "topic":
        return LabQuery("topic")
    if form == "sign":
        return LabQuery(form, Sign(g["colour"].lower(), None, g["place"].lower()))
    if form in RELATIONS:
        return LabQuery(form, Saying(" ".join(g["subject"].lower().split()), form))
    if form in ("hop_person", "hop_place"):
        return LabQuery(form, deed_in(g), deed_in(g, "2"))
    scope = " ".join(g["scope"].lower().split()) if "scope" in g else None
    # with a colour, the kind belongs to the thing
    kind = g["kind"].lower() if "kind" in g and "colour" not in g else None
    return LabQuery(form, deed_in(g), None, scope, kind)


CLAUSE = "{person} {verbs} {thing} at the {place}"


def clause(deed: Deed) -> str:
    """A deed as an answer option states it."""
    return CLAUSE.format(**slots_of(deed))


def stated_deed(text: str) -> Deed | None:
    """The deed that an option states."""
    match = re.search(expression(CLAUSE), text, re.IGNORECASE)
    return deed_in(match.groupdict()) if match else None


def doing(deed: Deed) -> str:
    """A deed without the person: ``lifts the green cup at the harbour``."""
    return "{verbs} {thing} at the {place}".format(**slots_of(deed))


def value_of(form: str, fact: Fact) -> str:
    """The answer that a fact gives to a question of the given form; empty if it gives none."""
    match fact:
        case Sign(_, text, _):
            return text or "" if form == "sign" else ""
        case Saying(_, relation, value):
            return str(value) if form == relation else ""
        case Deed(person, verb, thing, place):
            values = {
                **dict.fromkeys(("what", "scope", "hop_person"), str(thing)),
                **dict.fromkeys(("who", "hop_place"), str(person)),
                **dict.fromkeys(("before", "after"), clause(fact)),
                **dict.fromkeys(("next", "previous"), doing(fact)),
                "where": f"at the {place}",
                "deed": f"{v.VERBS[str(verb)]} it",
                "colour": thing.colour if thing else "",
                "topic": v.THEME_OF[thing.kind] if thing else "",
            }
            return values.get(form, "")
    return ""


def same(one: str, other: str) -> bool:
    """Whether two values are equal, ignoring case, spacing and a final full stop."""
    return _normal(one) == _normal(other)


def _normal(value: str) -> str:
    return " ".join(value.lower().split()).rstrip(".")


@dataclass(frozen=True)
class Finding:
    """What sightings establish: nothing (1), a part (2), or everything needed (3)."""

    level: int
    value: str | None = None
    support: tuple[Sighting, ...] = ()
    missing: tuple[Fact, ...] = ()
    """Patterns of what else must be seen."""
    excluded: tuple[int, ...] = ()
    """Indices of options that are known to be wrong."""


def solve(
    query: LabQuery,
    sightings: Sequence[Sighting],
    *,
    options: Sequence[str] = (),
    duration: float,
    looked_at: Sequence[float] = (),
) -> Finding:
    """The finding for a query; ``looked_at`` includes times at which nothing was noticed."""
    if query.form in ("before", "after"):
        return _order(query, sightings, options)
    if query.form in ("next", "previous"):
        return _neighbour(query, sightings)
    if query.form in ("count", "count_kind"):
        return _count(query, sightings, duration, looked_at)
    if query.form in ("hop_person", "hop_place"):
        return _hop(query, sightings)
    if query.form == "topic":
        return _topic(sightings)
    return _direct(query, sightings, duration)


def joined(sightings: Sequence[Sighting]) -> list[Sighting]:
    """The sightings, with loose sign texts joined to unread signs seen around the same time.

    OCR reports text without colour or place; vision may notice a sign without reading it.
    """
    known: list[Sighting] = []
    blank: list[tuple[Sign, float]] = []
    texts: list[tuple[str, float]] = []
    for sighting in sightings:
        fact, time = sighting.fact, sighting.time
        if isinstance(fact, Sign) and fact.colour is None:
            if fact.text and time is not None:
                texts.append((fact.text, time))
            continue
        known.append(sighting)
        if isinstance(fact, Sign) and fact.text is None and time is not None:
            blank.append((fact, time))
    for text, time in texts:
        distances = [(abs(time - seen), sign) for sign, seen in blank]
        distance, sign = min(distances, key=lambda pair: pair[0], default=(math.inf, Sign()))
        if distance <= 8.0:  # signs are shown longer, and two are seldom this close
            known.append(Sighting(replace(sign, text=text), time))
    return known


def _direct(query: LabQuery, sightings: Sequence[Sighting], duration: float) -> Finding:
    assert query.first is not None
    pattern = query.first
    matching = [s for s in sightings if fits(pattern, s.fact) and query.within(s.time, duration)]
    if query.form == "sign":
        matching = [s for s in matching if isinstance(s.fact, Sign) and s.fact.text]
    if query.form == "colour":
        matching = [s for s in matching if handles(s.fact, query.kind)]
    return _most_seen(query, matching, (pattern,))


def handles(fact: Fact, kind: str | None) -> bool:
    """Whether a fact is a deed with a thing of the given kind."""
    return isinstance(fact, Deed) and fact.thing is not None and fact.thing.kind == kind


def _most_seen(query: LabQuery, matching: Sequence[Sighting], missing: tuple[Fact, ...]) -> Finding:
    """The value seen most often; sightings disagree when one of them was hallucinated."""
    if not matching:
        return Finding(1, missing=missing)
    votes = Counter(value_of(query.form, s.fact) for s in matching)
    value = votes.most_common(1)[0][0]
    support = tuple(s for s in matching if value_of(query.form, s.fact) == value)
    return Finding(3, value, support)


def _order(query: LabQuery, sightings: Sequence[Sighting], options: Sequence[str]) -> Finding:
    """The option whose deed lies on the asked side of the anchor, directly or by elimination."""
    anchor = _earliest(query.first, sightings)
    deeds = [stated_deed(option) for option in options]
    sighted = [_earliest(deed, sightings) if deed else None for deed in deeds]
    pairs = zip(deeds, sighted, strict=True)
    lacking = tuple(deed for deed, sighting in pairs if deed and sighting is None)
    if anchor is None or anchor.time is None:
        seen = tuple(sighting for sighting in sighted if sighting)
        assert query.first is not None
        return Finding(2 if seen else 1, None, seen, (query.first, *lacking))
    excluded = []  # options whose deed is known to lie on the wrong side
    for number, sighting in enumerate(sighted):
        if sighting is None or sighting.time is None:
            continue
        if (sighting.time < anchor.time) == (query.form == "before"):
            return Finding(3, options[number], (anchor, sighting))
        excluded.append(number)
    # all but one are known to be wrong: the remaining one is right, seen or not
    if options and len(excluded) == len(options) - 1:
        left = next(n for n in range(len(options)) if n not in excluded)
        return Finding(3, options[left], (anchor,))
    return Finding(2, None, (anchor,), lacking, tuple(excluded))


def _neighbour(query: LabQuery, sightings: Sequence[Sighting]) -> Finding:
    """What the same person does right before or after the anchor."""
    anchor_deed = query.first
    assert isinstance(anchor_deed, Deed)
    anchor = _earliest(anchor_deed, sightings)
    if anchor is None or anchor.time is None:
        return Finding(1, missing=(anchor_deed,))
    theirs = Deed(person=anchor_deed.person, place=anchor_deed.place)
    direction = 1.0 if query.form == "next" else -1.0
    gaps: list[tuple[float, Sighting]] = []
    for s in sightings:
        same_person = isinstance(s.fact, Deed) and s.fact.person == anchor_deed.person
        if not same_person or s.fact == anchor_deed or s.time is None:
            continue
        gap = direction * (s.time - anchor.time)
        if gap > 0:
            gaps.append((gap, s))
    if not gaps:
        return Finding(2, None, (anchor,), (theirs,))
    gap, nearest = min(gaps, key=lambda pair: pair[0])
    value, support = value_of(query.form, nearest.fact), (anchor, nearest)
    # with a longer gap, another deed may have gone unseen in between
    return Finding(3, value, support) if gap <= 60.0 else Finding(2, value, support, (theirs,))


def _count(
    query: LabQuery, sightings: Sequence[Sighting], duration: float, looked_at: Sequence[float]
) -> Finding:
    assert query.first is not None
    pattern = query.first
    counted: dict[Fact, Sighting] = {}
    for s in sightings:
        wanted = query.kind is None or handles(s.fact, query.kind)
        if wanted and fits(pattern, s.fact):
            counted.setdefault(s.fact, s)  # deeds are unique, so a repeat is the same one
    if not counted:
        return Finding(1, missing=(pattern,))
    value, support = str(len(counted)), tuple(counted.values())
    edges = sorted({0.0, *looked_at, duration})
    # a longer gap between looks may hide a deed
    complete = max(later - earlier for earlier, later in pairwise(edges)) <= 15.0
    return Finding(3, value, support) if complete else Finding(2, value, support, (pattern,))


def _hop(query: LabQuery, sightings: Sequence[Sighting]) -> Finding:
    """The answer over a bridge: the first deed identifies the person or place of the second."""
    assert query.first is not None
    assert query.second is not None
    bridge = next((s for s in sightings if fits(query.first, s.fact)), None)
    if bridge is None:
        ends = tuple(s for s in sightings if fits(query.second, s.fact))
        return Finding(2 if ends else 1, None, ends, (query.first,))
    assert isinstance(bridge.fact, Deed)
    if query.form == "hop_person":
        second = replace(query.second, person=bridge.fact.person)
    else:
        second = replace(query.second, place=bridge.fact.place)
    matching = [s for s in sightings if fits(second, s.fact)]
    if not matching:
        return Finding(2, None, (bridge,), (second,))
    end = _most_seen(query, matching, ())
    return replace(end, support=(bridge, *end.support))


def _topic(sightings: Sequence[Sighting]) -> Finding:
    deeds: dict[Deed, Sighting] = {s.fact: s for s in sightings if isinstance(s.fact, Deed)}
    themes = Counter(v.THEME_OF[deed.thing.kind] for deed in deeds if deed.thing)
    if not themes:
        return Finding(1, missing=(Deed(),))
    (theme, count), *others = themes.most_common()
    support = tuple(deeds.values())
    # a few deeds prove no theme, and a tie is never clear
    clear = len(deeds) >= 8 and (not others or count > others[0][1])
    return Finding(3, theme, support) if clear else Finding(2, theme, support, (Deed(),))


def _earliest(pattern: Fact | None, sightings: Sequence[Sighting]) -> Sighting | None:
    """The earliest sighting of a deed; deeds are unique, so any sighting identifies it."""
    if pattern is None:
        return None
    matching = [s for s in sightings if fits(pattern, s.fact) and s.time is not None]
    return min(matching, key=lambda s: s.time or 0.0, default=None)


def option_of(finding: Finding, options: Sequence[str]) -> int | None:
    """The index of the option that a finding supports; a count goes to the nearest number."""
    if finding.value is None or not options:
        return None
    for number, option in enumerate(options):
        if same(option, finding.value):
            return number
    if not finding.value.isdigit() or not all(option.isdigit() for option in options):
        return None
    counted, numbers = int(finding.value), [int(option) for option in options]
    # ties go to the larger number: what was counted may be incomplete
    return min(range(len(options)), key=lambda n: (abs(numbers[n] - counted), -numbers[n]))
