"""A4VL, line by line (Algorithm 1), with numbers computed by hand."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np
import pytest
from support.listening import listening
from support.talking import TalkingFootage, Team

from longtake.agents.run import Agent, Run
from longtake.algorithms import sampling
from longtake.algorithms.partition import PAPER, EventPartition
from longtake.errors import ConfigError
from longtake.footage.plain import from_features
from longtake.llm.backends.scripted import ScriptedChat
from longtake.llm.chat import Card
from longtake.methods.a4vl.method import A4VL, View, shortened
from longtake.methods.base import configure
from longtake.runner.session import solve
from longtake.tracing.events import ScoresSet
from longtake.types import Question

# ---- Algorithm 1, lines 10 to 19: frames for blocks


def test_softmax_over_the_blocks_above_rho():
    share = sampling.shares([2.0, 1.0, 0.5], rho=0.5)  # the last is not above it
    assert share == pytest.approx([math.e / (1 + math.e), 1 / (1 + math.e), 0])
    assert sampling.shares([2.0, 1.0]) == pytest.approx([math.e / (1 + math.e), 1 / (1 + math.e)])


def test_with_no_block_above_rho_the_best_gets_all():
    assert sampling.shares([0.1, 0.7, 0.3], rho=0.8).tolist() == [0, 1, 0]
    assert sampling.counts(sampling.shares([0.1, 0.8, 0.3], rho=0.8), 16, [50, 50, 50]) == [
        0,
        16,
        0,
    ]


def test_whole_frames_by_largest_remainder():
    share = np.array([0.5, 0.3, 0.2])
    assert sampling.counts(share, 16, [99] * 3) == [8, 5, 3]  # 8, 4.8, 3.2
    assert sampling.counts(share, 7, [99] * 3) == [4, 2, 1]  # 3.5, 2.1, 1.4


def test_line_15_as_printed_gives_no_frames():
    share = sampling.shares([2.0, 1.0])
    assert (16 * np.floor(share)).sum() == 0
    assert sum(sampling.counts(share, 16, [99, 99])) == 16


def test_more_blocks_than_frames_one_each_to_the_best():
    assert sampling.counts(np.array([0.1, 0.4, 0.2, 0.3]), 2, [9] * 4) == [0, 1, 0, 1]


def test_a_full_block_passes_on_what_it_cannot_hold():
    assert sampling.counts(np.array([0.8, 0.2]), 10, [4, 99]) == [4, 6]
    assert sampling.counts(np.array([0.8, 0.2]), 10, [4, 3]) == [4, 3]
    assert sampling.counts(np.array([1.0, 0.0]), 10, [4, 9]) == [
        4,
        0,
    ]  # an excluded block stays out


# ---- Algorithm 1 as a whole, on footage with a subject a block

QUESTION = Question("What is thrown?", ("a ball", "a stick", "a shoe"))


def one_look(clue: str, footage: TalkingFootage, method: A4VL) -> list[float]:
    blocks = method.partition(footage, QUESTION)
    look = method.perceive(
        footage, blocks, View(Agent("ann", ScriptedChat([])), clue, False, Random(0))
    )
    return [float(footage.times[row]) for row in look.rows]


def test_lines_10_to_16_the_frames_come_from_the_block_that_fits():
    footage = TalkingFootage([("cat", 50), ("dog", 50), ("car", 50)])
    method = A4VL(logit_scale=200.0)
    assert [round(block.end) for block in method.partition(footage, QUESTION)] == [50, 100, 150]
    times = one_look("a dog", footage, method)
    assert len(times) == 16
    assert all(50 <= time < 100 for time in times)
    assert times == sorted(times)
    spread = one_look("a dog", footage, A4VL(logit_scale=1e-6))
    assert [sum(a <= t < a + 50 for t in spread) for a in (0, 50, 100)] in (
        [6, 5, 5],
        [5, 6, 5],
        [5, 5, 6],
    )


def test_lines_17_to_19_below_rho_all_from_the_best_block():
    footage = TalkingFootage([("cat", 50), ("dog", 50), ("car", 50)])
    times = one_look("a dog", footage, A4VL(rho=1e9, logit_scale=1e-6))
    assert len(times) == 16
    assert all(50 <= time < 100 for time in times)


def test_rho_comes_from_the_encoders_card_unless_set():
    footage = TalkingFootage([("cat", 50), ("dog", 50)])
    assert A4VL().threshold(footage) is None
    footage.encoder.thresholds = {"block_logit": 3.5}
    assert A4VL().threshold(footage) == 3.5
    assert A4VL(rho=0.8).threshold(footage) == 0.8


def test_similarity_is_the_logit_of_the_best_three_of_sixteen():
    footage = TalkingFootage([("cat", 40), ("dog", 40)])
    rows = [np.arange(40), np.arange(40, 80)]
    cosines = footage.embeddings() @ footage.encode(["dog"])[0]
    chosen = np.sort(cosines[rows[1][np.linspace(0, 39, 16).astype(int)]])[-3:]
    assert A4VL().similarity(footage, rows, "dog")[1] == pytest.approx(20 * chosen.mean())
    footage.encoder.logit_scale = 100.0
    assert A4VL().similarity(footage, rows, "dog")[1] == pytest.approx(100 * chosen.mean())


def talk(
    answers: dict[str, Sequence[str | None]], scores: dict[str, dict[str, int]], **more: Any
) -> Team:
    return Team(answers, scores, **more)


FOOTAGE = TalkingFootage([("cat", 50), ("dog", 50), ("car", 50)])


def play(team: Team, question: Question = QUESTION, method: A4VL | None = None) -> Any:
    run = Run({}, team=team.agents)
    with listening() as heard:
        result = solve(method or A4VL(), FOOTAGE, question, run)
    return result.answer, heard


def test_lines_25_and_26_unanimity_ends_the_first_round():
    team = talk({"ann": ["B"], "bob": ["B"], "cid": ["B"]}, {})
    answer, heard = play(team)
    assert (answer.choice, answer.text, answer.confidence) == ("B", "a stick", 0.88)
    assert (
        answer.reason
        == "in short: ann says B in round 1; bob says B in round 1; cid says B in round 1"
    )
    assert team.calls("a4vl/clue") == 3
    assert team.calls("a4vl/answer") == team.calls("a4vl/reason") == 3
    assert team.calls("shared/score") == team.calls("a4vl/refine") == 0
    assert len(answer.evidence) == 3
    assert not heard.notes("pruned")


def test_lines_27_to_34_the_lowest_sum_leaves_and_the_rest_refine():
    scores = {
        "ann": {"ann": 9, "bob": 2, "cid": 8},
        "bob": {"ann": 1, "bob": 10, "cid": 9},
        "cid": {"ann": 9, "bob": 5, "cid": 9},
    }
    team = talk({"ann": ["A", "C"], "bob": ["B"], "cid": ["C", "C"]}, scores)
    answer, heard = play(team)
    (pruned,) = heard.notes("pruned")
    assert pruned.data == {"agent": "bob", "scores": {"ann": 19, "bob": 17, "cid": 26}}
    assert (answer.choice, answer.confidence) == ("C", 0.65)
    assert team.calls("a4vl/refine") == 2
    told = team.told("a4vl/refine")
    assert all(
        "bob [left" in text and "(score 26)" in text and "cid says C in round 1" in text
        for text in told
    )
    assert all("ann looks for" in text or "cid looks for" in text for text in told)
    # cid gave C in both rounds, ann in the second: all of their reasons count
    assert answer.reason.count("says C") == 3


def test_line_36_the_last_agent_looks_once_more_and_that_stands():
    scores = {
        "ann": {"ann": 9, "bob": 2, "cid": 3},
        "bob": {"ann": 9, "bob": 2, "cid": 3},
        "cid": {"ann": 9, "bob": 2, "cid": 3},
    }
    team = talk({"ann": ["A", "A", "B"], "bob": ["B"], "cid": ["C", "C"]}, scores)
    answer, heard = play(team)
    assert [note.data["agent"] for note in heard.notes("pruned")] == ["bob", "cid"]
    assert (answer.choice, answer.confidence) == ("B", 0.46)
    assert team.calls("a4vl/answer") == 3 + 2 + 1


def test_of_equal_sums_the_later_agent_leaves():
    scores = {name: {"ann": 5, "bob": 5, "cid": 5} for name in ("ann", "bob", "cid")}
    team = talk({"ann": ["A", "A"], "bob": ["B", "A"], "cid": ["A"]}, scores)
    answer, heard = play(team)
    assert [note.data["agent"] for note in heard.notes("pruned")] == ["cid"]
    assert answer.choice == "A"


def test_an_abstention_blocks_consensus():
    scores = {name: {"ann": 9, "bob": 8, "cid": 1} for name in ("ann", "bob", "cid")}
    team = talk({"ann": ["A", "A"], "bob": ["A", "A"], "cid": [None]}, scores)
    answer, heard = play(team)
    assert [note.data["agent"] for note in heard.notes("pruned")] == ["cid"]
    assert (answer.choice, answer.confidence) == ("A", 0.65)


def test_nobody_answers():
    scores = {"ann": {"ann": 9, "bob": 8}, "bob": {"ann": 9, "bob": 8}}
    answer, _ = play(talk({"ann": [None, None], "bob": [None]}, scores))
    assert (answer.choice, answer.status, answer.confidence) == (None, "abstained", None)


def test_unreadable_clues_are_the_question_and_unreadable_judges_are_left_out():
    scores = {"ann": {"ann": 1, "bob": 2}}  # bob's card cannot be read
    team = talk(
        {"ann": ["A"], "bob": ["B", "B"]},
        scores,
        mute=("a4vl/clue", "a4vl/refine", "a4vl/summarise"),
    )
    answer, heard = play(team)
    assert answer.choice == "B"
    assert answer.reason == "bob says B in round 2"
    labels = {event.label for event in heard.events if isinstance(event, ScoresSet)}
    assert "share: What is thrown?" in labels
    assert heard.notes("pruned")[0].data["scores"] == {"ann": 1, "bob": 2}


def test_answers_in_words_are_compared_by_meaning():
    team = talk({"ann": ["a ball"], "bob": ["some ball"], "cid": ["A ball."]}, {}, groups=[[1, 2]])
    answer, _ = play(team, Question("What is thrown?"))
    assert (answer.choice, answer.text, answer.confidence) == (None, "a ball", 0.88)
    assert team.calls("shared/same_meaning") == 1
    apart = talk(
        {"ann": ["a ball", "a ball"], "bob": ["a stick", "ball"]},
        {"ann": {"ann": 9, "bob": 2}, "bob": {"ann": 9, "bob": 2}},
        groups=[[1], [2]],
    )
    answer, heard = play(apart, Question("What is thrown?"))
    assert (answer.text, answer.confidence) == ("a ball", 0.65)
    assert len(heard.notes("pruned")) == 1


def test_the_question_says_where_to_look():
    question = Question("What is thrown at the end?", QUESTION.options)
    team = talk({"ann": ["A"]}, {})
    answer, heard = play(team, question)
    assert heard.notes("temporal_scope")[0].data == {"start": 112.5, "end": 150.0}
    assert all(evidence.segment.start >= 112.5 for evidence in answer.evidence)
    as_printed = configure(A4VL, {"preset": "paper", "reason_first": True})
    _, unscoped = play(talk({"ann": ["A"]}, {}), question, as_printed)
    assert not unscoped.notes("temporal_scope")


def spread_out(shown: Sequence[float]) -> bool:
    """Whether there is one moment from each sixteenth of the film."""
    return all(
        time in part for time, part in zip(shown, np.array_split(np.arange(150), 16), strict=True)
    )


def test_the_gate_lets_an_agent_look_over_the_whole_film():
    team = talk({"ann": ["A"]}, {}, whole=True)
    answer, _ = play(team, method=A4VL(gate=True))
    assert team.calls("a4vl/gate") == 1
    shown = team.times("a4vl/answer")[0]
    assert spread_out(shown)
    counting = talk({"ann": ["A"]}, {}, whole=False)
    play(counting, Question("How many dogs are there?", QUESTION.options), A4VL(gate=True))
    assert counting.calls("a4vl/gate") == 0
    assert spread_out(counting.times("a4vl/answer")[0])
    assert answer.choice == "A"


def test_agents_that_look_over_the_whole_film_see_other_moments_in_every_round():
    team = talk(
        {"ann": ["A", "A"], "bob": ["B", "A"]},
        {"ann": {"ann": 9, "bob": 1}, "bob": {"ann": 9, "bob": 1}},
        whole=True,
    )
    play(team, method=A4VL(gate=True))
    looks = team.times("a4vl/answer")
    assert len({tuple(look) for look in looks}) == len(looks) == 3


def test_answer_and_reason_are_given_from_the_same_moments():
    team = talk({"ann": ["A"]}, {})
    play(team)
    assert team.times("a4vl/answer") == team.times("a4vl/reason")
    assert len(team.times("a4vl/answer")[0]) == 16
    (preview,) = team.times("a4vl/clue")
    assert [int(time // 37.5) for time in preview] == [0, 1, 2, 3]  # one in each equal bin


def test_frames_are_drawn_anew_for_each_agent_and_round_and_alike_in_another_run():
    scores = {name: {"ann": 9, "bob": 2} for name in ("ann", "bob")}
    first, second = (talk({"ann": ["A", "A"], "bob": ["B"]}, scores) for _ in range(2))
    play(first)
    play(second)
    shown = sorted(first.times("a4vl/answer"))
    assert len({tuple(times) for times in shown}) == 3
    assert shown == sorted(second.times("a4vl/answer"))


def test_long_films_are_seen_through_more_frames():
    long = TalkingFootage([("cat", 100), ("dog", 100)])
    team = talk({"ann": ["A"]}, {})
    solve(A4VL(), long, QUESTION, Run({}, team=team.agents))
    assert (len(team.times("a4vl/clue")[0]), len(team.times("a4vl/answer")[0])) == (8, 32)


def test_a_clue_is_cut_to_its_words():
    assert shortened("a dog that runs", 3, QUESTION) == "a dog that"
    assert shortened("  ", 3, QUESTION) == QUESTION.text


def test_an_answer_may_come_without_a_reason_first():
    forms = {}

    def said(messages, options):
        forms[options.prompt] = list(options.schema["properties"])
        return json.dumps({"choice": "A", "reason": "so it seems", "clue": "a cat"})

    team = [Agent("ann", ScriptedChat(said, card=Card("ann")))]
    for first in (True, False):
        solve(A4VL(reason_first=first), FOOTAGE, QUESTION, Run({}, team=team))
    assert forms["a4vl/answer"] == ["reason", "choice"]
    assert forms["a4vl/act"] == ["choice"]


def test_presets():
    printed = configure(A4VL, {"preset": "paper"})
    assert printed.events == EventPartition(**PAPER)
    assert not printed.temporal_scope
    assert not printed.reason_first
    released = configure(A4VL, {"preset": "released"})
    assert (released.rho, released.gate, released.reason_first) == (0.8, True, False)
    events = released.events
    assert (events.nms, events.strength) == ("time", "gamma")
    assert (events.kts_penalty, events.kts_factor) == ("whole", 1.3)
    deeper = configure(A4VL, {"events": {"max_blocks": 9}})
    assert deeper.events.max_blocks == 9


@pytest.mark.parametrize("gate", [False, True])
@pytest.mark.parametrize("question", [QUESTION, Question("What is thrown?")])
def test_bounds_are_reached_when_nobody_ever_agrees(gate, question):
    scores = {name: {"ann": 9, "bob": 2, "cid": 3} for name in ("ann", "bob", "cid")}
    said = {"ann": ["A", "A", "A"], "bob": ["B"], "cid": ["C", "C"]}
    words = {"ann": ["ball"] * 3, "bob": ["stick"], "cid": ["shoe"] * 2}
    team = talk(said if question.options else words, scores, groups=[[1], [2], [3]], whole=True)
    method = A4VL(gate=gate)
    play(team, question, method)
    bounds = method.bounds(FOOTAGE.duration, question)
    assert bounds.calls == len(team.asked)
    shown = sum(
        len(times)
        for prompt in ("clue", "gate", "answer", "reason")
        for times in team.times(f"a4vl/{prompt}")
    )
    assert bounds.frames == shown


def test_a_team_is_needed():
    with pytest.raises(ConfigError, match="team"):
        A4VL().answer(FOOTAGE, QUESTION, Run({}))


def test_footage_without_pictures_is_partitioned_by_features():
    samples = from_features(FOOTAGE, 50)
    assert len(samples.times) == 50
    assert samples.histograms is None
    assert [round(cut.time / 50) for cut in EventPartition()(samples, FOOTAGE.duration).cuts] == [
        1,
        2,
    ]
