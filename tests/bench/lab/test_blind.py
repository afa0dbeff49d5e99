"""Nobody who sees the questions alone answers them better than by chance."""

import re
from collections import Counter, defaultdict
from dataclasses import replace
from functools import cache

import pytest

from longtake.types import LETTERS
from longtake_bench.lab.film import make_world

MINUTES = 20  # short films have the fewest candidates for wrong options
FIRST_SEED = 100  # neither development's nor published
CHANCE = 0.25
LEVEL = 0.05
LEAST = 20
"""Questions that a strategy must apply to before it counts."""
drawn = cache(make_world)
EVERYWHERE = ("the", "a", "at", "it", "in", "of", "and", "person", "coat", "hat")


def asked(least):
    """At least so many questions with options, by world."""
    worlds, count = [], 0
    for seed in range(FIRST_SEED, FIRST_SEED + 100):
        questions = drawn(seed, MINUTES, 60).questions
        worlds.append([question for question in questions if question.options])
        count += len(worlds[-1])
        if count >= least:
            return worlds
    raise AssertionError(count)


def words(text):
    return set(re.findall(r"[a-z0-9]+", text.lower())) - set(EVERYWHERE)


def ranked(values):
    """Positions by value, if every option has one and none is equal to another."""
    if None in values or len(set(values)) < len(values):
        return None
    return sorted(range(len(values)), key=lambda place: values[place])


def number(option):
    digits = "".join(re.findall(r"\d+", option))
    return int(digits) if digits else None


def highest(values):
    return max(range(len(values)), key=lambda place: values[place])


def strategies(question, seen, right):
    """The choice of every strategy; ``seen`` and ``right`` count options in other films."""
    options = question.options
    bags = [words(option) for option in options]
    shared = [len(bag & words(question.text)) for bag in bags]
    alike = [sum(len(bag & other) for other in bags) - len(bag) for bag in bags]
    scores = {
        "length": [len(option) for option in options],
        "often seen": [seen[option] for option in options],
        "often right": [right[option] for option in options],
        "words of the question": shared,
        "words of other options": alike,
        "alphabet": [-sorted(options).index(option) for option in options],
    }
    chosen = {f"letter {letter}": place for place, letter in enumerate(LETTERS[: len(options)])}
    for name, values in scores.items():
        chosen[f"most: {name}"] = highest(values)
        chosen[f"least: {name}"] = highest([-value for value in values])
    order = ranked([number(option) for option in options])
    for rank, place in enumerate(order or ()):
        chosen[f"number {rank + 1} of 4"] = place
    return chosen


def played(worlds):
    """Whether each strategy was right, by strategy and kind; ``all`` is every kind."""
    seen = Counter(option for world in worlds for q in world for option in q.options)
    right = Counter(q.answer_text for world in worlds for q in world)
    results = defaultdict(list)
    for world in worlds:
        # a strategy may learn from other films, not from the labels of this one
        others_seen = seen - Counter(option for q in world for option in q.options)
        others_right = right - Counter(q.answer_text for q in world)
        for question in world:
            for name, place in strategies(question, others_seen, others_right).items():
                is_right = LETTERS[place] == question.answer
                results[name, question.kind].append(is_right)
                results[name, "all"].append(is_right)
    return {key: values for key, values in results.items() if len(values) >= LEAST}


def better_than_chance(worlds):
    """Strategies that beat chance; the level is corrected for their number."""
    # not when this file is imported, which every process of a test run does
    from scipy import stats

    results = played(worlds)
    found = {}
    for key, values in results.items():
        p = stats.binom.sf(sum(values) - 1, len(values), CHANCE)
        if p < LEVEL / len(results):
            found[key] = round(sum(values) / len(values), 2)
    return found


@pytest.mark.parametrize("least", [300, pytest.param(2000, marks=pytest.mark.campaign)])
def test_no_blind_strategy_beats_chance(least):
    assert better_than_chance(asked(least)) == {}


def leaking(question):
    """The same question, but the second-smallest number is right if its options are numbers."""
    order = ranked([number(option) for option in question.options])
    if order is None:
        return question
    return replace(question, answer=LETTERS[order[1]], answer_text=question.options[order[1]])


def test_the_strategies_find_a_leak():
    worlds = [[leaking(question) for question in world] for world in asked(300)]
    assert better_than_chance(worlds)["number 2 of 4", "count"] == 1.0
