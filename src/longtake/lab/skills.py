"""What a simulated model can do, chosen by the names of the fields that a reply must have, and by nothing else.

:data:`VALUES` fills fields that hold one value, :data:`LISTS` those that hold several. The table in
``docs/lab.md`` is made from their docstrings, and a test keeps the two together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from longtake.lab.facts import Deed, Fact, Saying, Sighting, Sign
from longtake.lab.grammar import facts_in, sentence, wish
from longtake.lab.mind import Mind, scope_of, timed
from longtake.lab.planning import PLANNING, best_intervals
from longtake.lab.queries import WHOLE_FILM, same
from longtake.lab.solving import option_of
from longtake.timecode import clock
from longtake.types import LETTERS, Segment

WISHES = 3
"""Pictures that are asked for at once."""


def describe(mind: Mind) -> str:
    """Describe the pictures; without pictures, sum up the notes."""
    return mind.describe() if mind.shown.moments else summary(mind)


def answer(mind: Mind) -> str:
    """The answer in words, or its letter where the field admits letters only."""
    return mind.answer


def summary(mind: Mind) -> str:
    """Sum up what is known: what speaks for the answer first, then what else was noted."""
    facts = dict.fromkeys(
        [*(s.fact for s in mind.finding.support), *(s.fact for s in mind.shown.sightings)]
    )
    told = [
        sentence(fact)
        for fact in facts
        if isinstance(fact, Deed | Sign | Saying) and _complete(fact)
    ]
    return mind.padded(" ".join(told[:6]) or "There is little to tell.")


def findings(mind: Mind) -> str:
    """Report what is known, each thing after its time: what speaks for the answer first, then what else was noted."""
    known: dict[Fact, Sighting] = {}
    for sighting in [*mind.finding.support, *mind.shown.sightings]:
        if isinstance(sighting.fact, Deed | Sign | Saying) and _complete(sighting.fact):
            known.setdefault(sighting.fact, sighting)
    return mind.padded(
        " ".join(timed(sighting) for sighting in list(known.values())[:8]) or "Nothing was found."
    )


def confidence(mind: Mind) -> int:
    """Grade: 3 where what was shown settles the question, 2 where a part of it does, 1 otherwise."""
    return mind.finding.level


def whole_video(mind: Mind) -> bool:
    """Whether the whole film must be watched: for counting and for what a film is about."""
    return mind.query is not None and mind.query.form in WHOLE_FILM


def needs_more_info(mind: Mind) -> bool:
    """Whether something is still missing."""
    return mind.finding.level < 3


def missing_keyword(mind: Mind) -> str:
    """What is missing most, empty where nothing is."""
    return wish(mind.needs[0]) if mind.needs and mind.finding.level < 3 else ""


def score(mind: Mind) -> int:
    """Relevance of the pictures (of the notes, without pictures) to what is asked or looked for, 1 to 4."""
    share = mind.relevance(mind.shown.seen if mind.shown.moments else mind.shown.sightings)
    return 1 + (share >= 0.34) + (share >= 0.6) + (share >= 0.99)


def temporal_plan(mind: Mind) -> str:
    """Which part of the film the question is about."""
    start, end = scope_of(mind)
    if mind.query is not None and mind.query.form in ("before", "after", "next", "previous"):
        return f"find the moment that is named, then look {mind.query.form} it"
    return f"{clock(start)} to {clock(end)}"


def credible(mind: Mind) -> bool:
    """Whether the notes settle the question, and for the answer that is proposed, where that can be made out."""
    proposed = re.findall(
        r"(?:answer|choice|proposed|proposal)\W{1,4}(?:is\W+)?([A-Z])\b", mind.shown.text
    )
    if mind.finding.level < 3:
        return False
    if mind.shown.options:
        return not proposed or proposed[-1] == mind.letter
    said = re.compile(r"\b(?:answer|proposed)\W*:", re.IGNORECASE)
    lines = [line for line in mind.shown.text.splitlines() if said.search(line)]
    return not lines or any(mind.answer.lower() in line.lower() for line in lines)


def comment(mind: Mind) -> str:
    """What speaks for the proposed answer, or what is missing."""
    if credible(mind):
        return f"The notes support it: {mind.reason}"
    return f"The notes do not settle it; look for {mind.retrieval}."


def topic(mind: Mind) -> str:
    """What the spoken lines are about."""
    said = [
        s.fact.subject for s in mind.shown.told if isinstance(s.fact, Saying) and s.fact.subject
    ]
    return (
        f"the narrator speaks of the {', the '.join(said[:4])}" if said else "nothing in particular"
    )


def _complete(fact: Fact) -> bool:
    return not isinstance(fact, Sign) or (fact.text is not None and fact.colour is not None)


VALUES: Mapping[str, Callable[[Mind], Any]] = {
    **dict.fromkeys(("caption", "description", "observation"), describe),
    "text": lambda mind: mind.answer if mind.query else describe(mind),
    **dict.fromkeys(("answer", "final_answer", "prediction"), answer),
    **dict.fromkeys(("choice", "letter", "option"), lambda mind: mind.letter or mind.answer),
    **dict.fromkeys(
        ("reason", "reasoning", "rationale", "justification", "why"),
        lambda mind: mind.padded(mind.reason),
    ),
    **dict.fromkeys(("summary", "explanation"), summary),
    "findings": findings,
    "confidence": confidence,
    "whole_video": whole_video,
    **dict.fromkeys(
        (
            "key_information",
            "clue",
            "general_query",
            "event_query",
            "query",
            "cue",
            "keyword",
            "search",
        ),
        lambda mind: mind.retrieval,
    ),
    "vlm_query": lambda mind: mind.query.text if mind.query else mind.retrieval,
    "needs_more_info": needs_more_info,
    "missing_keyword": missing_keyword,
    **dict.fromkeys(("score", "relevance"), score),
    "temporal_plan": temporal_plan,
    "credible": credible,
    "comment": comment,
    "sentiment": lambda _: "neutral",
    "topic": topic,
    **PLANNING,
}
"""Field name to what fills it."""


def missing(mind: Mind) -> list[dict[str, Any]]:
    """Ask for more: segments of those listed with numbers in the prompt, and what to look for there."""
    segments = mind.shown.numbered_segments()
    if not segments:
        return []
    start, end = scope_of(mind)
    clues = [
        s.time for s in mind.shown.sightings if s.time is not None and mind.relevance([s]) >= 0.5
    ]
    anchor = (
        mind.finding.support[0].time if mind.finding.level == 2 and mind.finding.support else None
    )

    def rank(number: int) -> tuple[Any, ...]:
        segment = segments[number]
        outside = segment.overlap(Segment(start, end)) == 0
        near = min(
            (abs(time - segment.middle) - segment.duration / 2 for time in clues), default=1e9
        )
        wrong_side = (
            anchor is not None
            and mind.query is not None
            and _wrong_side(mind.query.form, segment, anchor)
        )
        return outside, wrong_side, near > 1.0, -segment.duration, number

    wishes = [wish(need) for need in mind.needs] or [mind.retrieval]
    chosen = sorted(segments, key=rank)[:WISHES]
    return [
        {"segment": number, "description": wishes[place % len(wishes)]}
        for place, number in enumerate(chosen)
    ]


def _wrong_side(form: str, segment: Segment, anchor: float) -> bool:
    """Whether a segment lies where the answer cannot be."""
    if form in ("before", "previous"):
        return segment.start >= anchor
    return form in ("after", "next") and segment.end <= anchor


def events(mind: Mind) -> list[dict[str, Any]]:
    """A timeline: what each picture shows, from its time to that of the next; equal neighbours are one."""
    times = sorted({float(m.second) for m in mind.shown.moments if m is not None})
    made: list[dict[str, Any]] = []
    for number, time in enumerate(times):
        following = (
            times[number + 1] if number + 1 < len(times) else min(time + 1.0, mind.shown.duration)
        )
        here = [sentence(s.fact) for s in mind.shown.seen if s.time == time]
        if made and here and made[-1]["description"] == " ".join(here):
            made[-1]["end"] = following
        elif here:
            made.append({"start": time, "end": following, "description": " ".join(here)})
    return made


def scores(mind: Mind) -> list[dict[str, Any]]:
    """Score peers, 1 to 10, from the lines that begin with their names: facts that support the answer count."""
    return [
        {
            "name": name,
            "agent": name,
            "score": peer_score(mind, said),
            "reason": _verdict(mind, said),
        }
        for name, said in mind.shown.named_lines()
    ]


def peer_score(mind: Mind, said: str) -> int:
    """How convincing one answer with its reason is."""
    stated = [Sighting(fact, _clock_before(said, place)) for place, fact in facts_in(said)]
    found = mind.find(stated)
    options = mind.shown.options
    letter = re.match(r"\(?([A-Z])\b[.):]?", said)
    if options and letter:
        supported = option_of(found, options)
        agrees = supported is not None and LETTERS[supported] == letter[1]
    else:
        agrees = found.value is not None and found.value.lower() in said.lower()
    if found.level == 1 or not stated:
        return 2
    return {(3, True): 9, (2, True): 6, (2, False): 4, (3, False): 3}[found.level, agrees]


def _verdict(mind: Mind, said: str) -> str:
    given = peer_score(mind, said)
    return (
        "names what it saw, and that supports the answer"
        if given > 5
        else "names nothing that supports the answer"
    )


def _clock_before(text: str, place: int) -> float | None:
    found = re.findall(r"\[(\d+):(\d\d):(\d\d)\]", text[:place])
    if not found:
        return None
    hours, minutes, rest = map(int, found[-1])
    return float(hours * 3600 + minutes * 60 + rest)


def groups(mind: Mind) -> list[list[int]]:
    """Same meaning: numbered answers sorted into groups by their content words."""
    alike: dict[str, list[int]] = {}
    for number, said in mind.shown.numbered_lines().items():
        key = next((known for known in alike if same(known, _content(said))), _content(said))
        alike.setdefault(key, []).append(number)
    return list(alike.values())


def _content(text: str) -> str:
    dropped = {"the", "a", "an", "it", "is", "at", "says", "in", "of", "answer"}
    return " ".join(
        sorted(word for word in re.findall(r"[a-z0-9]+", text.lower()) if word not in dropped)
    )


def facets(mind: Mind) -> list[dict[str, Any]]:
    """Decompose: for each option what would be seen if it were right; open-ended, one for the question."""
    made = []
    for option in mind.shown.options or ("",):
        need = mind.option_need(option) if option else None
        words = [option] if option else []
        query = wish(need) if need else f"{mind.retrieval} {option}".strip()
        made.append(
            {"option": option, "entities": (words + mind.entities())[:5], "event_query": query}
        )
    return made


def lines(mind: Mind) -> list[dict[str, Any]]:
    """Read subtitles: the lines that bear on the question, with their times; all, where no question is known."""
    said = [s for s in mind.shown.told if isinstance(s.fact, Saying)]
    wanted = [s for s in said if mind.query is None or mind.relevance([s]) > 0.5]
    return [
        {"start": s.time or 0.0, "end": (s.time or 0.0) + 4.0, "text": sentence(s.fact)}
        for s in (wanted or said[:3])
    ]


def intervals(mind: Mind) -> list[dict[str, Any]]:
    """Stretches of film worth a look: those named in the prompt, the most relevant first."""
    return [{"start": s.start, "end": s.end} for s in best_intervals(mind)[:4]]


LISTS: Mapping[str, Callable[[Mind], list[Any]]] = {
    "missing": missing,
    "events": events,
    "scores": scores,
    "groups": groups,
    **dict.fromkeys(("facets", "options"), facets),
    **dict.fromkeys(("query_keywords", "keywords", "entities"), lambda mind: mind.entities()),
    "lines": lines,
    **dict.fromkeys(("intervals", "segments", "ranges"), intervals),
}
"""Field name to what fills a list."""
