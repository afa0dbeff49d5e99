"""A4VL, line by line (Algorithm 1) and by equation (appendix D), with numbers computed by hand."""

import json
import math
from random import Random
from typing import Any

import numpy as np
import pytest
from support.listening import listening
from support.talking import TalkingFootage, Team

from longtake.agents.run import Agent, Run
from longtake.algorithms import changepoint, novelty, sampling
from longtake.algorithms.partition import LONG_RUN, PAPER, EventCut, EventPartition, suppress
from longtake.algorithms.partition_numbers import CUES, Samples
from longtake.errors import ConfigError
from longtake.footage.plain import from_features
from longtake.llm.backends.scripted import ScriptedChat
from longtake.llm.chat import Card
from longtake.methods.a4vl.method import A4VL, View, shortened
from longtake.methods.base import configure
from longtake.runner.session import solve
from longtake.tracing.events import ScoresSet
from longtake.types import Question, Segment

RULE = EventPartition()
BASE_WEIGHTS = dict(zip(CUES, RULE.cue_weights, strict=True))

# ---- Algorithm 1, lines 10 to 19: frames for blocks


def test_softmax_over_the_blocks_above_rho():
    share = sampling.shares([2.0, 1.0, 0.5], rho=0.5)  # the last is not above it
    assert share == pytest.approx([math.e / (1 + math.e), 1 / (1 + math.e), 0])
    assert sampling.shares([2.0, 1.0]) == pytest.approx([math.e / (1 + math.e), 1 / (1 + math.e)])


def test_with_no_block_above_rho_the_best_gets_all():
    share = sampling.shares([0.1, 0.8, 0.3], rho=0.8)
    assert share.tolist() == [0, 1, 0]
    assert sampling.counts(share, 16, [50, 50, 50]) == [0, 16, 0]


@pytest.mark.parametrize(
    ("share", "total", "room", "counts"),
    [
        ([0.5, 0.3, 0.2], 16, [99] * 3, [8, 5, 3]),  # 8, 4.8, 3.2
        ([0.5, 0.3, 0.2], 7, [99] * 3, [4, 2, 1]),  # 3.5, 2.1, 1.4
        ([0.1, 0.4, 0.2, 0.3], 2, [9] * 4, [0, 1, 0, 1]),  # more blocks than frames
        # a full block passes on what it cannot hold
        ([0.8, 0.2], 10, [4, 99], [4, 6]),
        ([0.8, 0.2], 10, [4, 3], [4, 3]),
        ([1.0, 0.0], 10, [4, 9], [4, 0]),  # an excluded block stays out
    ],
)
def test_whole_frames_by_largest_remainder_as_far_as_there_is_room(share, total, room, counts):
    assert sampling.counts(np.array(share), total, room) == counts


def test_line_15_as_printed_gives_no_frames():
    share = sampling.shares([2.0, 1.0])
    assert (16 * np.floor(share)).sum() == 0
    assert sum(sampling.counts(share, 16, [99, 99])) == 16


# ---- Algorithm 1 as a whole, on footage with a subject a block

QUESTION = Question("What is thrown?", ("a ball", "a stick", "a shoe"))
FOOTAGE = TalkingFootage([("cat", 50), ("dog", 50), ("car", 50)])
LOW_BOB = {judge: {"ann": 9, "bob": 2, "cid": 3} for judge in ("ann", "bob", "cid")}


def one_look(method: A4VL) -> list[float]:
    """The moments that the clue "a dog" leads to."""
    blocks = method.partition(FOOTAGE, QUESTION)
    view = View(Agent("ann", ScriptedChat([])), "a dog", False, Random(0))
    return [float(FOOTAGE.times[row]) for row in method.perceive(FOOTAGE, blocks, view).rows]


def test_lines_10_to_16_the_frames_come_from_the_blocks_that_fit():
    blocks = A4VL().partition(FOOTAGE, QUESTION)
    assert [round(block.end) for block in blocks] == [50, 100, 150]
    spread = one_look(A4VL(logit_scale=1e-6))
    assert spread == sorted(spread)
    assert sorted(sum(a <= t < a + 50 for t in spread) for a in (0, 50, 100)) == [5, 5, 6]


@pytest.mark.parametrize("method", [A4VL(logit_scale=200.0), A4VL(rho=1e9, logit_scale=1e-6)])
def test_lines_16_to_19_all_from_the_block_that_stands_out_or_is_best_below_rho(method):
    times = one_look(method)
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


def play(team: Team, question: Question = QUESTION, method: A4VL | None = None) -> Any:
    run = Run({}, team=team.agents)
    with listening() as heard:
        result = solve(method or A4VL(), FOOTAGE, question, run)
    return result.answer, heard


def test_lines_25_and_26_unanimity_ends_the_first_round():
    team = Team({"ann": ["B"], "bob": ["B"], "cid": ["B"]}, {})
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
    team = Team({"ann": ["A", "C"], "bob": ["B"], "cid": ["C", "C"]}, scores)
    answer, heard = play(team)
    (pruned,) = heard.notes("pruned")
    assert pruned.data == {"agent": "bob", "scores": {"ann": 19, "bob": 17, "cid": 26}}
    assert (answer.choice, answer.confidence) == ("C", 0.65)
    assert team.calls("a4vl/refine") == 2
    for text in team.told("a4vl/refine"):
        assert all(part in text for part in ("bob [left", "(score 26)", "cid says C in round 1"))
        assert "ann looks for" in text or "cid looks for" in text
    # cid gave C in both rounds, ann in the second: all of their reasons count
    assert answer.reason.count("says C") == 3


def test_line_36_the_last_agent_looks_once_more_and_that_stands():
    team = Team({"ann": ["A", "A", "B"], "bob": ["B"], "cid": ["C", "C"]}, LOW_BOB)
    answer, heard = play(team)
    assert [note.data["agent"] for note in heard.notes("pruned")] == ["bob", "cid"]
    assert (answer.choice, answer.confidence) == ("B", 0.46)
    assert team.calls("a4vl/answer") == 3 + 2 + 1


def test_an_abstention_blocks_consensus():
    team = Team({"ann": ["A", "A"], "bob": [None], "cid": ["A", "A"]}, LOW_BOB)
    answer, heard = play(team)
    assert [note.data["agent"] for note in heard.notes("pruned")] == ["bob"]
    assert (answer.choice, answer.confidence) == ("A", 0.65)


def test_nobody_answers():
    answer, _ = play(Team({"ann": [None, None], "cid": [None]}, LOW_BOB))
    assert (answer.choice, answer.status, answer.confidence) == (None, "abstained", None)


def test_unreadable_clues_are_the_question_and_unreadable_judges_are_left_out():
    scores = {"ann": {"ann": 1, "bob": 2}}  # bob's card cannot be read
    mute = ("a4vl/clue", "a4vl/refine", "a4vl/summarise")
    answer, heard = play(Team({"ann": ["A"], "bob": ["B", "B"]}, scores, mute=mute))
    assert answer.choice == "B"
    assert answer.reason == "bob says B in round 2"
    assert "share: What is thrown?" in {event.label for event in heard.of(ScoresSet)}
    assert heard.notes("pruned")[0].data["scores"] == {"ann": 1, "bob": 2}


@pytest.mark.parametrize(
    ("said", "groups", "confidence"),
    [
        ({"ann": ["a ball"], "bob": ["some ball"], "cid": ["A ball."]}, [[1, 2]], 0.88),
        ({"ann": ["a ball", "a ball"], "bob": ["a stick"]}, [[1], [2]], 0.65),
    ],
)
def test_answers_in_words_are_compared_by_meaning(said, groups, confidence):
    team = Team(said, LOW_BOB, groups=groups)
    answer, heard = play(team, Question("What is thrown?"))
    assert (answer.choice, answer.text, answer.confidence) == (None, "a ball", confidence)
    assert team.calls("shared/same_meaning") == 1
    assert len(heard.notes("pruned")) == len(groups) - 1


def test_the_question_says_where_to_look():
    question = Question("What is thrown at the end?", QUESTION.options)
    team = Team({"ann": ["A"]}, {})
    answer, heard = play(team, question)
    assert heard.notes("temporal_scope")[0].data == {"start": 112.5, "end": 150.0}
    assert all(evidence.segment.start >= 112.5 for evidence in answer.evidence)
    as_printed = configure(A4VL, {"preset": "paper", "reason_first": True})
    _, unscoped = play(Team({"ann": ["A"]}, {}), question, as_printed)
    assert not unscoped.notes("temporal_scope")


@pytest.mark.parametrize(
    ("asked", "gates"), [("What is thrown?", 1), ("How many dogs are there?", 0)]
)
def test_the_gate_or_a_question_of_counting_makes_an_agent_look_over_the_whole_film(asked, gates):
    team = Team({"ann": ["A"]}, {}, whole=bool(gates))
    play(team, Question(asked, QUESTION.options), A4VL(gate=True))
    assert team.calls("a4vl/gate") == gates
    # one moment from each sixteenth of the film
    sixteenths = np.array_split(np.arange(150), 16)
    (shown,) = team.times("a4vl/answer")
    assert all(time in part for time, part in zip(shown, sixteenths, strict=True))


def test_answer_and_reason_are_given_from_the_same_moments():
    team = Team({"ann": ["A"]}, {})
    play(team)
    assert team.times("a4vl/answer") == team.times("a4vl/reason")
    assert len(team.times("a4vl/answer")[0]) == 16
    (preview,) = team.times("a4vl/clue")
    assert [int(time // 37.5) for time in preview] == [0, 1, 2, 3]  # one in each equal bin


@pytest.mark.parametrize("gate", [False, True])
def test_frames_are_drawn_anew_for_each_agent_and_round_and_alike_in_another_run(gate):
    first, second = (Team({"ann": ["A", "A"], "bob": ["B"]}, LOW_BOB, whole=gate) for _ in "12")
    for team in (first, second):
        play(team, method=A4VL(gate=gate))
    shown = sorted(first.times("a4vl/answer"))
    assert len({tuple(times) for times in shown}) == 3
    assert shown == sorted(second.times("a4vl/answer"))


def test_long_films_are_seen_through_more_frames():
    long = TalkingFootage([("cat", 100), ("dog", 100)])
    team = Team({"ann": ["A"]}, {})
    solve(A4VL(), long, QUESTION, Run({}, team=team.agents))
    assert (len(team.times("a4vl/clue")[0]), len(team.times("a4vl/answer")[0])) == (8, 32)


def test_a_clue_is_cut_to_its_words():
    assert shortened("a dog that runs", 3, QUESTION) == "a dog that"
    assert shortened("  ", 3, QUESTION) == QUESTION.text


@pytest.mark.parametrize("first", [True, False])
def test_an_answer_may_come_without_a_reason_first(first):
    forms = {}

    def said(messages, options):
        forms[options.prompt] = list(options.schema["properties"])
        return json.dumps({"choice": "A", "reason": "so it seems", "clue": "a cat"})

    team = [Agent("ann", ScriptedChat(said, card=Card("ann")))]
    solve(A4VL(reason_first=first), FOOTAGE, QUESTION, Run({}, team=team))
    assert forms.get("a4vl/answer") == (["reason", "choice"] if first else None)
    assert forms.get("a4vl/act") == (None if first else ["choice"])


def test_released_ranks_and_cuts_as_the_authors_code_does():
    released = configure(A4VL, {"preset": "released"})
    assert (released.rho, released.gate, released.reason_first) == (0.8, True, False)
    events = released.events
    assert (events.rules, events.kts_factor, events.ssm_kernel) == ("released", 1.3, 8)


class Head:
    """A trained head: how many frames a clip has, and its closeness to the text."""

    key = "head"

    def __init__(self, **thresholds: float) -> None:
        self.thresholds = thresholds

    def scores(self, frames: Any, texts: Any) -> Any:
        return np.array([len(frames) / 100 + float(frames.mean(axis=0) @ text) for text in texts])


def test_a_trained_head_compares_clues_with_blocks_and_states_its_own_rho():
    footage = TalkingFootage([("cat", 40), ("dog", 40)])
    footage.encoder.thresholds = {"block_logit": 3.5}
    footage.retriever = Head(block_logit=7.0)
    rows = [np.arange(40), np.arange(40, 80)]
    clip = footage.embeddings()[rows[1][np.linspace(0, 39, 16).astype(int)]]
    cosine = 0.16 + float(clip.mean(axis=0) @ footage.encode(["dog"])[0])
    assert A4VL().similarity(footage, rows, "dog")[1] == pytest.approx(20 * cosine)
    assert A4VL().threshold(footage) == 7.0
    footage.retriever = Head()
    assert A4VL().threshold(footage) is None  # the encoder's value is on another scale


def test_released_reasons_come_from_other_frames_of_the_whole_film():
    team = Team({"ann": ["A"]}, {})
    fields = {"preset": "released", "gate": False, "reason_first": True}
    play(team, method=configure(A4VL, fields))
    (answer,), (reason,) = team.times("a4vl/answer"), team.times("a4vl/reason")
    assert answer != reason
    # bins of nine moments, the last one has fifteen
    assert [int(time // 9) for time in reason[:15]] == list(range(15))


def test_a_team_is_needed():
    with pytest.raises(ConfigError, match="team"):
        A4VL().answer(FOOTAGE, QUESTION, Run({}))


def test_footage_without_pictures_is_partitioned_by_features():
    samples = from_features(FOOTAGE, 50)
    assert len(samples.times) == 50
    assert samples.histograms is None
    cuts = EventPartition()(samples, FOOTAGE.duration).cuts
    assert [round(cut.time / 50) for cut in cuts] == [1, 2]


# ==== event partition, equation by equation (appendix D)


def test_histograms_share_one_norm():
    red = np.zeros((2, 4, 3), np.uint8)
    red[..., 0] = 255  # hue 0, saturation 255, value 255
    red[0, 0] = 0  # black: hue 0, saturation 0, value 0
    histograms = novelty.colour_histograms(red)
    assert histograms.shape == (3, 32)
    assert histograms.sum() == pytest.approx(1)
    assert histograms[0, 0] == pytest.approx(8 / 24)
    assert histograms[1, 31] == histograms[2, 31] == pytest.approx(7 / 24)
    assert histograms[1, 0] == histograms[2, 0] == pytest.approx(1 / 24)


def test_sharpness_is_the_variance_of_the_laplacian_and_motion_a_median_difference():
    assert novelty.sharpness(np.full((5, 5), 90.0)) == 0
    ramp = np.tile(np.arange(6.0) * 10, (6, 1))  # mirrored at the ends: +20 and −20 there, 0 inside
    assert novelty.sharpness(ramp) == pytest.approx((2 * 20**2) / 6)
    before, after = np.zeros((1, 5)), np.array([[0.0, 10, 51, 200, 255]])
    assert novelty.motion(after, before) == pytest.approx(51 / 255)


def test_colour_novelty_weighs_the_channels():
    same, other = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    first = np.stack([same, same, same])
    second = np.stack([other, same, (same + other) / 2])
    expected = 0.55 * 1 + 0.35 * 0 + 0.10 * (1 - 1 / math.sqrt(2))
    assert novelty.colour_novelty(np.stack([first, second]), RULE.channel_weights) == pytest.approx(
        [expected]
    )


def test_sharpness_and_motion_novelty_are_absolute_steps():
    assert novelty.absolute_change(np.array([3.0, 1.0, 4.0])).tolist() == [2.0, 3.0]
    assert novelty.midpoints(np.array([0.0, 2.0, 6.0])).tolist() == [1.0, 4.0]


def test_embedding_novelty_is_half_previous_half_average():
    e = np.array([[2.0, 0.0], [2.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    # averages of raw rows before each: (2,0), (2,0), then 0.9·(2,0) + 0.1·(0,1) = (1.8, 0.1)
    to_average = 1 - 0.1 / math.hypot(1.8, 0.1)
    assert novelty.embedding_novelty(e, 0.9) == pytest.approx([0.0, 1.0, (0 + to_average) / 2])


# ---- robust z, smoothing, fusion


def test_robust_z_uses_the_median_absolute_deviation():
    x = np.array([1.0, 2.0, 3.0, 4.0, 100.0])  # median 3, deviations 2 1 0 1 97, MAD 1
    assert novelty.robust_z(x) == pytest.approx((x - 3) / 1.4826)


def test_without_a_mad_the_deviation_without_that_zeros():
    spike = np.array([0.0, 0.0, 0.0, 0.0, 5.0])
    assert novelty.robust_z(spike) == pytest.approx(spike / spike.std())
    assert novelty.robust_z(np.full(4, 7.0)).tolist() == [0, 0, 0, 0]
    assert novelty.robust_z(0.3 + np.array([0, 1e-16, -1e-16, 0])).tolist() == [0, 0, 0, 0]


def test_the_moving_average_is_truncated_at_the_ends():
    x = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    assert novelty.moving_average(x, 5) == pytest.approx([2.0, 2.5, 3.0, 4.0, 4.5, 5.0])


def test_smoothing_comes_before_clipping():
    x = np.arange(11.0)
    x[5] = 1000.0
    z = novelty.moving_average(novelty.robust_z(x), 5)
    assert novelty.normalised(x, 5, 4.0) == pytest.approx(np.clip(z, -4, 4))
    assert novelty.normalised(x, 5, 4.0)[5] == 4  # clipped first, the spike would be 4/5 of that


def test_fusion_weights_are_base_times_deviation():
    size = {"colour": 1.0, "motion": 2.0, "embedding": 3.0, "sharpness": 0.0}
    cues = {name: np.array([-value, value]) for name, value in size.items()}
    total = 0.20 * 1 + 0.30 * 2 + 0.35 * 3
    expected = {"colour": 0.2, "motion": 0.6, "embedding": 1.05, "sharpness": 0}
    weights = novelty.fusion_weights(cues, BASE_WEIGHTS)
    assert weights == pytest.approx({name: value / total for name, value in expected.items()})
    # one window covers both points: the mean of −x and x
    assert novelty.fuse(cues, BASE_WEIGHTS, 5) == pytest.approx([0, 0])
    one = novelty.fuse(cues, BASE_WEIGHTS, 1)
    assert one[1] == pytest.approx((0.2 * 1 + 0.6 * 2 + 1.05 * 3) / total)


def test_pooling_takes_the_maximum_of_each_bin():
    times, values = np.array([1.0, 1.2, 1.6, 2.1, 3.0]), np.array([5.0, 7.0, 1.0, 2.0, 9.0])
    centres, pooled = novelty.pool(times, values, 0.5)
    assert centres == pytest.approx([1.25, 1.75, 2.25, 2.75])
    assert pooled == pytest.approx([7.0, 1.0, 2.0, 9.0])
    _, gap = novelty.pool(np.array([0.0, 0.4, 1.4, 2.0]), np.array([1.0, 2.0, 4.0, 6.0]), 0.5)
    assert gap == pytest.approx([2.0, 3.0, 4.0, 6.0])  # nothing in [0.5, 1.0): on the line


def test_long_run_variance_of_two_averages_of_five():
    taps = np.convolve(np.ones(5), np.ones(5))
    assert pytest.approx(taps.sum() ** 2 / (taps**2).sum()) == LONG_RUN


# ---- the heads


def test_pelt_pays_for_each_cut():
    signal = np.array([0.0] * 5 + [1.0] * 5)  # one cut saves 10 · 0.25 = 2.5
    assert changepoint.pelt(signal, 2.4, 2) == [5]
    assert changepoint.pelt(signal, 2.6, 2) == []
    assert changepoint.pelt(signal, 0.1, 6) == []


def test_local_strength_is_a_difference_of_means():
    signal = np.array([1.0, 1.0, 3.0, 7.0, 9.0])
    assert changepoint.local_strength(signal, 3, 2) == pytest.approx(8 - 2)
    assert changepoint.local_strength(signal, 1, 3) == pytest.approx(
        11 / 3 - 1
    )  # clipped to one on the left


def test_shortest_block():
    assert EventPartition().shortest(30) == 4
    assert EventPartition().shortest(600) == 40
    assert EventPartition(**PAPER).shortest(15) == 2


def test_the_checkerboard_is_signed_and_tapered():
    kernel = changepoint.checkerboard(2)
    near, far = math.exp(-(0.5**2) / 2), math.exp(-(1.5**2) / 2)
    assert kernel[0] == pytest.approx([far * far, far * near, -far * near, -far * far])
    assert kernel[1, 2] == pytest.approx(-near * near)
    assert kernel.sum() == pytest.approx(0)


def test_ssm_novelty_is_highest_at_the_change():
    rows = np.array([[1.0, 0.0]] * 4 + [[0.0, 1.0]] * 4)
    similarity = changepoint.gram(rows)
    found = changepoint.ssm_novelty(similarity, 2)
    assert len(found) == 8 - 4 + 1
    positive = changepoint.checkerboard(2).clip(min=0).sum()
    assert found[2] == pytest.approx(positive)  # all within is 1, all across 0
    assert found[0] == pytest.approx(0)
    assert changepoint.ssm_contrast(similarity, 2)[2] == pytest.approx(1)
    assert changepoint.ssm_contrast(similarity, 2)[0] == pytest.approx(0)


def test_of_two_peaks_too_close_the_higher_stays():
    values = np.array([0, 3, 0, 5, 0, 0, 0, 4, 4, 0.0])
    assert changepoint.peaks(values, 3, 0.5) == [3, 7]
    assert changepoint.peaks(values, 2, 0.5) == [1, 3, 7]
    assert changepoint.peaks(values, 2, 0.8) == [3]  # the quantile is 4
    assert changepoint.peaks(np.ones(9), 1, 0.5) == []


def test_segment_cost_is_minus_the_mean_similarity():
    similarity = np.array([[1.0, 0.8, 0.1], [0.8, 1.0, 0.3], [0.1, 0.3, 1.0]])
    cost = changepoint.SegmentCost(similarity)
    assert cost(0, 1) == pytest.approx(-(1 + 1 + 0.8 + 0.8) / 4)
    assert cost(1, 2) == pytest.approx(-2.6 / 4)
    assert cost(0, 2) == pytest.approx(-5.4 / 9)
    assert cost(2, 2) == pytest.approx(-1)


@pytest.mark.parametrize(
    ("penalty", "size", "cuts"),
    [
        (lambda _: 1.49, 1, [3]),
        (lambda _: 1.51, 1, []),
        (lambda cost: 1.3 * abs(cost), 1, [3]),  # λ = 0.65, then 1.3 a side
        (lambda _: 0.0, 4, []),
    ],
)
def test_kts_splits_where_the_gain_is_positive(penalty, size, cuts):
    similarity = changepoint.gram(np.array([[1.0, 0.0]] * 3 + [[0.0, 1.0]] * 3))
    # C(0,5) = −1/2, both sides −1: the gain is 1.5 − λ
    assert changepoint.kts(similarity, penalty, size) == cuts


@pytest.mark.parametrize("seed", range(20))
def test_a_bare_penalty_of_1_4_cannot_cut(seed):
    """With cosines 1 within and x across, the gain is 1.5 − x/2: 1.4 cuts only below x = 0.2."""
    random = np.random.default_rng(seed)
    alike = random.uniform(0.32, 0.42)  # cosine between two events
    events = np.sqrt(alike) * np.eye(5)[0] + np.sqrt(1 - alike) * np.eye(5)[1:]
    rows = np.repeat(events, 15, axis=0) + random.normal(size=(60, 5)) * 0.02
    similarity = changepoint.gram(rows)
    assert similarity.min() > 0.2
    assert changepoint.kts(similarity, lambda _: 1.4, 4) == []
    samples = Samples(np.arange(60.0), rows)
    bare = EventPartition(**{**PAPER, "kts_penalty": "constant"})
    assert all("kts" not in cut.heads for cut in bare(samples, 60.0).cuts)
    ours = EventPartition(max_blocks=15)(samples, 60.0)
    assert any("kts" in cut.heads for cut in ours.cuts)


# ---- merge, suppression, truncation


@pytest.mark.parametrize(
    ("by", "kept"),
    # 97 is too near the end; 12 yields to 18, or as printed stays, since it comes first
    [("strength", [18, 30]), ("time", [12, 30])],
)
def test_suppression_by_strength_and_as_printed(by, kept):
    found = [(5, 1.0), (12, 2.0), (18, 3.0), (30, 0.5), (97, 9.0)]
    cuts = [EventCut(time, strength, ("ssm",)) for time, strength in found]
    assert sorted(cut.time for cut in suppress(cuts, 10, 100, by=by)) == kept


def test_only_the_strongest_cuts_stay():
    rows = np.repeat(np.eye(6), 20, axis=0)
    rows += 0.01 * np.random.default_rng(0).normal(size=rows.shape)
    samples = Samples(np.arange(120.0), rows)
    everything = EventPartition()(samples, 120.0)
    assert [round(cut.time) for cut in everything.cuts] == [20, 40, 60, 80, 100]
    two = EventPartition(max_blocks=3)(samples, 120.0)
    best = sorted(everything.cuts, key=lambda cut: -cut.strength)[:2]
    first, second = sorted(cut.time for cut in best)
    assert two.blocks == [Segment(0, first), Segment(first, second), Segment(second, 120.0)]


def test_strength_as_printed_is_the_step_of_the_fused_signal():
    rule = EventPartition(**PAPER)
    samples = Samples(np.arange(60.0), np.repeat(np.eye(2), [30, 30], axis=0))
    found = rule(samples, 60.0)
    fused = novelty.rounded(novelty.fuse(rule.cues(samples), BASE_WEIGHTS, 5))
    centres, pooled = novelty.pool(novelty.midpoints(samples.times), fused, 1.0)
    window = changepoint.bins_of(rule.shortest(60.0), 1.0)
    assert found.cuts
    for cut in found.cuts:
        place = int(np.argmin(np.abs(centres - cut.time)))
        assert cut.strength == pytest.approx(changepoint.local_strength(pooled, place, window))
