"""Every occurrence of words, the first or last one, and what is said at a time."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import groupby

from longtake._util.timecode import clock, parse_time
from longtake.algorithms import passages as matching
from longtake.footage.protocol import Footage
from longtake.retrieval.passages import Passage, cite, lines_of
from longtake.retrieval.question_kinds import asks_for
from longtake.tracing.events import note
from longtake.types import Answer, Evidence, Question, Segment

PLACES = {
    "speech": "what is said",
    "onscreen": "what is written on screen",
    "caption": "the captions",
}


_ORDER = re.compile(r"\b(?:first|last)\b", re.IGNORECASE)


def all_occurrences(
    question: Question,
    phrase: str,
    passages: Sequence[Passage],
    footage: Footage,
    stretch: Segment | None,
) -> Answer:
    """Every occurrence of a phrase, or the first or last one, with what was read for it."""
    found: list[Evidence] = []
    counts: dict[str, int] = {}
    for source, group in groupby(passages, key=lambda passage: passage.source):
        together = list(group)
        # speech continues in the next line; a screen does not
        runs = [together] if source == "speech" else [[passage] for passage in together]
        hits = [hit for run in runs for hit in matching.occurrences(phrase, lines_of(run))]
        counts[source] = len(hits)
        found += [Evidence(hit.segment, source, hit.text) for hit in hits]
    covered = coverage(footage, stretch, f"read{alike(phrase, passages, found)}")
    note("occurrences", words=phrase, found=counts)
    if not found:
        nowhere = f'"{phrase}" is not in {" or ".join(map(PLACES.__getitem__, counts or PLACES))}'
        return Answer(reason=f"{nowhere} {covered}", status="abstained")
    found.sort(key=_start)
    order = _ORDER.search(question.text)
    if asks_for(question) == "when":
        if order:
            found = found[:1] if order[0].lower() == "first" else found[-1:]
        also = [clock(cited.segment.start) for cited in found[1:]]
        text = f'At {clock(found[0].segment.start)}: "{found[0].text}"'
        text += f"; also at {', '.join(also)}" if also else ""
        return Answer(text=text, evidence=tuple(found))
    return tally(question, found, counts, covered)


def coverage(footage: Footage, stretch: Segment | None, how: str) -> str:
    """What was read for an answer about all occurrences."""
    part = f"all of {clock(footage.duration)}" if stretch is None else _span(stretch)
    unseen = "; pictures not looked at" if "pictures" in footage.has else ""
    return f"({part} {how}){unseen}"


def tally(
    question: Question, found: Sequence[Evidence], counts: Mapping[str, int], covered: str
) -> Answer:
    """How often something occurs and, for a list, when."""
    times = [
        f"{count} {'time' if count == 1 else 'times'} in {PLACES[source]}"
        for source, count in counts.items()
    ]
    text = " and ".join(times)
    if asks_for(question) == "list":
        text += f": {', '.join(clock(cited.segment.start) for cited in found)}"
    return Answer(text=f"{text} {covered}", evidence=tuple(found))


def alike(phrase: str, passages: Sequence[Passage], found: Sequence[Evidence]) -> str:
    """A remark on lines that may hold a phrase of several words, misheard or misread."""
    if len(phrase.split()) < 2:
        return ""
    exact = " ".join(cited.text for cited in found)
    lines = [line for line in lines_of(passages) if line.text not in exact]
    unsure = [line for line in lines if matching.match(phrase, line.text) >= matching.SURE]
    quoted = [f'{clock(line.segment.start)} "{line.text}"' for line in unsure]
    return f"; perhaps also {', '.join(quoted)}" if quoted else ""


def moment(found: Sequence[Passage]) -> Answer:
    """When the most relevant passage is said or shown."""
    best = max(found, key=lambda passage: passage.relevance)
    text = f'At {clock(best.segment.start)}: "{best.text}"'
    return Answer(text=text, evidence=(cite(best, best.relevance),))


def _start(cited: Evidence) -> Segment:
    return cited.segment


def _span(stretch: Segment | None) -> str:
    return "" if stretch is None else f"{clock(stretch.start)} to {clock(stretch.end)}"


_AT = re.compile(
    r"\b(?:said|says?|shown|written|heard)\b.*\bat (?P<time>(?:\d{1,2}:)?\d{1,2}:[0-5]\d)\b", re.I
)


def asks_at(question: Question) -> float | None:
    """The time that "What is said at 0:46?" names; ``None`` if the question names none."""
    found = None if question.options else _AT.search(question.text)
    return None if found is None else parse_time(found["time"])


def at_time(passages: Sequence[Passage], time: float, footage: Footage) -> Answer:
    """What is said and written at a time."""
    around = Segment(max(0.0, time - 1.0), time + 2.0)
    there = [each for each in passages if each.segment.overlap(around) > 0]
    if not there:
        reason = f"nothing is said or written at {clock(time)} of {clock(footage.duration)}"
        return Answer(reason=reason, status="abstained")
    text = " … ".join(f"“{each.text}”" for each in there)
    return Answer(text=text, evidence=tuple(cite(each, 1.0) for each in there))
