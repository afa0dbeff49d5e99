"""Questions: every answer is proved by its evidence, and no other option is right."""

import re
from functools import cache

import pytest

from longtake.types import LETTERS
from longtake_bench.lab import vocabulary as v
from longtake_bench.lab.facts import facts_in, fits, wished_in
from longtake_bench.lab.film import make_world
from longtake_bench.lab.queries import FORMS, query_in, scope_segment, solve, stated_deed
from longtake_bench.lab.questions import KINDS, within

SEEDS = (0, 1, 2, 3)
drawn = cache(make_world)


@pytest.fixture(scope="module", params=SEEDS)
def world(request):
    return drawn(request.param, 40, 80)


def asked(text):
    located = query_in(f"Some words.\nQuestion: {text}\nA. more")
    assert located is not None
    return located[1]


def deeds(script):
    return [h.fact for h in script.deeds]


def is_right(script, query, option):
    """Whether an option is true; checked against the whole script, without the solver."""
    first, part = query.first, wished_in(option)
    moments = {h.fact: h for h in script.deeds}
    match query.form:
        case "what" | "scope":
            fitting = [h for h in script.deeds if fits(first, h.fact)]
            if query.scope:
                stretch = scope_segment(query.scope, script.duration)
                fitting = [h for h in fitting if h.start < stretch.end and h.end > stretch.start]
            return any(str(h.fact.thing) == option for h in fitting)
        case "who":
            return any(str(d.person) == option for d in deeds(script) if fits(first, d))
        case "where":
            return any(f"at the {d.place}" == option for d in deeds(script) if fits(first, d))
        case "deed":
            return any(f"{v.VERBS[d.verb]} it" == option for d in deeds(script) if fits(first, d))
        case "colour":
            hits = [d for d in deeds(script) if fits(first, d) and d.thing.kind == query.kind]
            return any(d.thing.colour == option for d in hits)
        case "sign":
            return any(h.fact.text == option for h in script.signs if fits(first, h.fact))
        case "cost" | "weigh" | "leave" | "own":
            return any(h.fact.value == option for h in script.sayings if fits(first, h.fact))
        case "before" | "after":
            gap = moments[stated_deed(option)].start - moments[first].start
            return gap < 0 if query.form == "before" else gap > 0
        case "count":
            return int(option) == sum(fits(first, d) for d in deeds(script))
        case "count_kind":
            return int(option) == sum(
                fits(first, d) and d.thing.kind == query.kind for d in deeds(script)
            )
        case "next" | "previous":
            theirs = [d for d in deeds(script) if d.person == first.person]
            place = theirs.index(first) + (1 if query.form == "next" else -1)
            there = theirs[place] if 0 <= place < len(theirs) else None
            return there is not None and (there.verb, there.thing, there.place) == (
                part.verb,
                part.thing,
                part.place,
            )
        case "hop_person":
            people = {d.person for d in deeds(script) if fits(first, d)}
            ends = [d for d in deeds(script) if d.person in people and fits(query.second, d)]
            return any(str(d.thing) == option for d in ends)
        case "hop_place":
            places = {d.place for d in deeds(script) if fits(first, d)}
            ends = [d for d in deeds(script) if d.place in places and fits(query.second, d)]
            return any(str(d.person) == option for d in ends)
        case "topic":
            themes = [v.THEME_OF[d.thing.kind] for d in deeds(script)]
            return option == max(set(themes), key=themes.count)
    raise AssertionError(query.form)


def test_every_kind_is_there_and_the_kinds_take_turns(world):
    assert {q.kind for q in world.questions} == set(KINDS)
    assert len({q.kind for q in world.questions[: len(KINDS)]}) == len(KINDS)


def test_exactly_one_option_is_right(world):
    for question in world.questions:
        query = asked(question.text)
        if question.options:
            right = [option for option in question.options if is_right(world.script, query, option)]
            assert right == [question.answer_text], question
            assert question.options[LETTERS.index(question.answer)] == question.answer_text
            assert len(set(question.options)) == 4
        else:
            assert question.answer is None
            assert is_right(world.script, query, question.answer_text), question


def test_no_evidence_can_be_left_out(world):
    """Without any one of its segments, the rest of the evidence does not settle the answer."""
    for question in world.questions:
        if question.kind == "topic":
            continue
        query = asked(question.text)
        for left_out in question.evidence:
            rest = [segment for segment in question.evidence if segment != left_out]
            seen = within(world.script, rest)
            finding = solve(query, seen, options=question.options, duration=world.script.duration)
            assert finding.level < 3 or finding.value != question.answer_text, question


def test_wrong_options_are_true_of_other_moments(world):
    script = world.script
    true_somewhere = {h.fact.text for h in script.signs} | {h.fact.value for h in script.sayings}
    for deed in deeds(script):
        does, thing = v.VERBS[deed.verb], deed.thing
        doing = f"{does} {thing} at the {deed.place}"
        true_somewhere |= {str(thing), thing.colour, v.THEME_OF[thing.kind], str(deed.person)}
        true_somewhere |= {f"at the {deed.place}", f"{does} it", doing, f"{deed.person} {doing}"}
    for question in world.questions:
        if question.kind != "count":  # a number is true of nothing by itself
            assert set(question.options) <= true_somewhere, question


def test_needles_fall_anywhere():
    tenths = set()
    for seed in range(4):
        for question in drawn(seed, 40, 80).questions:
            if question.kind in ("needle", "onscreen", "spoken"):
                tenths.add(int(question.evidence[0].start / 240))
    assert tenths == set(range(10))


def test_answers_have_no_favourite_letter():
    letters = [q.answer for seed in range(5) for q in drawn(seed, 40, 80).questions if q.options]
    assert all(0.2 < letters.count(letter) / len(letters) < 0.3 for letter in "ABCD")


def test_a_question_is_understood_as_it_was_meant(world):
    for question in world.questions:
        query = asked(question.text)
        assert query.text == question.text
        assert asked(re.sub(" ", "\n", question.text.upper(), count=2)) == query


def test_all_forms_are_asked_somewhere():
    forms = {asked(q.text).form for seed in range(5) for q in drawn(seed, 40, 80).questions}
    assert forms == set(FORMS)


def test_questions_options_and_clues_state_no_fact(world):
    for question in world.questions:
        assert list(facts_in("\n".join([question.text, *question.options]))) == []
