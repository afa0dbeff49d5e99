"""Skills that fill fields with several values."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from longtake.lab.checking import contradicts, passages, supports
from longtake.lab.facts import Saying
from longtake.lab.grammar import sentence, wish
from longtake.lab.mind import Mind, scope_of
from longtake.lab.peers import scores
from longtake.lab.planning import best_intervals
from longtake.lab.queries import same
from longtake.types import Segment

WISHES = 3
"""Number of pictures requested at once."""


def missing(mind: Mind) -> list[dict[str, Any]]:
    """Ask for more: numbered segments from the prompt, and what to look for in each."""
    segments = mind.shown.numbered_segments()
    wishes = [wish(need) for need in mind.needs] or [mind.retrieval]
    requests = []
    for place, number in enumerate(_by_promise(mind, segments)[:WISHES]):
        requests.append({"segment": number, "description": wishes[place % len(wishes)]})
    return requests


def _by_promise(mind: Mind, segments: Mapping[int, Segment]) -> list[int]:
    """The numbers of segments, most promising first.

    Segments in the part of the film that is asked about come first, then those on the right side
    of a known anchor, then those near a clue, then longer ones, which hide more.
    """
    scope = Segment(*scope_of(mind))
    anchor = _anchor(mind)
    form = mind.query.form if mind.query else ""
    clues = []
    for sighting in mind.shown.sightings:
        if sighting.time is not None and mind.relevance([sighting]) >= 0.5:
            clues.append(sighting.time)

    def rank(number: int) -> tuple[bool, bool, bool, float, int]:
        segment = segments[number]
        outside = segment.overlap(scope) == 0
        wrong_side = anchor is not None and _wrong_side(form, segment, anchor)
        distances = [abs(time - segment.middle) - segment.duration / 2 for time in clues]
        far = min(distances, default=1e9) > 1.0
        return outside, wrong_side, far, -segment.duration, number

    return sorted(segments, key=rank)


def _anchor(mind: Mind) -> float | None:
    """The time of the first supporting sighting if the question is settled only in part."""
    if mind.finding.level != 2 or not mind.finding.support:
        return None
    return mind.finding.support[0].time


def _wrong_side(form: str, segment: Segment, anchor: float) -> bool:
    """Whether the answer cannot lie in a segment, because it is before or after the anchor."""
    if form in ("before", "previous"):
        return segment.start >= anchor
    return form in ("after", "next") and segment.end <= anchor


def timeline(mind: Mind) -> list[dict[str, Any]]:
    """A timeline: what each picture shows until the next one; equal neighbours are merged."""
    times = sorted({float(moment.second) for moment in mind.shown.moments if moment is not None})
    blocks: list[dict[str, Any]] = []
    for number, time in enumerate(times):
        is_last = number + 1 == len(times)
        end = min(time + 1.0, mind.shown.duration) if is_last else times[number + 1]
        description = " ".join(sentence(s.fact) for s in mind.shown.seen if s.time == time)
        if blocks and description and blocks[-1]["description"] == description:
            blocks[-1]["end"] = end
        elif description:
            blocks.append({"start": time, "end": end, "description": description})
    return blocks


def groups(mind: Mind) -> list[list[int]]:
    """Numbered answers, grouped by their content words."""
    alike: dict[str, list[int]] = {}
    for number, said in mind.shown.numbered_lines().items():
        content = _content(said)
        key = next((known for known in alike if same(known, content)), content)
        alike.setdefault(key, []).append(number)
    return list(alike.values())


_EMPTY_WORDS = frozenset({"the", "a", "an", "it", "is", "at", "says", "in", "of", "answer"})


def _content(text: str) -> str:
    words = re.findall(r"[a-z0-9]+", text.lower())
    return " ".join(sorted(word for word in words if word not in _EMPTY_WORDS))


def facets(mind: Mind) -> list[dict[str, Any]]:
    """Decompose: what would be visible if each option were right; one facet if there are none."""
    parts = []
    for option in mind.shown.options or ("",):  # an open question has one facet
        need = mind.option_need(option) if option else None
        query = wish(need) if need else f"{mind.retrieval} {option}".strip()
        entities = ([option] if option else []) + mind.entities()
        parts.append({"option": option, "entities": entities[:5], "event_query": query})
    return parts


def entities(mind: Mind) -> list[str]:
    """The things, people and places that the question names."""
    return mind.entities()


def lines(mind: Mind) -> list[dict[str, Any]]:
    """Subtitle lines that bear on the question, with times; all of them if nothing is asked."""
    said = [s for s in mind.shown.told if isinstance(s.fact, Saying)]
    relevant = [s for s in said if mind.query is None or mind.relevance([s]) > 0.5]
    quoted = []
    for sighting in relevant or said[:3]:
        start = sighting.time or 0.0
        quoted.append({"start": start, "end": start + 4.0, "text": sentence(sighting.fact)})
    return quoted


def intervals(mind: Mind) -> list[dict[str, Any]]:
    """Time ranges worth a look: those named in the prompt, most relevant first."""
    return [{"start": s.start, "end": s.end} for s in best_intervals(mind)[:4]]


LISTS: Mapping[str, Callable[[Mind], list[Any]]] = {
    "missing": missing,
    "supports": supports,
    "contradicts": contradicts,
    **dict.fromkeys(("passages", "films"), passages),
    "events": timeline,
    "scores": scores,
    "groups": groups,
    **dict.fromkeys(("facets", "options"), facets),
    **dict.fromkeys(("query_keywords", "keywords", "entities", "queries"), entities),
    "lines": lines,
    **dict.fromkeys(("intervals", "segments", "ranges"), intervals),
}
"""Field name to the skill that fills a list."""
