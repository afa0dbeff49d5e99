"""Properties of every vote and every pruning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from support.talking import Team

from longtake.agents.team import Opinion, majority, prune, tally
from longtake.types import Question

QUESTION = Question("What is thrown?", ("a ball", "a stick", "a shoe"))
VOTES = st.lists(st.sampled_from(["A", "B", "C", None]), min_size=1, max_size=7)


def opinions_of(votes: Sequence[str | None]) -> list[Opinion]:
    return [Opinion(f"agent {number}", choice) for number, choice in enumerate(votes)]


@given(VOTES)
def test_a_majority_is_the_only_answer_of_more_than_half(votes):
    winner = majority(opinions_of(votes))
    assert (winner is not None) == any(votes.count(choice) * 2 > len(votes) for choice in "ABC")
    if winner is not None:
        assert votes.count(winner) * 2 > len(votes)


@given(VOTES, st.randoms(use_true_random=False))
def test_a_majority_does_not_depend_on_who_speaks_first(votes, random):
    shuffled = list(votes)
    random.shuffle(shuffled)
    assert majority(opinions_of(votes)) == majority(opinions_of(shuffled))
    assert tally(opinions_of(votes)) == tally(opinions_of(shuffled))


@given(st.lists(st.integers(1, 10), min_size=2, max_size=5))
def test_exactly_one_leaves_and_nobody_with_a_higher_sum(points):
    names = [f"agent{number}" for number in range(len(points))]
    team = Team(
        {name: ["A"] for name in names},
        {judge: dict(zip(names, points, strict=True)) for judge in names},
    )
    opinions = [Opinion(name, "A") for name in names]
    stay, judged = prune(team.agents, opinions, QUESTION)
    (gone,) = [opinion for opinion in judged if opinion.left]
    assert [agent.name for agent in stay] == [name for name in names if name != gone.agent]
    assert gone.score == min(opinion.score for opinion in judged)
    later = judged[judged.index(gone) + 1 :]
    assert all(opinion.score > gone.score for opinion in later), "of equals the later leaves"
    assert [replace(opinion, score=None, left=False) for opinion in judged] == opinions
