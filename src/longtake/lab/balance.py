"""Drafts whose options tell nothing about the answer, for the kinds where lab-1's did.

In lab-1, the second-smallest number was right in six of ten ``count`` questions, the option with
most words of the question in four of ten ``before_after`` questions, and in ``order`` the option
with least in common with the others in more than three of ten. The order of draws from ``rng`` is
part of the profile.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from itertools import pairwise

from longtake.lab.drafts import (
    MAKERS,
    OPTIONS,
    Draft,
    Drafts,
    Maker,
    counted,
    deed_of,
    evidence_of_count,
    shuffled,
    sides,
)
from longtake.lab.queries import Query, clause, value_of
from longtake.lab.script import Script

MOST_COUNTED = 8
"""The largest number that is asked for."""
TRIES = 24
"""Draws of wrong options before a deed is given up."""


def _fair_counts(script: Script, rng: random.Random) -> Drafts:
    """Four neighbouring totals are chosen first, then which of them is right."""
    by_form: dict[str, dict[int, list[Query]]] = {}
    for query, total in shuffled(rng, counted(script)):
        if total <= MOST_COUNTED:
            by_form.setdefault(query.form, {}).setdefault(total, []).append(query)
    while True:
        # a total without a question left can be no option: it would never be right
        known = {form: sorted(t for t in totals if totals[t]) for form, totals in by_form.items()}
        forms = [form for form, totals in known.items() if len(totals) >= OPTIONS]
        if not forms:
            return
        form = rng.choice(forms)
        start = rng.randrange(len(known[form]) - OPTIONS + 1)
        options = known[form][start : start + OPTIONS]
        total = rng.choice(options)
        query = by_form[form][total].pop()
        wrong = tuple(str(option) for option in options if option != total)
        yield Draft(query, str(total), wrong, evidence_of_count(script, query))


def _fair_order(script: Script, rng: random.Random) -> Drafts:
    """As in lab-1, but the right option is as often like the others as each wrong one is."""
    target = rng.randrange(OPTIONS)
    for number in shuffled(rng, range(len(script.deeds))):
        anchor = script.deeds[number]
        form, right, wrong = sides(script, number, rng)
        if not right or len(wrong) < OPTIONS - 1:
            continue
        answer = rng.choice(right)
        stated = clause(deed_of(answer))
        clauses = [clause(deed_of(happening)) for happening in wrong]
        others = _fair(stated, clauses, target, rng)
        if others:
            yield Draft(Query(form, anchor.fact), stated, others, (anchor, answer))
            # drawn anew only now: giving up must not favour the ranks that are easy to reach
            target = rng.randrange(OPTIONS)


def _fair_before_after(script: Script, rng: random.Random) -> Drafts:
    """As in lab-1, but all options name the question's place and share words with it alike."""
    target = rng.randrange(OPTIONS)
    for scene in shuffled(rng, script.scenes):
        there = [h for h in script.deeds if deed_of(h).place == scene.place]
        for person in shuffled(rng, scene.people):
            theirs = [h for h in scene.deeds if deed_of(h).person == person]
            for first, second in pairwise(theirs):
                form = rng.choice(("next", "previous"))
                anchor, answer = (first, second) if form == "next" else (second, first)
                right = value_of(form, answer.fact)
                named = [value_of(form, h.fact) for h in there if h is not anchor]
                query = Query(form, anchor.fact)
                # deeds of other people are options as well: one person's are too few
                others = _fair(right, named, target, rng, question=query.text)
                if others:
                    yield Draft(query, right, others, (anchor, answer))
                    target = rng.randrange(OPTIONS)


def _fair(
    right: str, candidates: Sequence[str], target: int, rng: random.Random, question: str = ""
) -> tuple[str, ...]:
    """Wrong options among which the right one takes the given rank; nothing if none are found.

    The rank is by words in common with the question or, without one, with the other options.
    """
    wrong = [option for option in dict.fromkeys(candidates) if option != right]
    if len(wrong) < OPTIONS - 1:
        return ()
    for _ in range(TRIES):
        others = rng.sample(wrong, OPTIONS - 1)
        if _rank(right, others, question, rng) == target:
            return tuple(others)
    return ()


def _rank(right: str, wrong: Sequence[str], question: str, rng: random.Random) -> int:
    """How many wrong options share more words than the right one; ties are broken at random."""
    options = [_words(option) for option in (right, *wrong)]
    compared = [_words(question)] if question else options
    shared = []
    for words in options:
        common = sum(len(words & other) for other in compared)
        # with the other options alone: a longer option shares more with itself
        own = 0 if question else len(words)
        shared.append((common - own, rng.random()))
    return sum(other > shared[0] for other in shared[1:])


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


BALANCED: dict[str, Maker] = {
    **MAKERS,
    "order": _fair_order,
    "count": _fair_counts,
    "before_after": _fair_before_after,
}
"""Kind to its generator, in the order in which kinds take turns."""
