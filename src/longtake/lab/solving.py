"""What follows for a query from a list of sightings, and how far it can be trusted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from longtake.lab import vocabulary as v
from longtake.lab.facts import Deed, Fact, Sighting, Sign, fits
from longtake.lab.queries import RELATIONS, Query, deed_in, place_of, value_of

NEAR = 60.0
"""Seconds within which a deed of the same person is taken to be the next."""
READ_WITH = 8.0
"""Seconds within which a text that was read belongs to a sign that was seen."""
ENOUGH_DEEDS = 8
"""Different deeds from which what a film is about can be told for sure."""
NO_GAP = 15.0
"""Seconds between looks at which nothing is missed, so that a count can be sure."""


@dataclass(frozen=True)
class Finding:
    """What was found out: nothing (1), a part (2), or all that is needed (3)."""

    level: int
    value: str | None = None
    support: tuple[Sighting, ...] = ()
    missing: tuple[Fact, ...] = ()
    """What else must be seen."""
    excluded: tuple[int, ...] = ()
    """Options that are known to be wrong."""


def solve(
    query: Query,
    sightings: Sequence[Sighting],
    *,
    options: Sequence[str] = (),
    duration: float,
    looks: Sequence[float] = (),
) -> Finding:
    """The finding for a query; ``looks`` are all moments that were looked at, also where nothing was seen."""
    if query.form in ("before", "after"):
        return _order(query, sightings, options)
    if query.form in ("next", "previous"):
        return _neighbour(query, sightings)
    if query.form in ("count", "count_kind"):
        return _count(query, sightings, duration, looks)
    if query.form in ("hop_person", "hop_place"):
        return _hop(query, sightings)
    if query.form == "topic":
        return _topic(sightings)
    return _direct(query, sightings, duration)


def joined(sightings: Sequence[Sighting]) -> list[Sighting]:
    """Sightings, with signs that were seen unread given the text that was read at the same time."""
    known, blank, texts = list[Sighting](), list[tuple[Sign, float]](), list[tuple[str, float]]()
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
        near = min(
            ((abs(time - seen), sign) for sign, seen in blank), key=lambda one: one[0], default=None
        )
        if near is not None and near[0] <= READ_WITH:
            known.append(Sighting(replace(near[1], text=text), time))
    return known


def _direct(query: Query, sightings: Sequence[Sighting], duration: float) -> Finding:
    assert query.first is not None
    pattern = query.first
    found = [s for s in sightings if fits(pattern, s.fact) and query.within(s.time, duration)]
    if query.form == "sign":
        found = [s for s in found if isinstance(s.fact, Sign) and s.fact.text]
    if query.form == "colour":
        found = [
            s
            for s in found
            if isinstance(s.fact, Deed) and s.fact.thing and s.fact.thing.kind == query.kind
        ]
    return _most_seen(query, found, (pattern,))


def _most_seen(query: Query, found: Sequence[Sighting], missing: tuple[Fact, ...]) -> Finding:
    """Where sightings disagree, which happens when one was imagined, what was seen most often stands."""
    if not found:
        return Finding(1, missing=missing)
    votes = Counter(value_of(query.form, s.fact) for s in found)
    value = votes.most_common(1)[0][0]
    return Finding(3, value, tuple(s for s in found if value_of(query.form, s.fact) == value))


def _order(query: Query, sightings: Sequence[Sighting], options: Sequence[str]) -> Finding:
    anchor = _earliest(query.first, sightings)
    deeds = [deed_in(option) for option in options]
    times = [_earliest(deed, sightings) if deed else None for deed in deeds]
    lacking = tuple(d for d, t in zip(deeds, times, strict=True) if d and t is None)
    if anchor is None or anchor.time is None:
        seen = tuple(t for t in times if t)
        assert query.first is not None
        return Finding(2 if seen else 1, None, seen, (query.first, *lacking))
    excluded = []
    for number, sighting in enumerate(times):
        if sighting is None or sighting.time is None:
            continue
        if (sighting.time < anchor.time) == (query.form == "before"):
            return Finding(3, options[number], (anchor, sighting))
        excluded.append(number)
    if options and len(excluded) == len(options) - 1:
        left = next(n for n in range(len(options)) if n not in excluded)
        return Finding(3, options[left], (anchor,))
    return Finding(2, None, (anchor,), lacking, tuple(excluded))


def _neighbour(query: Query, sightings: Sequence[Sighting]) -> Finding:
    assert isinstance(query.first, Deed)
    anchor = _earliest(query.first, sightings)
    theirs = Deed(person=query.first.person, place=query.first.place)
    if anchor is None or anchor.time is None:
        return Finding(1, missing=(query.first,))
    sign = 1.0 if query.form == "next" else -1.0
    others = [
        (sign * (s.time - anchor.time), s)
        for s in sightings
        if isinstance(s.fact, Deed)
        and s.fact != query.first
        and s.fact.person == query.first.person
        and s.time is not None
        and sign * (s.time - anchor.time) > 0
    ]
    if not others:
        return Finding(2, None, (anchor,), (theirs,))
    gap, best = min(others, key=lambda one: one[0])
    level = 3 if gap <= NEAR else 2
    return Finding(
        level, value_of(query.form, best.fact), (anchor, best), () if level == 3 else (theirs,)
    )


def _count(
    query: Query, sightings: Sequence[Sighting], duration: float, looks: Sequence[float]
) -> Finding:
    assert query.first is not None
    pattern = query.first
    found: dict[Fact, Sighting] = {}
    for s in sightings:
        counted = query.kind is None or (
            isinstance(s.fact, Deed) and s.fact.thing and s.fact.thing.kind == query.kind
        )
        if fits(pattern, s.fact) and counted:
            found.setdefault(s.fact, s)
    if not found:
        return Finding(1, missing=(pattern,))
    edges = sorted({0.0, *looks, duration})
    complete = max(b - a for a, b in pairwise(edges)) <= NO_GAP
    return Finding(
        3 if complete else 2, str(len(found)), tuple(found.values()), () if complete else (pattern,)
    )


def _hop(query: Query, sightings: Sequence[Sighting]) -> Finding:
    assert query.first is not None
    assert query.second is not None
    bridges = [s for s in sightings if fits(query.first, s.fact)]
    for bridge in bridges:
        assert isinstance(bridge.fact, Deed)
        if query.form == "hop_person":
            second = replace(query.second, person=bridge.fact.person)
        else:
            second = replace(query.second, place=bridge.fact.place)
        found = [s for s in sightings if fits(second, s.fact)]
        if found:
            end = _most_seen(query, found, ())
            return replace(end, support=(bridge, *end.support))
        return Finding(2, None, (bridge,), (second,))
    ends = tuple(s for s in sightings if fits(query.second, s.fact))
    return Finding(2 if ends else 1, None, ends, (query.first,))


def _topic(sightings: Sequence[Sighting]) -> Finding:
    deeds = {s.fact: s for s in sightings if isinstance(s.fact, Deed)}
    themes = Counter(
        v.THEME_OF[deed.thing.kind] for deed in deeds if isinstance(deed, Deed) and deed.thing
    )
    if not themes:
        return Finding(1, missing=(Deed(),))
    (theme, most), *others = themes.most_common()
    clear = len(deeds) >= ENOUGH_DEEDS and (not others or most > others[0][1])
    return Finding(3 if clear else 2, theme, tuple(deeds.values()), () if clear else (Deed(),))


def _earliest(pattern: Fact | None, sightings: Sequence[Sighting]) -> Sighting | None:
    """Deeds are unique in a film: any sighting of one will do, the earliest is taken."""
    found = [
        s for s in sightings if pattern is not None and fits(pattern, s.fact) and s.time is not None
    ]
    return min(found, key=lambda s: s.time or 0.0, default=None)


def option_of(finding: Finding, options: Sequence[str]) -> int | None:
    """The option that a finding speaks for; a count that is no option goes to the nearest."""
    if finding.value is None or not options:
        return None
    exact = place_of(options, finding.value)
    if exact is None and finding.value.isdigit() and all(option.isdigit() for option in options):
        wanted = int(finding.value)
        return min(
            range(len(options)), key=lambda n: (abs(int(options[n]) - wanted), -int(options[n]))
        )
    return exact


SPOKEN_FORMS = frozenset(RELATIONS)
