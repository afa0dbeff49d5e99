"""What a simulated model can do. Skills are chosen by the names of reply fields, and nothing else.

:data:`VALUES` fills fields with a single value; :mod:`longtake.lab.skill_lists` fills those with
several. The table in ``docs/lab.md`` names every field of both, and a test keeps them in step.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from longtake.lab.facts import Deed, Fact, Saying, Sighting, Sign
from longtake.lab.grammar import sentence, wish
from longtake.lab.mind import Mind, scope_of, timed
from longtake.lab.planning import PLANNING
from longtake.lab.queries import WHOLE_FILM
from longtake.timecode import clock


def describe(mind: Mind) -> str:
    """Describe the pictures; without pictures, summarise the notes."""
    return mind.describe() if mind.shown.moments else summary(mind)


def answer(mind: Mind) -> str:
    """The answer in words, or its letter if the field accepts only letters."""
    return mind.answer


def summary(mind: Mind) -> str:
    """Summarise what is known: first what supports the answer, then everything else."""
    told = [sentence(sighting.fact) for sighting in _known(mind)[:6]]
    return mind.padded(" ".join(told) or "There is little to tell.")


def findings(mind: Mind) -> str:
    """Report what is known with times: first what supports the answer, then everything else."""
    told = [timed(sighting) for sighting in _known(mind)[:8]]
    return mind.padded(" ".join(told) or "Nothing was found.")


def _known(mind: Mind) -> list[Sighting]:
    """The first sighting of each fact that is worth telling, supporting facts first."""
    known: dict[Fact, Sighting] = {}
    for sighting in [*mind.finding.support, *mind.shown.sightings]:
        if isinstance(sighting.fact, Deed | Sign | Saying) and _complete(sighting.fact):
            known.setdefault(sighting.fact, sighting)
    return list(known.values())


def _complete(fact: Fact) -> bool:
    return not isinstance(fact, Sign) or (fact.text is not None and fact.colour is not None)


def confidence(mind: Mind) -> int:
    """Grade: 3 if the input settles the question, 2 if it does so in part, 1 otherwise."""
    return mind.grade


def whole_video(mind: Mind) -> bool:
    """Whether the whole film must be watched: for counting and for the theme."""
    return mind.query is not None and mind.query.form in WHOLE_FILM


def needs_more_info(mind: Mind) -> bool:
    """Whether something is still missing."""
    return mind.grade < 3


def missing_keyword(mind: Mind) -> str:
    """What is missing most; empty if nothing is."""
    return wish(mind.needs[0]) if mind.needs and mind.grade < 3 else ""


def score(mind: Mind) -> int:
    """Relevance, 1 to 4, of the pictures (or else the notes) to what is asked or searched for."""
    relevance = mind.relevance(mind.shown.seen if mind.shown.moments else mind.shown.sightings)
    return 1 + (relevance >= 0.34) + (relevance >= 0.6) + (relevance >= 0.99)


def temporal_plan(mind: Mind) -> str:
    """Which part of the film the question is about."""
    start, end = scope_of(mind)
    if mind.query is not None and mind.query.form in ("before", "after", "next", "previous"):
        return f"find the moment that is named, then look {mind.query.form} it"
    return f"{clock(start)} to {clock(end)}"


_PROPOSED_LETTER = re.compile(r"(?:answer|choice|proposed|proposal)\W{1,4}(?:is\W+)?([A-Z])\b")
_PROPOSED_LINE = re.compile(r"\b(?:answer|proposed)\W*:", re.IGNORECASE)


def credible(mind: Mind) -> bool:
    """The verdict on the proposed answer."""
    return mind.judged(is_settled(mind), (True, False), "credible")


def is_settled(mind: Mind) -> bool:
    """Whether the notes settle the question in favour of the proposed answer, if there is one."""
    if mind.finding.level < 3:
        return False
    if mind.shown.options:
        # the last proposal counts: earlier ones may have been rejected
        letters = _PROPOSED_LETTER.findall(mind.shown.text)
        return not letters or letters[-1] == mind.letter
    lines = [line for line in mind.shown.text.splitlines() if _PROPOSED_LINE.search(line)]
    return not lines or any(mind.answer.lower() in line.lower() for line in lines)


def comment(mind: Mind) -> str:
    """What supports the proposed answer, or what is missing."""
    if credible(mind):
        return f"The notes support it: {mind.reason}"
    return f"The notes do not settle it; look for {mind.retrieval}."


def topic(mind: Mind) -> str:
    """What the spoken lines are about."""
    sayings = [s.fact for s in mind.shown.told if isinstance(s.fact, Saying)]
    subjects = [saying.subject for saying in sayings if saying.subject]
    if not subjects:
        return "nothing in particular"
    return f"the narrator speaks of the {', the '.join(subjects[:4])}"


def text(mind: Mind) -> str:
    """The answer, or a description if nothing is asked."""
    return mind.answer if mind.query else describe(mind)


def choice(mind: Mind) -> str:
    """The letter of an option, or the answer to an open question."""
    return mind.letter or mind.answer


def reason(mind: Mind) -> str:
    """What supports the answer, with times."""
    return mind.padded(mind.reason)


def search_text(mind: Mind) -> str:
    """What to search for, in at most fifty words."""
    return mind.retrieval


def vlm_query(mind: Mind) -> str:
    """The question itself, or what to search for if nothing is asked."""
    return mind.query.text if mind.query else mind.retrieval


_DESCRIPTIONS = ("caption", "description", "observation")
_ANSWERS = ("answer", "final_answer", "prediction")
_CHOICES = ("choice", "letter", "option")
_REASONS = ("reason", "reasoning", "rationale", "justification", "why")
_SUMMARIES = ("summary", "explanation")
_SEARCHES = ("key_information", "clue", "query", "cue", "keyword", "search")
_QUERIES = ("general_query", "event_query")

VALUES: Mapping[str, Callable[[Mind], Any]] = {
    **dict.fromkeys(_DESCRIPTIONS, describe),
    "text": text,
    **dict.fromkeys(_ANSWERS, answer),
    **dict.fromkeys(_CHOICES, choice),
    **dict.fromkeys(_REASONS, reason),
    **dict.fromkeys(_SUMMARIES, summary),
    "findings": findings,
    "confidence": confidence,
    "whole_video": whole_video,
    **dict.fromkeys((*_SEARCHES, *_QUERIES), search_text),
    "vlm_query": vlm_query,
    "needs_more_info": needs_more_info,
    "missing_keyword": missing_keyword,
    **dict.fromkeys(("score", "relevance"), score),
    "temporal_plan": temporal_plan,
    "credible": credible,
    "comment": comment,
    "sentiment": lambda _: "neutral",  # the narrator never shows any
    "topic": topic,
    **PLANNING,
}
"""Field name to the skill that fills it."""
