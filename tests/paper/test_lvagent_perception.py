"""LVAgent's perception and selection, equation by equation, with numbers computed by hand."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.footages import TestFootage
from support.listening import listening
from support.talking import TalkingFootage, Team

from longtake.agents.run import Run
from longtake.algorithms import sampling
from longtake.evals import selection
from longtake.footage.look import clip_scorer
from longtake.methods.lvagent.method import LVAgent
from longtake.perception.minilm import MeanPooling
from longtake.runner.session import solve
from longtake.tracing.events import ScoresSet
from longtake.types import Question, Segment

QUESTION = Question("What is thrown?", ("a ball", "a stick", "a shoe"))
SIX = TalkingFootage(
    [("cat", 100), ("cat", 100), ("dog", 100), ("dog", 100), ("car", 100), ("boat", 100)]
)


def play(
    team: Team, method: LVAgent | None = None, question: Question = QUESTION, footage: Any = SIX
) -> Any:
    with listening() as heard:
        solve(method or LVAgent(), footage, question, Run({}, team=team.agents))
    return heard


# ---- selection: equation 1


def test_the_pseudo_label_is_what_most_say_and_ties_all_count():
    assert selection.pseudo_labels(["A", "A", "B"]) == {"A"}
    assert selection.pseudo_labels(["A", "B", None]) == {"A", "B"}
    assert selection.pseudo_labels([None, None]) == frozenset()


def test_equation_1_agreement_with_the_pseudo_label():
    votes = {
        "ann": ["A", "B", "C", None],
        "bob": ["A", "B", "A", None],
        "cid": ["B", None, "B", None],
    }
    found = selection.agreement(votes)
    # labels: A; B; A, B and C; none
    assert found == {
        "ann": [True, True, True, False],
        "bob": [True, True, True, False],
        "cid": [False, False, True, False],
    }


@given(
    st.dictionaries(
        st.sampled_from("abcdef"),
        st.lists(st.sampled_from(["A", "B", None]), min_size=3, max_size=3),
        min_size=1,
    )
)
def test_somebody_agrees_wherever_anybody_answers(votes):
    found = selection.agreement(votes)
    for question in range(3):
        answered = any(given[question] is not None for given in votes.values())
        assert any(row[question] for row in found.values()) == answered
        assert all(
            not row[question] for name, row in found.items() if votes[name][question] is None
        )


# ---- stage 1: equation 2


def test_each_agent_has_a_preview_of_four_random_frames_of_its_own():
    first, second = (Team({"ann": ["A"], "bob": ["A"], "cid": ["A"]}, {}) for _ in range(2))
    play(first)
    play(second)
    shown = first.times("lvagent/gate")
    assert all(len(times) == 4 and times == sorted(times) for times in shown)
    assert len({tuple(times) for times in shown}) == 3
    assert sorted(first.times("lvagent/gate")) == sorted(second.times("lvagent/gate")), (
        "the same in another run"
    )
    assert sorted(first.times("lvagent/gate")) == sorted(first.times("lvagent/key"))


def test_who_says_yes_watches_sixteen_frames_of_the_whole_film_and_needs_no_key():
    team = Team(
        {"ann": ["A", "A", "A"], "bob": ["B", "B"], "cid": ["C"]},
        {n: {"ann": 9, "bob": 5, "cid": 1} for n in ("ann", "bob", "cid")},
        whole=True,
    )
    play(team)
    shown = team.times("lvagent/answer")
    stretches = np.array_split(np.arange(600), 16)
    for times in shown:
        assert all(time in stretch for time, stretch in zip(times, stretches, strict=True))
    assert team.calls("lvagent/gate") == 3, "asked in the first round only"
    assert team.calls("lvagent/key") == team.calls("lvagent/key_again") == 0
    assert shown[0] != shown[3] != shown[5], "drawn anew each round"


def test_agents_that_watch_the_whole_film_may_draw_their_own_frames():
    for own in (False, True):
        team = Team({"ann": ["A"], "bob": ["B"], "cid": ["B"]}, {}, whole=True)
        play(team, LVAgent(own_frames=own))
        ann, bob, cid = team.times("lvagent/answer")
        assert (ann == bob == cid) is not own


def test_as_printed_everybody_looks_for_new_key_information_in_later_rounds():
    for again, keys in ((True, 0), (False, 2)):
        answers = {"ann": ["A", "A"], "bob": ["B", "B"], "cid": ["C", "A"]}
        points = {"ann": 9, "bob": 2, "cid": 5}
        scores = {"ann": points, "bob": points, "cid": points}
        team = Team(answers, scores, whole=True)
        play(team, LVAgent(whole_again=again))
        assert team.calls("lvagent/key_again") == keys


def test_an_unread_gate_means_the_whole_film_and_an_unread_key_is_the_question():
    team = Team({"ann": ["A"]}, {}, mute=("lvagent/gate",))
    play(team)
    assert len(team.times("lvagent/answer")[0]) == 16
    assert team.calls("lvagent/key") == 0
    keyless = Team({"ann": ["A"]}, {}, mute=("lvagent/key",))
    heard = play(keyless)
    assert [event.label for event in heard.of(ScoresSet)] == ["chunks: What is thrown?"]


def test_a_film_of_96_pictures_is_watched_whole_unasked():
    class Short(TestFootage):
        native_frames = 96

    class Longer(TestFootage):
        native_frames = 97

    short, longer = Team({"ann": ["A"]}, {}), Team({"ann": ["A"]}, {})
    play(short, footage=Short(300))
    play(longer, footage=Longer(300))
    assert (short.calls("lvagent/gate"), short.calls("lvagent/key")) == (0, 0)
    assert (longer.calls("lvagent/gate"), longer.calls("lvagent/key")) == (1, 1)
    asked = Team({"ann": ["A"]}, {})
    play(asked, LVAgent(native_whole=False), footage=Short(300))
    assert asked.calls("lvagent/gate") == 1
    assert TestFootage(3).native_frames is None


# ---- stage 2: equations 3 and 4


def test_key_information_is_cut_to_its_words():
    team = Team({"ann": ["A"]}, {})
    heard = play(team, LVAgent(key_words=3))
    assert "At most 3 words" in team.told("lvagent/key")[0]
    assert [event.label for event in heard.of(ScoresSet)] == ["chunks: ann looks for"]


# ---- stage 3: equation 5


def test_chunks_are_equal():
    assert sampling.equal_chunks(12.0, 3) == [Segment(0, 4), Segment(4, 8), Segment(8, 12)]


def test_random_frames_are_different_ascending_and_all_where_few():
    assert sampling.draw([3, 1, 2], 16, Random(0)) == [1, 2, 3]
    some = sampling.draw(range(100), 16, Random(0))
    assert len(set(some)) == 16
    assert some == sorted(some)


def test_similarities_are_spread_over_the_chunks_of_the_film():
    assert sampling.minmax(np.array([0.2, 0.3, 0.6])) == pytest.approx([0, 0.25, 1])
    assert sampling.minmax(np.full(3, 0.7)).tolist() == [0.5, 0.5, 0.5]


def test_a_known_scale_is_kept_to():
    assert sampling.between(np.array([0.1, 0.2, 0.3, 0.9]), 0.2, 0.4) == pytest.approx(
        [0, 0, 0.5, 1]
    )


def test_equation_5_is_the_mean_of_two_calibrated_similarities():
    similarity = np.array([[0.2, 0.5], [0.3, 0.1], [0.6, 0.3]])
    assert sampling.chunk_scores(similarity) == pytest.approx(
        [(0 + 1) / 2, (0.25 + 0) / 2, (1 + 0.5) / 2]
    )
    assert sampling.chunk_scores(similarity, (0.1, 0.6)) == pytest.approx(
        [(0.2 + 0.8) / 2, (0.4 + 0) / 2, (1 + 0.4) / 2]
    )


def test_equation_5_as_printed_is_the_sum():
    similarity = np.array([[0.2, 0.5], [0.6, 0.3]])
    assert sampling.chunk_scores(similarity, calibrate=False) == pytest.approx([0.7, 0.9])


def test_chunks_above_the_threshold_else_the_best():
    assert sampling.chosen_chunks([0.81, 0.8, 0.95], 0.8) == [0, 2]
    assert sampling.chosen_chunks([0.1, 0.8, 0.3], 0.8) == [1]
    assert sampling.chosen_chunks([0.9, 0.99, 0.95], None) == [1]


@given(st.lists(st.tuples(st.floats(-1, 1), st.floats(-1, 1)), min_size=1, max_size=8))
def test_scores_lie_in_0_to_1_and_something_is_always_chosen(pairs):
    scores = sampling.chunk_scores(np.array(pairs))
    assert ((scores >= 0) & (scores <= 1)).all()
    assert sampling.chosen_chunks(scores, 0.8)
    assert set(sampling.chosen_chunks(scores, 0.8)) >= {int(np.argmax(scores))}


def test_the_drawn_frames_of_every_chunk_that_passes_are_shown():
    team = Team({"ann": ["A"]}, {})
    heard = play(team, question=Question("What does the dog throw?", QUESTION.options))
    (scores,) = heard.of(ScoresSet)
    assert [round(segment.start) for segment in scores.segments] == [0, 100, 200, 300, 400, 500]
    passed = [number for number, value in enumerate(scores.values) if value > 0.8]
    assert passed == [2, 3], "the dog"
    (times,) = team.times("lvagent/answer")
    assert len(times) == 32
    assert [sum(a <= time < a + 100 for time in times) for a in range(0, 600, 100)] == [
        0,
        0,
        16,
        16,
        0,
        0,
    ]


def test_below_the_threshold_the_best_chunk_alone():
    team = Team({"ann": ["A"]}, {})
    play(team, LVAgent(threshold=1.0))
    (times,) = team.times("lvagent/answer")
    assert len(times) == 16
    assert len({time // 100 for time in times}) == 1


def test_one_draw_serves_all_agents_of_a_round():
    team = Team({"ann": ["A"], "bob": ["A"], "cid": ["A"]}, {})
    play(team)
    assert len({tuple(times) for times in team.times("lvagent/answer")}) == 1


def test_the_question_is_compared_as_well():
    about_cats = Question("What does the cat cat cat cat throw?", QUESTION.options)
    with_it, without = Team({"ann": ["A"]}, {}), Team({"ann": ["A"]}, {})
    both = play(with_it, question=about_cats).of(ScoresSet)[0].values
    alone = play(without, LVAgent(question_term=False), question=about_cats).of(ScoresSet)[0].values
    assert alone[0] < 0.1 < 0.4 < both[0] < 0.6, "the key says dog, the question cat"


def test_the_ends_of_the_scale_come_from_the_card_where_it_names_them():
    footage = TalkingFootage([("cat", 300), ("dog", 300)])
    footage.encoder.thresholds = {"chunk_low": 0.0, "chunk_high": 2.0}
    values = play(Team({"ann": ["A"]}, {}), footage=footage).of(ScoresSet)[0].values
    assert max(values) < 0.6, "half of the scale at most"
    spread = (
        play(Team({"ann": ["A"]}, {}), LVAgent(calibration="minmax"), footage=footage)
        .of(ScoresSet)[0]
        .values
    )
    assert max(spread) > 0.7


def test_as_printed_no_chunk_of_a_weak_encoder_passes_or_all_of_a_strong_one_do():
    """Why calibration is needed: 0.8 on a raw sum depends on the encoder more than on the chunk."""
    weak = np.array([[0.21, 0.24], [0.31, 0.28], [0.19, 0.22]])  # cosines as CLIP gives them
    assert sampling.chosen_chunks(sampling.chunk_scores(weak, calibrate=False), 0.8) == [1]
    assert sampling.chosen_chunks(sampling.chunk_scores(weak + 0.4, calibrate=False), 0.8) == [
        0,
        1,
        2,
    ]
    assert (
        sampling.chosen_chunks(sampling.chunk_scores(weak), 0.8)
        == sampling.chosen_chunks(sampling.chunk_scores(weak + 0.4), 0.8)
        == [1]
    )


def test_without_a_head_the_mean_of_the_frames_is_compared_and_the_run_says_so():
    heard = play(Team({"ann": ["A"]}, {}))
    assert heard.notes("retrieval")[0].data == {"scorer": "mean", "encoder": "words"}
    assert isinstance(clip_scorer(SIX), MeanPooling)
    frames = np.array([[1, 0], [0, 1]], np.float32)
    assert MeanPooling().scores(frames, np.eye(2, dtype=np.float32)) == pytest.approx(
        [0.5**0.5] * 2
    )
