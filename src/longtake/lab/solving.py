"""Answers a query from a list of sightings, and grades how far the answer can be trusted."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from longtake.lab import vocabulary as v
from longtake.lab.facts import Deed, Fact, Sighting, Sign, fits
from longtake.lab.queries import RELATIONS, Query, deed_in, index_of, value_of

NEAR = 60.0
"""Seconds within which the same person's nearest deed counts as the adjacent one."""
READ_WITH = 8.0
"""Maximum seconds between a sign that was seen and a text that is attributed to it."""
ENOUGH_DEEDS = 8
"""Number of distinct deeds from which the theme of a film is certain."""
NO_GAP = 15.0
"""Maximum seconds between two looked-at moments for a count to be complete."""


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
    query: Query,
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
        if distance <= READ_WITH:
            known.append(Sighting(replace(sign, text=text), time))
    return known


def _direct(query: Query, sightings: Sequence[Sighting], duration: float) -> Finding:
    assert query.first is not None
    pattern = query.first
    matching = [s for s in sightings if fits(pattern, s.fact) and query.within(s.time, duration)]
    if query.form == "sign":
        matching = [s for s in matching if isinstance(s.fact, Sign) and s.fact.text]
    if query.form == "colour":
        matching = [s for s in matching if _handles(s.fact, query.kind)]
    return _most_seen(query, matching, (pattern,))


def _handles(fact: Fact, kind: str | None) -> bool:
    """Whether a fact is a deed with a thing of the given kind."""
    return isinstance(fact, Deed) and fact.thing is not None and fact.thing.kind == kind


def _most_seen(query: Query, matching: Sequence[Sighting], missing: tuple[Fact, ...]) -> Finding:
    """The value seen most often; sightings disagree when one of them was hallucinated."""
    if not matching:
        return Finding(1, missing=missing)
    votes = Counter(value_of(query.form, s.fact) for s in matching)
    value = votes.most_common(1)[0][0]
    support = tuple(s for s in matching if value_of(query.form, s.fact) == value)
    return Finding(3, value, support)


def _order(query: Query, sightings: Sequence[Sighting], options: Sequence[str]) -> Finding:
    """The option whose deed lies on the asked side of the anchor, directly or by elimination."""
    anchor = _earliest(query.first, sightings)
    deeds = [deed_in(option) for option in options]
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


def _neighbour(query: Query, sightings: Sequence[Sighting]) -> Finding:
    """What the same person does right before or after the anchor."""
    asked = query.first
    assert isinstance(asked, Deed)
    anchor = _earliest(asked, sightings)
    if anchor is None or anchor.time is None:
        return Finding(1, missing=(asked,))
    theirs = Deed(person=asked.person, place=asked.place)
    direction = 1.0 if query.form == "next" else -1.0
    gaps: list[tuple[float, Sighting]] = []
    for s in sightings:
        same_person = isinstance(s.fact, Deed) and s.fact.person == asked.person
        if not same_person or s.fact == asked or s.time is None:
            continue
        gap = direction * (s.time - anchor.time)
        if gap > 0:
            gaps.append((gap, s))
    if not gaps:
        return Finding(2, None, (anchor,), (theirs,))
    gap, nearest = min(gaps, key=lambda pair: pair[0])
    value, support = value_of(query.form, nearest.fact), (anchor, nearest)
    # with a longer gap, another deed may have gone unseen in between
    return Finding(3, value, support) if gap <= NEAR else Finding(2, value, support, (theirs,))


def _count(
    query: Query, sightings: Sequence[Sighting], duration: float, looked_at: Sequence[float]
) -> Finding:
    assert query.first is not None
    pattern = query.first
    counted: dict[Fact, Sighting] = {}
    for s in sightings:
        wanted = query.kind is None or _handles(s.fact, query.kind)
        if wanted and fits(pattern, s.fact):
            counted.setdefault(s.fact, s)  # deeds are unique, so a repeat is the same one
    if not counted:
        return Finding(1, missing=(pattern,))
    value, support = str(len(counted)), tuple(counted.values())
    edges = sorted({0.0, *looked_at, duration})
    complete = max(later - earlier for earlier, later in pairwise(edges)) <= NO_GAP
    return Finding(3, value, support) if complete else Finding(2, value, support, (pattern,))


def _hop(query: Query, sightings: Sequence[Sighting]) -> Finding:
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
    (theme, most), *others = themes.most_common()
    support = tuple(deeds.values())
    # a tie between themes is never clear
    clear = len(deeds) >= ENOUGH_DEEDS and (not others or most > others[0][1])
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
    exact = index_of(options, finding.value)
    numeric = finding.value.isdigit() and all(option.isdigit() for option in options)
    if exact is not None or not numeric:
        return exact
    counted, numbers = int(finding.value), [int(option) for option in options]
    # ties go to the larger number: what was counted may be incomplete
    return min(range(len(options)), key=lambda n: (abs(numbers[n] - counted), -numbers[n]))


SPOKEN_FORMS = frozenset(RELATIONS)
"""Forms of questions that the narrator answers."""
