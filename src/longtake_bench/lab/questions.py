"""Questions about a world, each proved to follow from its evidence.

One generator per kind drafts questions in random order, with plausible wrong options;
:func:`make_questions` keeps the drafts whose answer the solver finds. No strategy that does not
look may do better than chance: options tell nothing about the answer. The order of draws from
``rng`` is part of the profile: reordering them changes every question.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias, TypeVar

from longtake.types import LETTERS, Question, Segment
from longtake_bench.lab.facts import Deed, Fact, Happening, Saying, Sighting, Sign, fits
from longtake_bench.lab.profile import PROFILE, generator
from longtake_bench.lab.queries import (
    LabQuery,
    clause,
    handles,
    option_of,
    scope_segment,
    solve,
    value_of,
)
from longtake_bench.lab.world import Script, dump

T = TypeVar("T")
OPTIONS = 4
"""Options per question."""


@dataclass(frozen=True)
class Draft:
    """A candidate question with its answer."""

    query: LabQuery
    answer: str
    wrong: tuple[str, ...]
    """Candidates for wrong options, most tempting first."""
    evidence: tuple[Happening, ...]


Drafts: TypeAlias = Iterator[Draft]
Maker: TypeAlias = Callable[[Script, random.Random], Drafts]


def shuffled(rng: random.Random, items: Iterable[T]) -> list[T]:
    """The items in random order."""
    mixed = list(items)
    rng.shuffle(mixed)
    return mixed


def deed_of(happening: Happening) -> Deed:
    """The deed that happens."""
    assert isinstance(happening.fact, Deed)
    return happening.fact


def _matching(script: Script, pattern: Fact) -> list[Happening]:
    """The deeds of a script that match a pattern."""
    return [happening for happening in script.deeds if fits(pattern, happening.fact)]


def _is_unique(script: Script, query: LabQuery) -> bool:
    """Whether exactly one deed of the film matches, whatever the answer."""
    assert isinstance(query.first, Deed)
    return len(_matching(script, query.first)) == 1


def _with_similar(
    script: Script, query: LabQuery, happening: Happening, rng: random.Random
) -> Draft:
    """A draft whose wrong options come from other deeds, the most similar ones first."""
    deed = deed_of(happening)
    others = shuffled(rng, [deed_of(h) for h in script.deeds if h is not happening])
    others.sort(key=lambda other: -_similarity(deed, other))
    wrong = tuple(value_of(query.form, other) for other in others)
    return Draft(query, value_of(query.form, deed), wrong, (happening,))


def _similarity(deed: Deed, other: Deed) -> int:
    """The number of respects in which two deeds agree."""
    same = (
        deed.person == other.person,
        deed.verb == other.verb,
        deed.place == other.place,
        deed.thing == other.thing,
    )
    return sum(same)


def _needles(script: Script, rng: random.Random) -> Drafts:
    """One respect of a single deed: what, who, where, which deed, which colour."""
    for happening in shuffled(rng, script.deeds):
        deed = deed_of(happening)
        thing = deed.thing
        assert thing is not None
        patterns = {
            "what": Deed(deed.person, deed.verb, None, deed.place),
            "who": Deed(None, deed.verb, thing, deed.place),
            "where": Deed(deed.person, deed.verb, thing, None),
            "deed": Deed(deed.person, None, thing, deed.place),
            "colour": Deed(deed.person, deed.verb, None, deed.place),
        }
        # the asked respect is left open in the pattern
        form = rng.choice(list(patterns))
        query = LabQuery(form, patterns[form], kind=thing.kind if form == "colour" else None)
        if _is_unique(script, query):
            yield _with_similar(script, query, happening, rng)


def _onscreen(script: Script, rng: random.Random) -> Drafts:
    """The text of a sign; signs of the same colour or place are the most tempting."""
    for happening in shuffled(rng, script.signs):
        sign = happening.fact
        assert isinstance(sign, Sign)
        colour, place = sign.colour, sign.place
        others = [h.fact for h in script.signs if h is not happening and isinstance(h.fact, Sign)]
        rng.shuffle(others)
        others.sort(key=lambda other: -(other.colour == colour) - (other.place == place))
        wrong = tuple(str(other.text) for other in others)
        query = LabQuery("sign", Sign(colour, None, place))
        yield Draft(query, str(sign.text), wrong, (happening,))


def _spoken(script: Script, rng: random.Random) -> Drafts:
    """A value that the narrator states; values of the same relation are the wrong options."""
    sayings = [h.fact for h in script.sayings if isinstance(h.fact, Saying)]
    for happening in shuffled(rng, script.sayings):
        saying = happening.fact
        assert isinstance(saying, Saying)
        others = shuffled(rng, [other for other in sayings if other.relation == saying.relation])
        wrong = tuple(str(other.value) for other in others)
        query = LabQuery(str(saying.relation), Saying(saying.subject, saying.relation))
        yield Draft(query, str(saying.value), wrong, (happening,))


def counted(script: Script) -> list[tuple[LabQuery, int]]:
    """Everything that can be counted, with its total."""
    deeds = [deed_of(happening) for happening in script.deeds]
    by_person = Counter((deed.person, deed.verb) for deed in deeds)
    by_kind = Counter((deed.verb, deed.thing.kind) for deed in deeds if deed.thing)
    totals = []
    for (person, verb), total in by_person.items():
        totals.append((LabQuery("count", Deed(person, verb)), total))
    for (verb, kind), total in by_kind.items():
        totals.append((LabQuery("count_kind", Deed(None, verb), kind=kind), total))
    return totals


def _scopes(script: Script, rng: random.Random) -> Drafts:
    """What somebody does in a part of the film, where the same verb also occurs elsewhere."""
    minute = rng.randint(1, max(1, script.minutes - 1))
    scopes = [
        "in the first half of the film",
        "in the second half of the film",
        "at the beginning of the film",
        "at the end of the film",
        f"after minute {minute}",
        f"before minute {minute}",
    ]
    for happening in shuffled(rng, script.deeds):
        deed = deed_of(happening)
        pattern = Deed(deed.person, deed.verb)
        alike = _matching(script, pattern)
        for scope in rng.sample(scopes, 3):
            if len(alike) < 2 or not _is_alone_in(scope, happening, alike, script.duration):
                continue
            others = shuffled(rng, [deed_of(h) for h in alike if h is not happening])
            theirs = _matching(script, Deed(deed.person))
            rest = shuffled(rng, [deed_of(h) for h in theirs if h not in alike])
            wrong = tuple(value_of("scope", other) for other in (*others, *rest))
            query = LabQuery("scope", pattern, scope=scope)
            yield Draft(query, str(deed.thing), wrong, (happening,))


def _is_alone_in(
    scope: str, happening: Happening, alike: Sequence[Happening], duration: float
) -> bool:
    """Whether only this one of similar deeds lies, and entirely lies, in a part of the film."""
    part = scope_segment(scope, duration)
    touching = [h for h in alike if h.start < part.end and h.end > part.start]
    # a deed across the border would make the answer debatable
    inside = happening.start >= part.start and happening.end <= part.end
    return touching == [happening] and inside


def _hops(script: Script, rng: random.Random) -> Drafts:
    """Two deeds that share a person or a place, which the question does not name."""
    for first in shuffled(rng, script.deeds):
        one = deed_of(first)
        scene = script.scene_at(first.start)
        same_person = [h for h in script.deeds if deed_of(h).person == one.person]
        same_place = [h for h in script.deeds if deed_of(h).place == one.place]
        by_person = [h for h in same_person if deed_of(h).place != one.place]
        by_place = [h for h in same_place if h not in scene.deeds]
        for form, seconds in (("hop_person", by_person), ("hop_place", by_place)):
            if not seconds:
                continue
            second = rng.choice(seconds)
            query, resolved = _hop(form, one, deed_of(second))
            # both hops must be unambiguous
            if _is_unique(script, query) and len(_matching(script, resolved)) == 1:
                draft = _with_similar(script, query, second, rng)
                yield Draft(query, draft.answer, draft.wrong, (first, second))


def _hop(form: str, one: Deed, two: Deed) -> tuple[LabQuery, Deed]:
    """The query over two deeds, and the second deed's pattern once the first one is known."""
    if form == "hop_person":
        bridge = Deed(None, one.verb, one.thing, one.place)
        query = LabQuery(form, bridge, Deed(None, two.verb, None, two.place))
        return query, Deed(one.person, two.verb, None, two.place)
    bridge = Deed(one.person, one.verb, one.thing, None)
    query = LabQuery(form, bridge, Deed(None, two.verb, two.thing, None))
    return query, Deed(None, two.verb, two.thing, one.place)


def _topics(script: Script, rng: random.Random) -> Drafts:
    """The theme of the film, if it is clear."""
    totals = Counter(value_of("topic", happening.fact) for happening in script.deeds)
    (theme, count), *others = totals.most_common()
    # a theme that barely leads would be debatable
    if len(others) >= OPTIONS - 1 and count >= 1.5 * others[0][1]:
        wrong = shuffled(rng, [name for name, _ in others])
        yield Draft(LabQuery("topic"), theme, tuple(wrong), script.deeds)


def _open(script: Script, rng: random.Random) -> Drafts:
    """Questions of several kinds to be answered in words; the kinds take turns."""
    makers: list[Maker] = [_needles, _onscreen, _spoken, _hops]
    sources = [make(script, rng) for make in makers]
    while sources:
        for source in list(sources):
            if draft := next(source, None):
                yield draft
            else:
                sources.remove(source)


def _counts(script: Script, rng: random.Random) -> Drafts:
    """Four neighbouring totals are chosen first, then which of them is right."""
    by_form: dict[str, dict[int, list[LabQuery]]] = {}
    for query, total in shuffled(rng, counted(script)):
        # larger numbers are not asked for
        if total <= 8:
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
        assert query.first is not None
        evidence = _matching(script, query.first)
        if query.kind is not None:
            evidence = [deed for deed in evidence if handles(deed.fact, query.kind)]
        yield Draft(query, str(total), wrong, tuple(evidence))


def _order(script: Script, rng: random.Random) -> Drafts:
    """Which deed happens before or after another; wrong options lie on the other side.

    The right option is as often like the others as each wrong one is.
    """
    target = rng.randrange(OPTIONS)
    for number in shuffled(rng, range(len(script.deeds))):
        anchor = script.deeds[number]
        form = rng.choice(("before", "after"))
        earlier, later = script.deeds[:number], script.deeds[number + 1 :]
        right, wrong = (earlier, later) if form == "before" else (later, earlier)
        if not right or len(wrong) < OPTIONS - 1:
            continue
        answer = rng.choice(right)
        stated = clause(deed_of(answer))
        clauses = [clause(deed_of(happening)) for happening in wrong]
        others = _fair(stated, clauses, target, rng)
        if others:
            yield Draft(LabQuery(form, anchor.fact), stated, others, (anchor, answer))
            # drawn anew only now: giving up must not favour the ranks that are easy to reach
            target = rng.randrange(OPTIONS)


def _before_after(script: Script, rng: random.Random) -> Drafts:
    """What a person does right before or after another deed in the same scene.

    All options name the question's place and share words with it alike.
    """
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
                query = LabQuery(form, anchor.fact)
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
    for _ in range(24):  # then the deed is given up
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
        shared_with_itself = 0 if question else len(words)
        shared.append((common - shared_with_itself, rng.random()))
    return sum(other > shared[0] for other in shared[1:])


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


MAKERS: dict[str, Maker] = {
    "needle": _needles,
    "onscreen": _onscreen,
    "spoken": _spoken,
    "order": _order,
    "count": _counts,
    "before_after": _before_after,
    "scope": _scopes,
    "multihop": _hops,
    "topic": _topics,
    "open": _open,
}
"""Kind to its generator, in the order in which kinds take turns."""


KINDS = tuple(MAKERS)
"""Kinds of questions, in the order in which they take turns."""


@dataclass(frozen=True)
class LabQuestion:
    """A question with its answer and the segments in which the answer is seen, read or heard."""

    id: str
    kind: str
    text: str
    options: tuple[str, ...]
    answer: str | None
    """The letter; ``None`` for open-ended questions."""
    answer_text: str
    evidence: tuple[Segment, ...]
    """All of these are needed."""

    @property
    def question(self) -> Question:
        """What a method is asked, without answer and evidence."""
        return Question(self.text, self.options)

    def as_data(self) -> dict[str, Any]:
        """The question as in ``questions.json``."""
        return {
            "id": self.id,
            "kind": self.kind,
            "question": self.text,
            "options": list(self.options),
            "answer": self.answer,
            "answer_text": self.answer_text,
            "evidence": [[s.start, s.end] for s in self.evidence],
        }


def make_questions(script: Script, count: int = 60) -> tuple[LabQuestion, ...]:
    """Up to ``count`` questions; kinds take turns, so any prefix of the list is a fair mixture."""
    rng = generator("questions", PROFILE.name, script.seed, script.minutes)
    # drafts are generated lazily: most of a film is never asked about
    makers = {kind: make(script, rng) for kind, make in MAKERS.items()}
    questions: list[LabQuestion] = []
    asked: set[str] = set()
    while makers and len(questions) < count:
        for kind, drafts in list(makers.items()):
            finished = (_finish(script, kind, draft, rng, asked) for draft in drafts)
            question = next(filter(None, finished), None)
            if question is None:
                del makers[kind]
            elif len(questions) < count:
                questions.append(question)
    return tuple(questions)


def questions_json(questions: Sequence[LabQuestion]) -> str:
    """The text of ``questions.json``."""
    return dump({"schema": 1, "questions": [question.as_data() for question in questions]})


def everything(script: Script) -> list[Sighting]:
    """All deeds, signs and statements of a script, each seen once."""
    happenings = (*script.deeds, *script.signs, *script.sayings)
    return [Sighting(h.fact, (h.start + h.end) / 2) for h in happenings]


def within(script: Script, evidence: Sequence[Segment]) -> list[Sighting]:
    """What happens within the given segments."""
    inside = []
    for sighting in everything(script):
        time = sighting.time
        if time is not None and any(time in segment for segment in evidence):
            inside.append(sighting)
    return inside


def _finish(
    script: Script, kind: str, draft: Draft, rng: random.Random, asked: set[str]
) -> LabQuestion | None:
    """The question of a draft, or ``None`` if it is a repeat, lacks options or fails the proof."""
    is_open = kind == "open"
    text = draft.query.text
    key = text + str(is_open)
    if key in asked:
        return None
    wrong = list(dict.fromkeys(option for option in draft.wrong if option != draft.answer))
    del wrong[OPTIONS - 1 :]
    if len(wrong) < OPTIONS - 1:
        return None
    options = () if is_open else tuple(rng.sample([draft.answer, *wrong], OPTIONS))
    happenings = sorted(draft.evidence, key=lambda happening: happening.start)
    evidence = tuple(Segment(float(h.start), float(h.end)) for h in happenings)
    if not _is_proved(script, draft, options, evidence):
        return None
    asked.add(key)
    letter = LETTERS[options.index(draft.answer)] if options else None
    name = f"{script.name}-{kind}-{len(asked):03d}"
    return LabQuestion(name, kind, text, options, letter, draft.answer, evidence)


def _is_proved(
    script: Script, draft: Draft, options: tuple[str, ...], evidence: Sequence[Segment]
) -> bool:
    """Whether the answer follows from the whole script and from the evidence alone."""
    duration = script.duration
    whole = solve(draft.query, everything(script), options=options, duration=duration)
    shown = solve(draft.query, within(script, evidence), options=options, duration=duration)
    if whole.value != draft.answer or shown.value != draft.answer:
        return False
    return not options or option_of(whole, options) == options.index(draft.answer)
