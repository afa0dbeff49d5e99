"""Questions about a world, with the proof of each answer.

Every candidate is solved over the whole script and over its evidence alone; it is kept only where both give
the same answer and no other option is right. Wrong options are true of other moments.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar

from longtake.lab.chance import generator
from longtake.lab.facts import Deed, Happening, Person, Saying, Sighting, Sign, fits
from longtake.lab.queries import Query, clause, scope_segment, value_of
from longtake.lab.script import Script, dump
from longtake.lab.solving import option_of, solve
from longtake.types import LETTERS, Question, Segment

T = TypeVar("T")
OPTIONS = 4
KINDS = (
    "needle",
    "onscreen",
    "spoken",
    "order",
    "count",
    "before_after",
    "scope",
    "multihop",
    "topic",
    "open",
)
"""Kinds in the order in which they take turns."""
COUNTED = range(2, 7)
"""Numbers worth asking for."""


@dataclass(frozen=True)
class LabQuestion:
    """A question with its answer and where in the film that can be seen, read or heard."""

    id: str
    kind: str
    text: str
    options: tuple[str, ...]
    answer: str | None
    """The letter; ``None`` for open-ended questions."""
    answer_text: str
    evidence: tuple[Segment, ...]
    """Every one of these is needed."""

    @property
    def question(self) -> Question:
        """What a method is asked: no answer, no evidence."""
        return Question(self.text, self.options)

    def as_data(self) -> dict[str, Any]:
        """The question as ``questions.json`` has it."""
        return {
            "id": self.id,
            "kind": self.kind,
            "question": self.text,
            "options": list(self.options),
            "answer": self.answer,
            "answer_text": self.answer_text,
            "evidence": [[s.start, s.end] for s in self.evidence],
        }


@dataclass(frozen=True)
class _Draft:
    query: Query
    answer: str
    wrong: tuple[str, ...]
    """Candidates for wrong options, the most tempting first."""
    evidence: tuple[Happening, ...]


def make_questions(script: Script, count: int = 60) -> tuple[LabQuestion, ...]:
    """Up to ``count`` questions; the kinds take turns, so that any beginning of the list is a fair mixture."""
    rng = generator("questions", script.seed, script.minutes)
    makers = {kind: _drafts(kind, script, rng) for kind in KINDS}
    questions: list[LabQuestion] = []
    asked: set[str] = set()
    while makers and len(questions) < count:
        for kind in list(makers):
            made = next(
                (q for d in makers[kind] if (q := _finish(script, kind, d, rng, asked))), None
            )
            if made is None:
                del makers[kind]
            elif len(questions) < count:
                questions.append(made)
    return tuple(questions)


def questions_json(questions: Sequence[LabQuestion]) -> str:
    """``questions.json``."""
    return dump({"schema": 1, "questions": [question.as_data() for question in questions]})


def everything(script: Script) -> list[Sighting]:
    """All that a perfect eye and ear would note, each thing once."""
    happenings = (*script.deeds, *script.signs, *script.sayings)
    return [Sighting(h.fact, (h.start + h.end) / 2) for h in happenings]


def within(script: Script, evidence: Sequence[Segment]) -> list[Sighting]:
    """What happens inside some stretches of film."""
    return [
        s
        for s in everything(script)
        if s.time is not None and any(s.time in segment for segment in evidence)
    ]


def _finish(
    script: Script, kind: str, draft: _Draft, rng: random.Random, asked: set[str]
) -> LabQuestion | None:
    """The question of a draft, if it stands."""
    is_open = kind == "open"
    text = draft.query.text
    if text + str(is_open) in asked:
        return None
    wrong = list(dict.fromkeys(w for w in draft.wrong if w != draft.answer))[: OPTIONS - 1]
    if len(wrong) < OPTIONS - 1:
        return None
    options = () if is_open else tuple(rng.sample([draft.answer, *wrong], OPTIONS))
    evidence = tuple(
        Segment(float(h.start), float(h.end)) for h in sorted(draft.evidence, key=lambda h: h.start)
    )
    whole = solve(draft.query, everything(script), options=options, duration=script.duration)
    shown = solve(draft.query, within(script, evidence), options=options, duration=script.duration)
    if whole.value != draft.answer or shown.value != draft.answer:
        return None
    if options and option_of(whole, options) != options.index(draft.answer):
        return None
    asked.add(text + str(is_open))
    letter = LETTERS[options.index(draft.answer)] if options else None
    name = f"{script.name}-{kind}-{len(asked):03d}"
    return LabQuestion(name, kind, text, options, letter, draft.answer, evidence)


def _drafts(kind: str, script: Script, rng: random.Random) -> Iterator[_Draft]:
    """Drafts in no order, each made when it is asked for: most of the film is never asked about."""
    return _MAKERS[kind](script, rng)


def _shuffled(rng: random.Random, items: Iterable[T]) -> list[T]:
    mixed = list(items)
    rng.shuffle(mixed)
    return mixed


def _needles(script: Script, rng: random.Random) -> Iterator[_Draft]:
    for happening in _shuffled(rng, script.deeds):
        deed = _deed(happening)
        thing = deed.thing
        assert thing is not None
        patterns = {
            "what": Deed(deed.person, deed.verb, None, deed.place),
            "who": Deed(None, deed.verb, thing, deed.place),
            "where": Deed(deed.person, deed.verb, thing, None),
            "deed": Deed(deed.person, None, thing, deed.place),
            "colour": Deed(deed.person, deed.verb, None, deed.place),
        }
        form = rng.choice(list(patterns))
        query = Query(form, patterns[form], kind=thing.kind if form == "colour" else None)
        if _unique(script, query):
            yield _draft(script, query, happening, rng)


def _unique(script: Script, query: Query) -> bool:
    """Whether only one deed of the film fits, whatever it would answer."""
    assert isinstance(query.first, Deed)
    return sum(fits(query.first, h.fact) for h in script.deeds) == 1


def _draft(script: Script, query: Query, happening: Happening, rng: random.Random) -> _Draft:
    """Wrong options are what other deeds would answer, those that resemble this one first."""
    others = [h.fact for h in script.deeds if h is not happening]
    rng.shuffle(others)
    others.sort(key=lambda fact: -_resemblance(_deed(happening), fact))
    wrong = tuple(value_of(query.form, fact) for fact in others)
    return _Draft(query, value_of(query.form, happening.fact), wrong, (happening,))


def _resemblance(deed: Deed, other: object) -> int:
    assert isinstance(other, Deed)
    return sum(
        getattr(deed, name) == getattr(other, name) for name in ("person", "verb", "place", "thing")
    )


def _onscreen(script: Script, rng: random.Random) -> Iterator[_Draft]:
    for happening in _shuffled(rng, script.signs):
        sign = happening.fact
        assert isinstance(sign, Sign)
        others = [h.fact for h in script.signs if h is not happening and isinstance(h.fact, Sign)]
        rng.shuffle(others)
        others.sort(key=lambda one: -(one.colour == sign.colour) - (one.place == sign.place))
        wrong = tuple(str(one.text) for one in others)
        yield _Draft(
            Query("sign", Sign(sign.colour, None, sign.place)), str(sign.text), wrong, (happening,)
        )


def _spoken(script: Script, rng: random.Random) -> Iterator[_Draft]:
    for happening in _shuffled(rng, script.sayings):
        said = happening.fact
        assert isinstance(said, Saying)
        others = [
            h.fact
            for h in script.sayings
            if isinstance(h.fact, Saying) and h.fact.relation == said.relation
        ]
        rng.shuffle(others)
        wrong = tuple(str(one.value) for one in others)
        query = Query(str(said.relation), Saying(said.subject, said.relation))
        yield _Draft(query, str(said.value), wrong, (happening,))


def _order(script: Script, rng: random.Random) -> Iterator[_Draft]:
    for number, anchor in _shuffled(rng, enumerate(script.deeds)):
        form = rng.choice(("before", "after"))
        sides = script.deeds[:number], script.deeds[number + 1 :]
        right, wrong = sides if form == "before" else sides[::-1]
        if right and len(wrong) >= OPTIONS - 1:
            answer = rng.choice(right)
            tempting = tuple(clause(_deed(h)) for h in rng.sample(wrong, OPTIONS - 1))
            yield _Draft(
                Query(form, anchor.fact), clause(_deed(answer)), tempting, (anchor, answer)
            )


def _counts(script: Script, rng: random.Random) -> Iterator[_Draft]:
    deeds = [_deed(h) for h in script.deeds]
    by_person: Counter[tuple[Any, Any]] = Counter((deed.person, deed.verb) for deed in deeds)
    by_kind: Counter[tuple[Any, Any]] = Counter(
        (deed.verb, deed.thing.kind) for deed in deeds if deed.thing
    )
    asked = [("count", by_person, key) for key in by_person] + [
        ("count_kind", by_kind, key) for key in by_kind
    ]
    for form, totals, (one, other) in _shuffled(rng, asked):
        numbers, total = sorted(set(totals.values()) | {1}), totals[one, other]
        if total in COUNTED:
            near = sorted(
                (n for n in numbers if n != total), key=lambda n: (abs(n - total), rng.random())
            )
            first = Deed(one, other) if isinstance(one, Person) else Deed(None, one)
            query = Query(form, first, kind=None if isinstance(one, Person) else str(other))
            fit = [
                h for h in script.deeds if fits(first, h.fact) and _is_kind(_deed(h), query.kind)
            ]
            yield _Draft(query, str(total), tuple(map(str, near)), tuple(fit))


def _is_kind(deed: Deed, kind: str | None) -> bool:
    return kind is None or (deed.thing is not None and deed.thing.kind == kind)


def _before_after(script: Script, rng: random.Random) -> Iterator[_Draft]:
    for scene in _shuffled(rng, script.scenes):
        for person in _shuffled(rng, scene.people):
            theirs = [h for h in scene.deeds if _deed(h).person == person]
            for first, second in pairwise(theirs):
                form = rng.choice(("next", "previous"))
                anchor, answer = (first, second) if form == "next" else (second, first)
                others = [
                    h.fact
                    for h in script.deeds
                    if _deed(h).person == person and h not in (anchor, answer)
                ]
                rng.shuffle(others)
                others.sort(key=lambda fact: isinstance(fact, Deed) and fact.place != scene.place)
                wrong = tuple(value_of(form, fact) for fact in others)
                yield _Draft(
                    Query(form, anchor.fact), value_of(form, answer.fact), wrong, (anchor, answer)
                )


def _scopes(script: Script, rng: random.Random) -> Iterator[_Draft]:
    minute = rng.randint(1, max(1, script.minutes - 1))
    scopes = [
        "in the first half of the film",
        "in the second half of the film",
        "at the beginning of the film",
        "at the end of the film",
        f"after minute {minute}",
        f"before minute {minute}",
    ]
    for happening in _shuffled(rng, script.deeds):
        deed = _deed(happening)
        pattern = Deed(deed.person, deed.verb)
        alike = [h for h in script.deeds if fits(pattern, h.fact)]
        for scope in rng.sample(scopes, 3):
            part = scope_segment(scope, script.duration)
            inside = [h for h in alike if h.start < part.end and h.end > part.start]
            # a deed that straddles the border would be arguable
            clear = (
                inside == [happening]
                and happening.start >= part.start
                and happening.end <= part.end
            )
            if clear and len(alike) > 1:
                others = [h.fact for h in alike if h is not happening]
                rng.shuffle(others)
                rest = [
                    h.fact
                    for h in script.deeds
                    if _deed(h).person == deed.person and h not in alike
                ]
                rng.shuffle(rest)
                wrong = tuple(value_of("scope", fact) for fact in (*others, *rest))
                yield _Draft(
                    Query("scope", pattern, scope=scope), str(deed.thing), wrong, (happening,)
                )


def _hops(script: Script, rng: random.Random) -> Iterator[_Draft]:
    for first in _shuffled(rng, script.deeds):
        one = _deed(first)
        scene = script.scene_at(first.start)
        by_person = [
            h for h in script.deeds if _deed(h).person == one.person and _deed(h).place != one.place
        ]
        by_place = [h for h in script.deeds if _deed(h).place == one.place and h not in scene.deeds]
        for form, seconds in (("hop_person", by_person), ("hop_place", by_place)):
            if not seconds:
                continue
            second = rng.choice(seconds)
            two = _deed(second)
            if form == "hop_person":
                query = Query(
                    form,
                    Deed(None, one.verb, one.thing, one.place),
                    Deed(None, two.verb, None, two.place),
                )
                last = Deed(one.person, two.verb, None, two.place)
            else:
                query = Query(
                    form,
                    Deed(one.person, one.verb, one.thing, None),
                    Deed(None, two.verb, two.thing, None),
                )
                last = Deed(None, two.verb, two.thing, one.place)
            alone = sum(fits(last, h.fact) for h in script.deeds) == 1
            if _unique(script, query) and alone:
                draft = _draft(script, query, second, rng)
                yield _Draft(query, draft.answer, draft.wrong, (first, second))


def _topics(script: Script, rng: random.Random) -> Iterator[_Draft]:
    totals = Counter(value_of("topic", h.fact) for h in script.deeds)
    (theme, most), *others = totals.most_common()
    if len(others) >= OPTIONS - 1 and most >= 1.5 * others[0][1]:
        wrong = [name for name, _ in others]
        rng.shuffle(wrong)
        yield _Draft(Query("topic"), theme, tuple(wrong), script.deeds)


def _open(script: Script, rng: random.Random) -> Iterator[_Draft]:
    """Questions of several kinds to be answered in words."""
    makers: list[Callable[[Script, random.Random], Iterator[_Draft]]] = [
        _needles,
        _onscreen,
        _spoken,
        _hops,
    ]
    sources = [make(script, rng) for make in makers]
    while sources:
        for source in list(sources):
            draft = next(source, None)
            if draft is None:
                sources.remove(source)
            else:
                yield draft


def _deed(happening: Happening) -> Deed:
    assert isinstance(happening.fact, Deed)
    return happening.fact


_MAKERS: dict[str, Callable[[Script, random.Random], Iterator[_Draft]]] = {
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
