"""VideoDetective beside Algorithms 1 and 2, its equations and its tables."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.detecting import FACETS, FILM, QUESTION, Detectives, SceneFootage, looks, play, scores
from support.talking import TalkingFootage

from longtake.algorithms import lexical, sampling, scene_graph, segmentation
from longtake.errors import ConfigError
from longtake.methods.base import configure
from longtake.methods.videodetective import method as videodetective
from longtake.methods.videodetective import scores as score
from longtake.methods.videodetective.frames import FrameRule
from longtake.methods.videodetective.method import VideoDetective, most_tokens
from longtake.methods.videodetective.plan import described
from longtake.methods.videodetective.scenes import (
    GraphRule,
    Observation,
    ObserveRule,
    SceneText,
    cut_off,
)
from longtake.tracing.events import ScoresSet
from longtake.types import Line, Question, Segment
from longtake_bench.lab.model import LabChat
from longtake_bench.lab.profile import parse

SETTLED = ("nothing", False, "")
SEEN = {n: (f"a {word}", False, "") for n, word in enumerate(FILM)}


def test_line_7_each_facet_begins_with_its_best_scene_and_all_are_looked_at_side_by_side():
    detectives = Detectives(FACETS, SEEN, together=4)
    _, heard = play(detectives, SceneFootage(FILM), method=VideoDetective(base_steps=4))
    assert looks(heard) == [
        ("question", 0, "anchor"),
        ("A", 1, "anchor"),
        ("B", 3, "anchor"),
        ("C", 4, "anchor"),
    ]


def test_anchors_come_in_order_of_score_and_a_taken_one_gives_way_to_the_next_best():
    events = [
        {"start": f"00:00:{at}0", "end": f"00:00:{at}9", "description": what}
        for at, what in [(0, "sea"), (1, "dog"), (2, "tree"), (3, "dog"), (4, "hill")]
    ]
    facets = {"question": ["nothing"], "A": ["dog"], "B": ["dog"], "C": ["car"]}
    detectives = Detectives(facets, dict.fromkeys(range(12), SETTLED), events=events)
    _, heard = play(detectives, SceneFootage(FILM), method=VideoDetective(base_steps=4))
    # A has picture and timeline for scene 3, 0.5 + 0.5; B then has the timeline for scene 1, 0.5
    assert looks(heard)[:2] == [("A", 3, "anchor"), ("B", 1, "anchor")]
    (anchors,) = scores(heard, "anchors")
    assert anchors.values[:2] == (1.0, 0.5)


def test_an_anchor_that_scores_low_is_followed_by_its_facets_next_best_once():
    events = [
        {"start": "00:00:00", "end": "00:00:49", "description": "sea"},
        {"start": "00:00:50", "end": "00:00:59", "description": "cat"},
        {"start": "00:01:00", "end": "00:01:59", "description": "road"},
    ]
    facets = {"question": ["moon"], "A": ["cat"], "B": ["dog"], "C": ["car"]}
    reports = {n: (f"a {FILM[n]}", False, "") for n in (3, 4, 9)}
    # picture and timeline give A these two, at 0.5 each; both show nothing
    reports[1] = reports[5] = ("", True, "")
    _, heard = play(Detectives(facets, reports, events=events), SceneFootage(FILM))
    assert ("A", 1, "anchor") in looks(heard)[:4]
    assert looks(heard)[4] == ("A", 5, "retry")
    assert [why for _, _, why in looks(heard)].count("retry") == 1


TURNS = ["sea", "k", "l", "m", "n", "cat", "p", "q", "r", "s", "dog", "t"]
TWO = Question("Where?", ("cat", "dog"))


@pytest.mark.parametrize(
    ("missing", "steps", "turns"),
    [
        (range(12), 6, [("question", "neighbour"), ("A", "neighbour"), ("B", "neighbour")]),
        # anchors miss something, others do not
        (
            (0, 5, 10),
            8,
            [
                *[("question", "neighbour"), ("A", "neighbour"), ("B", "neighbour")],
                *[("question", "highest belief")] * 2,
            ],
        ),
    ],
)
def test_lines_15_to_17_facets_take_turns_from_their_own_latest_scene_until_nothing_is_missing(
    missing, steps, turns
):
    detectives = Detectives(
        {"question": ["sea"], "A": ["cat"], "B": ["dog"]},
        {n: (f"a {TURNS[n]}", n in missing, "") for n in range(12)},
    )
    method = VideoDetective(base_steps=steps, graph=GraphRule(top=2))
    _, heard = play(detectives, SceneFootage(TURNS), TWO, method)
    by_turn = looks(heard)[3:]
    assert [(facet, why) for facet, _, why in by_turn] == turns
    assert by_turn[1][1] in (4, 6)  # next to the cat, not next to the last scene anybody looked at


@pytest.mark.parametrize(
    ("question", "missing", "why"),
    [(["sea"], "moon", "missing keyword"), (["sea", "moon"], "", "highest belief")],
)
def test_without_unvisited_neighbours_the_missing_keyword_says_where_to_look_else_belief(
    question, missing, why
):
    film = ["sea", "cat", "a", "b", "c", "d", "moon", "e"]
    reports = {0: ("a sea", True, missing), 1: ("a cat", False, ""), 6: ("a moon", False, "")}
    facets = {"question": question, "A": ["cat"], "B": ["cat"]}
    rule = GraphRule(tau=1e-3, alpha=0.0)  # no edges at all
    method = VideoDetective(base_steps=5, graph=rule, fallback=False)
    _, heard = play(Detectives(facets, reports), SceneFootage(film), TWO, method)
    assert ("question", 6, why) in looks(heard)


def test_case_b_when_nothing_is_missing_the_highest_belief_is_looked_at_with_the_general_query():
    detectives = Detectives(FACETS, SEEN)
    _, heard = play(detectives, SceneFootage(FILM))
    after = looks(heard)[4:]
    assert len(after) == 6
    assert {(facet, why) for facet, _, why in after} == {("question", "highest belief")}
    assert (
        "sea" in detectives.prompts["observe"][-1].split("Look for these:")[1].split("And for")[0]
    )
    fields = [np.array(s.values) for s in scores(heard, "belief")]
    visited = [scene for _, scene, _ in looks(heard)]
    for t, scene in enumerate(visited[4:], start=4):  # eq. 7 on the belief of the step before
        open_ = [n for n in range(12) if n not in visited[:t]]
        assert scene == max(open_, key=lambda n, t=t: (fields[t][n], -n))


@pytest.mark.parametrize("iterations", [1, 7])
def test_lines_23_and_24_scores_are_injected_and_diffused_one_by_one_from_the_last_belief(
    iterations,
):
    detectives = Detectives(FACETS, SEEN)
    rule = GraphRule(iterations=iterations)
    _, heard = play(detectives, SceneFootage(FILM), method=VideoDetective(graph=rule))
    fields = [np.array(s.values) for s in scores(heard, "belief")]
    seen = scores(heard, "observed")
    assert len(fields) == 1 + len(seen) == 11
    film = videodetective.build_graph(SceneFootage(FILM), GraphRule())
    prior = np.array([1, 1, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0], float)
    assert fields[0] == pytest.approx(prior)  # Y⁰: the keyword's cosine
    injected, field = prior.copy(), prior
    for t, one in enumerate(seen, start=1):
        injected[film.segments.index(one.segments[0])] = one.values[0]
        field = videodetective.scene_graph.diffuse(
            film.spreading, injected, field, steps=iterations
        )
        assert fields[t] == pytest.approx(field, abs=1e-3)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_lines_9_and_10_the_search_ends_when_all_is_visited(count):
    detectives = Detectives(FACETS)
    result, _ = play(detectives, SceneFootage(FILM[:count]))
    assert sorted(detectives.observed) == list(range(count))
    assert result.answer.choice == "A"


@pytest.mark.parametrize(("options", "steps"), [(0, 10), (2, 10), (4, 10), (6, 12), (26, 32)])
def test_ten_steps_and_one_more_for_each_option_beyond_four(options, steps):
    words = [f"w{n}" for n in range(60)]
    question = Question("Where?", tuple(words[:options]))
    detectives = Detectives(
        {"question": ["w59"], **{c: [w] for c, w in zip(question.letters, words, strict=False)}}
    )
    play(detectives, SceneFootage(words), question)
    assert len(detectives.observed) == steps


@given(
    st.integers(1, 15),
    st.sampled_from([0, 2, 3, 4, 7]),
    st.integers(1, 12),
    st.randoms(use_true_random=False),
    st.booleans(),
    st.booleans(),
)
def test_no_scene_is_looked_at_twice_and_never_more_than_the_budget(
    count, options, base, chance, refine, spread
):
    film = [f"w{n}" for n in range(count)]
    words = [f"w{chance.randrange(count)}" for _ in range(8)]
    question = Question("Where?", tuple(f"{w} {n}" for n, w in enumerate(words[:options])))
    facets = {
        "question": words[-1:],
        **{c: [w] for c, w in zip(question.letters, words, strict=False)},
    }
    reports = {
        n: (chance.choice(["", film[n]]), chance.random() < 0.7, chance.choice(["", words[0]]))
        for n in range(count)
    }
    detectives = Detectives(facets, reports)
    method = VideoDetective(base_steps=base, refinement=refine, propagation=spread)
    _result, _ = play(detectives, SceneFootage(film), question, method)
    assert len(detectives.observed) == len(set(detectives.observed)) <= method.steps(question)
    assert [len(times) for times in detectives.shown["answer"]] == [min(32, count * 10)]
    if refine:
        assert len(detectives.observed) == min(count, method.steps(question))


def test_results_do_not_depend_on_which_thread_comes_first(monkeypatch):
    def told(heard):
        return [(e.label, e.values, e.segments) for e in heard.of(ScoresSet)]

    reports = {n: (f"a {FILM[n]} {FILM[n - 1]}", n % 3 == 0, FILM[n - 5]) for n in range(12)}
    first, before = play(Detectives(FACETS, reports), SceneFootage(FILM))
    backwards = lambda act, items: [act(item) for item in reversed(list(items))][::-1]  # noqa: E731
    monkeypatch.setattr(videodetective, "fanout", backwards)
    second, after = play(Detectives(FACETS, reports), SceneFootage(FILM))
    assert first.answer == second.answer
    assert told(before) == told(after)


def test_frames_of_the_film_that_resemble_nothing_are_cut_by_quantile():
    footage = SceneFootage(FILM)
    footage.encoder.thresholds.clear()
    assert len(videodetective.build_graph(footage, GraphRule(quantile=0.0))) == 1
    assert len(videodetective.build_graph(footage, GraphRule(quantile=0.2))) == 12


def test_the_printed_prior_is_also_where_belief_begins():
    events = [{"start": "00:00:50", "end": "00:00:59", "description": "cat"}]
    printed = VideoDetective(printed_prior=True)
    _, heard = play(Detectives(FACETS, events=events), SceneFootage(FILM), method=printed)
    assert scores(heard, "belief")[0].values[:2] == (
        0.5,
        1.0,
    )  # 0.5 · keyword + 0.5 · event, best facet
    assert np.allclose(scores(heard, "belief")[0].values[5], 0.5)


E1, E2, E3 = math.exp(-1), math.exp(-2), math.exp(-3)
VECTORS = np.array([[1.0, 0.0], [0.6, 0.8], [-1.0, 0.0]])
CENTRES = np.array([0.0, 30.0, 90.0])


# ==== equations and Algorithm 2, with numbers computed by hand


def matrix(entries, count):
    weights = np.zeros((count, count))
    for (i, j), w in entries.items():
        weights[i, j] = weights[j, i] = w
    return weights


def limit(weights, injected, beta=0.6):
    """B.1: F* = (1 − β)(I − βW)⁻¹Y."""
    return (1 - beta) * np.linalg.solve(np.eye(len(injected)) - beta * weights, injected)


@st.composite
def graphs(draw):
    count = draw(st.integers(1, 40))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rows = random.normal(size=(count, 3))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    times = np.sort(random.uniform(0, draw(st.sampled_from([1.0, 100.0, 1e6])), count))
    alpha, top = draw(st.sampled_from([0.0, 0.6, 1.0])), draw(st.integers(1, 8))
    return scene_graph.affinity(rows, times, alpha=alpha, top=top), random


def test_equation_1_visual_affinity_is_the_cosine_without_its_negative_part():
    assert scene_graph.visual(VECTORS) == pytest.approx(
        np.array([[1, 0.6, 0], [0.6, 1, 0], [0, 0, 1]])
    )


def test_equation_2_temporal_affinity_fades_with_distance_over_tau():
    assert scene_graph.temporal(CENTRES, 30.0) == pytest.approx(
        np.array([[1, E1, E3], [E1, 1, E2], [E3, E2, 1]])
    )


def test_fusion_sparsification_and_symmetry():
    one = scene_graph.affinity(VECTORS, CENTRES, top=1)
    strong, weak = 0.6 * 0.6 + 0.4 * E1, 0.4 * E2
    # 0 and 1 choose each other; 2 chooses 1, which does not choose it back: half of that edge stays
    assert one == pytest.approx(np.array([[0, strong, 0], [strong, 0, weak / 2], [0, weak / 2, 0]]))
    full = scene_graph.affinity(VECTORS, CENTRES, top=8)
    assert full == pytest.approx(
        np.array([[0, strong, 0.4 * E3], [strong, 0, weak], [0.4 * E3, weak, 0]])
    )


def test_of_equally_strong_edges_those_further_left_are_kept():
    kept = scene_graph.strongest(
        np.array([[0.0, 0.5, 0.5, 0.5, 0.9], [0.0, 0.0, 0.0, 0.1, 0.0]]), 2
    )
    assert kept.tolist() == [[False, True, False, False, True], [False, False, False, True, False]]


def test_equation_3_symmetric_normalisation():
    normal = scene_graph.normalise(matrix({(0, 1): 4.0, (1, 2): 5.0}, 3))
    expected = np.array(
        [[0, 4 / math.sqrt(4 * 9), 0], [4 / 6, 0, 5 / math.sqrt(9 * 5)], [0, 5 / math.sqrt(45), 0]]
    )
    assert normal == pytest.approx(expected)


def test_a_scene_without_edges_divides_nothing_by_zero():
    normal = scene_graph.normalise(matrix({(0, 1): 1.0}, 3))
    assert normal == pytest.approx(np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]]))
    belief = scene_graph.diffuse(normal, np.array([0.0, 0.0, 1.0]), np.zeros(3), steps=100)
    assert belief == pytest.approx([0, 0, 0.4])


@given(graphs())
def test_no_eigenvalue_exceeds_one(made):
    weights, _ = made
    values = np.linalg.eigvalsh(scene_graph.normalise(weights))
    assert np.abs(values).max() <= 1 + 1e-12


def test_equation_13_two_steps_by_hand():
    pair = matrix({(0, 1): 1.0}, 2)
    injected = np.array([1.0, 0.0])
    assert scene_graph.diffuse(pair, injected, injected, steps=1) == pytest.approx([0.4, 0.6])
    assert scene_graph.diffuse(pair, injected, injected, steps=2) == pytest.approx([0.76, 0.24])


@given(graphs())
def test_diffusion_goes_to_the_closed_form_and_seven_steps_keep_the_bound(made):
    weights, random = made
    normal = scene_graph.normalise(weights)
    injected, start = random.random(len(normal)), random.random(len(normal))
    settled = limit(normal, injected)
    assert scene_graph.diffuse(normal, injected, start, steps=60) == pytest.approx(
        settled, abs=1e-8
    )
    seven = scene_graph.diffuse(normal, injected, start)
    assert np.linalg.norm(seven - settled) <= 0.6**7 * np.linalg.norm(start - settled) + 1e-12


def test_equation_12_the_limit_is_where_the_cost_is_least():
    normal = scene_graph.normalise(matrix({(0, 1): 1.0, (1, 2): 2.0}, 3))
    injected = np.array([0.9, 0.0, 0.2])
    mu = 0.6 / (1 - 0.6)

    def cost(belief):
        return np.sum((belief - injected) ** 2) + mu * belief @ (np.eye(3) - normal) @ belief

    settled = scene_graph.diffuse(normal, injected, injected, steps=200)
    assert all(
        cost(settled) <= cost(settled + nudge)
        for nudge in 1e-3 * np.vstack([np.eye(3), -np.eye(3)])
    )


def test_equation_5_as_printed_and_with_both_parts_on_one_scale():
    keyword = np.array([[0.2, -0.1, 0.05], [0.0, 0.3, 0.1]])
    event = np.array([[0.5, 0.9, 0.7], [0.4, 0.4, 0.4]])
    assert score.prior(keyword, event, printed=True) == pytest.approx(
        np.array([[0.35, 0.4, 0.375], [0.2, 0.35, 0.25]])
    )
    # −0.1 counts as 0; 0.5, 0.9, 0.7 are 0, 1, 0.5; equal cosines stay
    assert score.prior(keyword, event) == pytest.approx(
        np.array([[0.1, 0.5, 0.275], [0.2, 0.35, 0.25]])
    )
    assert score.prior(keyword, event, weight=1.0)[1] == pytest.approx([0.0, 0.3, 0.1])


def test_equation_6_the_unvisited_neighbour_of_highest_weight_times_belief():
    weights = matrix({(0, 1): 0.9, (0, 2): 0.5, (0, 3): 0.4, (3, 4): 1.0}, 5)
    belief = np.array([1.0, 0.1, 0.3, 0.3, 1.0])
    open_ = np.array([False, True, True, True, True])
    assert (
        scene_graph.strongest_neighbour(weights, 0, belief, open_) == 2
    )  # 0.09, 0.15, 0.12; 4 is no neighbour
    open_[2] = False
    assert scene_graph.strongest_neighbour(weights, 0, belief, open_) == 3
    open_[[1, 3]] = False
    assert scene_graph.strongest_neighbour(weights, 0, belief, open_) is None


def test_equation_7_the_unvisited_scene_of_highest_belief():
    belief = np.array([0.9, 0.2, 0.5])
    assert scene_graph.most_believed(belief, np.array([False, True, True])) == 2
    assert (
        scene_graph.most_believed(-belief, np.array([True, True, False])) == 1
    )  # also where belief is negative
    assert scene_graph.most_believed(belief, np.zeros(3, bool)) is None


def test_equation_8_the_weights_of_shared_lemmas_over_z():
    harbour, teapot = lexical.idf("harbour"), lexical.idf("teapot")
    assert harbour == pytest.approx((9 - 3.98) / 4)  # zipf 3.98 in the table
    text = lexical.lemmas(["[00:01:10] The teapots stood at the harbour, at the HARBOUR."])
    keywords = lexical.lemmas(["a teapot at the harbour", "harbours", "a ship"])
    assert lexical.overlap(text, keywords) == pytest.approx((harbour + teapot) / 3)
    assert lexical.overlap(text, keywords, z=1.0) == 1.0
    assert lexical.overlap(text, frozenset()) == 0.0


def test_idf_is_clipped_and_unknown_words_count_one_and_a_half():
    assert lexical.idf("the") == pytest.approx((9 - 7.73) / 4)
    assert lexical.idf("qzxvkj") == 1.5
    assert lexical.idf("floccinaucinihilipilification") <= 2.0


def test_words_are_lower_case_lemmas_without_stop_words_and_times():
    assert lexical.lemmas(
        ["[00:12:31] What does the Children’s dog do while washing 42 cups?"]
    ) == {"child", "dog", "wash", "42", "cup"}
    assert lexical.content_words("Which of these is the red car, the RED one?") == ["red", "car"]


def test_equation_9_the_highest_cosine_over_pieces_and_queries():
    text, queries = np.array([[1.0, 0.0], [0.6, 0.8]]), np.array([[0.0, 1.0], [-1.0, 0.0]])
    assert score.semantic(text, queries) == pytest.approx(0.8)
    assert score.semantic(text, np.zeros((0, 2))) == 0.0


def test_long_texts_are_compared_in_pieces_of_fifty_words():
    words = [f"w{n}" for n in range(120)]
    assert [len(piece.split()) for piece in score.pieces(" ".join(words))] == [50, 50, 20]
    assert score.pieces("  ") == []


@pytest.mark.parametrize(
    ("weight", "expected"), [(0.7, 0.7 * 0.9 + 0.3 * 0.4), (0.5, 0.65), (0.3, 0.3 * 0.9 + 0.28)]
)
def test_equation_10_lexical_and_semantic_by_source(weight, expected):
    assert score.source_aware(0.9, 0.4, weight) == pytest.approx(expected)
    assert score.source_aware(0.0, -0.5, weight) == 0.0


def test_equations_11_and_14_the_maximum_over_sources_and_facets_and_its_text():
    seen = Observation(
        0, (SceneText("caption", "a cat", (0.2, 0.5)), SceneText("onscreen", "CATS", (0.6, 0.1)))
    )
    assert seen.score == 0.6
    assert seen.best is not None
    assert seen.best.source == "onscreen"
    assert seen.best_for(1).source == "caption"
    assert Observation(0, ()).score == 0.0


def test_algorithm_2_by_hand():
    weights = matrix({(0, 1): 1.0, (1, 2): 1.0, (3, 4): 1.0}, 6)
    belief = np.array([0.9, 0.8, 0.5, 0.3, 0.2, 0.0])
    channels = np.array([[0.1, 0.1, 0.1, 0.9, 0.1, 0.1], [0.0, 0.0, 0.0, 0.9, 0.0, 0.0]])
    # both facets: scene 3; then 0 (1 is damped to 0.16), 2, 4, then 1; 5 has no belief
    assert scene_graph.graph_nms(belief, channels, weights) == [3, 0, 2, 4, 1]
    assert scene_graph.graph_nms(belief, channels, weights, max_scenes=3) == [3, 0, 2]
    assert scene_graph.graph_nms(belief, channels, weights, max_scenes=3, eta=1.0) == [3, 0, 1]


def test_more_facets_than_packages_keep_the_highest():
    belief = np.array([0.9, 0.5, 0.8])
    assert scene_graph.graph_nms(belief, np.eye(3), matrix({}, 3), max_scenes=2) == [0, 2]


@given(graphs(), st.integers(1, 6), st.integers(1, 8))
def test_graph_nms_keeps_one_scene_per_facet_and_never_too_many(made, facets, most):
    weights, random = made
    count = len(weights)
    belief, channels = random.random(count), random.random((facets, count))
    chosen = scene_graph.graph_nms(belief, channels, weights, max_scenes=most)
    assert len(chosen) == len(set(chosen)) <= most
    best = [int((row * belief).argmax()) for row in channels]
    if len(set(best)) <= most:
        assert set(best) <= set(chosen)
        assert len(chosen) == min(most, count)


@pytest.mark.parametrize("count", [1, 2])
def test_one_and_two_scenes(count):
    weights = scene_graph.affinity(VECTORS[:count], CENTRES[:count])
    normal = scene_graph.normalise(weights)
    belief = scene_graph.diffuse(normal, np.ones(count), np.ones(count))
    assert belief == pytest.approx([0.4] if count == 1 else [1.0, 1.0])
    assert sorted(scene_graph.graph_nms(belief, np.ones((3, count)), weights)) == list(range(count))


def film(*lengths):
    """Scenes of these lengths, each on its own axis."""
    return np.repeat(np.eye(len(lengths), dtype=np.float32), lengths, axis=0)


def test_scenes_end_where_neighbours_stop_resembling_each_other():
    assert segmentation.scenes(film(20, 12, 15), 0.82) == [(0, 20), (20, 32), (32, 47)]
    assert segmentation.scenes(film(20), 0.82) == [(0, 20)]
    assert segmentation.scenes(film(3), 0.82) == [(0, 3)]  # nothing to merge with
    assert segmentation.scenes(np.zeros((0, 4), np.float32), 0.82) == []


def test_short_scenes_merge_in_passes_with_the_neighbour_they_resemble_more():
    rows = film(20, 4, 20, 3, 3, 3)
    rows[20:24] = [0.1, 0.8, 0.6, 0, 0, 0]  # closer to the third than to the first
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    # the last three resemble nothing and stay
    expected = [(0, 20), (20, 44), (44, 47), (47, 50), (50, 53)]
    assert segmentation.scenes(rows, 0.82) == expected


@pytest.mark.parametrize(("likeness", "joined"), [("product", (10, 22)), ("cosine", (0, 12))])
def test_means_are_compared_by_their_product_or_their_cosine(likeness, joined):
    # a long scene of two looks, a short piece like both, a scene of one look that is less like it
    rows = np.repeat([[1, 0, 0], [0, 1, 0], [0.5, 0.5, 0.7], [0, 0, 1]], [5, 5, 2, 10], axis=0)
    spans = [(0, 10), (10, 12), (12, 22)]
    assert joined in segmentation.merge_short(rows, spans, 5, likeness)


@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=20), st.integers(1, 12), st.integers(24, 60)
)
def test_scenes_cover_the_film_and_keep_their_bounds(lengths, shortest, longest):
    found = segmentation.scenes(film(*lengths), 0.5, shortest=shortest, longest=longest)
    assert found[0][0] == 0
    assert found[-1][1] == sum(lengths)
    assert all(a[1] == b[0] for a, b in itertools.pairwise(found))
    assert all(b - a <= longest for a, b in found)


def test_a_long_scene_is_divided_at_its_lowest_cosine_and_a_still_one_in_the_middle():
    steps = np.full(199, 0.95)
    steps[69] = 0.9
    assert segmentation.split_long(steps, (0, 200), 10, 140) == [(0, 70), (70, 200)]
    assert segmentation.split_long(np.ones(199), (0, 200), 10, 120) == [(0, 100), (100, 200)]


def test_a_scenes_vector_is_the_unit_mean_of_its_frames():
    rows = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]], np.float32)
    assert segmentation.scene_vectors(rows, [(0, 2), (2, 3)]) == pytest.approx(
        np.array([[math.sqrt(0.5)] * 2, [0.0, 1.0]])
    )


@pytest.mark.parametrize(
    ("scores", "why"),
    [
        ([0.39, 0.1], "no score reaches"),
        ([0.5, 0.0, 0.0, 0.05], "on average"),
        ([0.6, 0.5, 0.55], "stands out"),
        ([0.9, 0.19, 0.19, 0.19, 0.19], "more than 70%"),
        ([], "nothing was observed"),
        ([0.9, 0.5, 0.3], None),
    ],
)
def test_scores_that_tell_nothing_apart(scores, why):
    told = score.distrust(scores)
    assert told is None if why is None else why in told


# ==== observations, the final call and replies (3.3.2, 3.4, C to E)


@pytest.mark.parametrize("length", [30, 5])
def test_a_look_at_a_scene_is_nine_frames_spread_over_it_or_all_of_them(length):
    detectives = Detectives(FACETS, length=length)
    method = VideoDetective(graph=GraphRule(min_frames=5))
    play(detectives, SceneFootage(["sea", "cat"], length=length), method=method)
    first = sampling.uniform(length, 9)
    assert sorted(detectives.shown["observe"]) == [first.tolist(), (first + length).tolist()]


def lines(*found):
    return [Line(Segment(start, end), text) for start, end, text in found]


@pytest.mark.parametrize(
    ("channels", "told"),
    [
        ({}, "read on screen: [00:00:00] FIRST [00:00:05] MIDDLE [00:00:09] LAST\n"),
        ({"onscreen": False}, "heard: [00:00:02] all about cars\n"),
        ({"onscreen": False, "speech": False}, "seen: a car\n"),
    ],
)
def test_text_is_read_in_the_first_middle_and_last_frame_and_speech_is_that_of_the_scene(
    channels, told
):
    read = lines(
        (0, 1, "FIRST"), (3, 4, "UNSEEN"), (5, 6, "MIDDLE"), (9, 10, "LAST"), (9, 10, "EXI")
    )
    said = lines((2, 4, "all about cars"), (12, 14, "of another scene"))
    footage = SceneFootage(["sea"], onscreen=read, speech=said)
    keywords = ["sea"] if channels else ["first", "middle", "last"]
    seen = "" if channels.get("speech", True) else "a car"
    detectives = Detectives({"question": keywords, "A": ["car"]}, {0: (seen, False, "")})
    method = VideoDetective(fallback=False, looking=ObserveRule(**channels))
    play(detectives, footage, method=method)
    assert told in detectives.prompts["answer"][0]


def test_equation_14_a_scene_gives_its_best_text_or_all_of_them_where_so_set():
    read, said = lines((0, 10, "CAT FOOD")), lines((0, 10, "a cat sings"))
    footage = SceneFootage(["cat"], onscreen=read, speech=said)
    facets = {"question": ["cat", "food"], "A": ["cat"]}
    for texts, sources in [
        ("best", ["read on screen"]),
        ("all", ["heard", "read on screen", "seen"]),
    ]:
        detectives = Detectives(facets, {0: ("a tree", False, "")})
        play(detectives, footage, method=VideoDetective(package_texts=texts))
        notes = [
            line
            for line in detectives.prompts["answer"][0].splitlines()
            if line.startswith("00:00:00 to")
        ]
        assert sorted(line.split(", ")[1].split(":")[0] for line in notes) == sources


@pytest.mark.parametrize(
    ("caption", "said", "weight"),
    # a time before a line does not count
    [("cat tree", (), 0.3), ("", ((0, 4, "cat"), (4, 8, "tree")), 0.5)],
)
def test_e_5_and_equation_9_one_sources_score_by_hand(caption, said, weight):
    facets = {"question": ["cat"], "A": ["dog"], "B": ["dog"]}
    footage = SceneFootage(["cat", "tree"], speech=lines(*said))
    question = Question("Where?", ("dog", "tree"))
    _, heard = play(Detectives(facets, {0: (caption, True, "")}), footage, question)
    places = [noted.data["scene"] for noted in heard.notes("observed")]
    observed = scores(heard, "observed")[places.index(0)]
    # λ · IDF(cat) / 3 + (1 − λ) · cos((1, 1)/√2, (1, 0))
    expected = weight * lexical.idf("cat") / 3 + (1 - weight) / np.sqrt(2)
    assert observed.values[0] == pytest.approx(expected, abs=1e-4)
    assert lexical.untimed("[00:00:00] cat [1:02] tree [x]") == "cat tree [x]"


def test_line_26_packages_are_in_time_order_with_best_text_and_the_answer_cites_them():
    detectives = Detectives(FACETS, SEEN, choice="B")
    result, heard = play(detectives, SceneFootage(FILM), method=VideoDetective(fallback=False))
    (selected,) = scores(heard, "selected")
    assert len(selected.segments) == 8
    assert {Segment(0, 10), Segment(10, 20), Segment(30, 40), Segment(40, 50)} <= set(
        selected.segments
    )
    notes = [line for line in detectives.prompts["answer"][0].splitlines() if ", seen: " in line]
    assert notes == sorted(notes)
    assert "00:00:30 to 00:00:40, seen: a dog" in notes
    assert (result.answer.choice, result.answer.text) == ("B", "dog")
    assert [e.source for e in result.answer.evidence] == ["caption"] * 3
    assert all(e.text == f"a {FILM[int(e.segment.start // 10)]}" for e in result.answer.evidence)
    assert [e.segment for e in result.answer.evidence] == sorted(
        e.segment for e in result.answer.evidence
    )


@pytest.mark.parametrize(
    ("text", "uniform"),
    [("Where is it?", 4), ("How many are there?", 16), ("What comes after?", 12)],
)
def test_more_frames_are_spread_over_the_film_for_counting_order_text_and_speech(text, uniform):
    question = Question(text, QUESTION.options)
    assert VideoDetective().uniform_frames(question) == uniform
    assert VideoDetective(frames=10).uniform_frames(question) == 4
    assert VideoDetective(frames=8).uniform_frames(question) == 4
    assert VideoDetective(frames=20).uniform_frames(question) == min(uniform, 12)
    printed = configure(VideoDetective, {"preset": "paper"})
    assert printed.uniform_frames(question) == 4


def test_if_scores_distinguish_nothing_frames_are_uniform_and_observed_scenes_keep_their_texts():
    reports = dict.fromkeys(range(12), ("a cat", True, ""))
    detectives = Detectives(FACETS, reports)
    _, heard = play(detectives, SceneFootage(FILM))
    assert "stands out" in heard.notes("fallback")[0].data["why"]
    assert detectives.shown["answer"][0] == sampling.uniform(120, 32).tolist()
    assert detectives.prompts["answer"][0].count(", seen: a cat") == 10
    _, heard = play(
        Detectives(FACETS, reports), SceneFootage(FILM), method=VideoDetective(fallback=False)
    )
    assert not heard.notes("fallback")


def test_an_encoders_card_sets_thresholds_on_its_own_scale():
    footage = SceneFootage(FILM)
    footage.encoder.thresholds |= {"fallback_gap": -1.0, "fallback_max": 0.1}
    _, heard = play(Detectives(FACETS, dict.fromkeys(range(12), ("a cat", True, ""))), footage)
    assert not heard.notes("fallback")


def test_roles_are_apart():
    detectives = Detectives(FACETS)
    play(detectives, SceneFootage(FILM))
    assert [step for step in detectives.steps if step.startswith("llm")] == ["llm decompose"]
    assert {step for step in detectives.steps if step.startswith("vlm")} == {
        "vlm timeline",
        "vlm observe",
        "vlm answer",
    }
    assert set(detectives.steps[:2]) == {"llm decompose", "vlm timeline"}


def test_the_timeline_describes_scenes_by_overlap_else_by_the_nearest_middle():
    events = lines((0, 15, "one"), (12, 20, "two"), (55, 55, "moment"))
    scenes = [Segment(0, 10), Segment(10, 20), Segment(20, 30), Segment(50, 60)]
    assert described(events, scenes) == ["one", "one two", "two", "moment"]
    assert described([], scenes) == [""] * 4


def test_events_that_cannot_be_placed_are_dropped_with_a_note():
    events = [
        {"start": "soon", "end": "later", "description": "x"},
        {"start": 99999, "end": 99999, "description": "x"},
        {"start": 12, "end": 5, "description": "dog"},
    ]
    _, heard = play(Detectives(FACETS, events=events), SceneFootage(FILM))
    assert len(heard.notes("event_dropped")) == 2


@pytest.mark.parametrize(
    ("given", "found"),
    [
        # without parts, an option's own words; letters may be texts
        (
            {"question": [], "dog": ["tree"], "C": []},
            [[[], ["Where is it?"]], [["cat"]] * 2, [["tree"]] * 2, [["car"]] * 2],
        ),
        # without letters, by their place
        (
            {"question": ["sea"], "first": ["tree"], "second": ["hill"], "third": ["lake"]},
            [[["sea"]] * 2, [["tree"]] * 2, [["hill"]] * 2, [["lake"]] * 2],
        ),
    ],
)
def test_parts_belong_to_options_by_letter_text_or_place(given, found):
    _, heard = play(Detectives(given), SceneFootage(FILM))
    (noted,) = heard.notes("facets")
    assert noted.data["facets"] == dict(zip(("question", *"ABC"), found, strict=True))


def test_an_unreadable_decomposition_is_the_words_of_question_and_options():
    _, heard = play(
        Detectives(mute=["decompose"]),
        SceneFootage(FILM),
        Question("Where is the moon?", ("cat", "dog")),
    )
    assert heard.notes("facets")[0].data["facets"] == {
        "question": [["moon"], ["Where is the moon?"]],
        "A": [["cat"], ["cat"]],
        "B": [["dog"], ["dog"]],
    }
    assert heard.notes("default_taken")


def test_unreadable_replies_show_nothing_need_more_and_are_no_answer():
    mute = Detectives(FACETS, mute=["timeline", "observe", "answer"])
    result, heard = play(mute, SceneFootage(FILM))
    assert (result.answer.status, result.answer.evidence) == ("abstained", ())
    assert all(n.data["needs_more"] and n.data["score"] == 0.0 for n in heard.notes("observed"))
    assert len(heard.notes("default_taken")) == 12


def test_open_ended_questions_have_a_facet_for_each_group_and_are_answered_in_words():
    facets = {"question": ["sea"], "1": ["dog"], "2": ["sea"], "3": ["dog"], "4": ["car"]}
    detectives = Detectives(facets, choice="A big dog.")
    result, heard = play(detectives, SceneFootage(FILM), Question("What is there?"))
    # the same is said once
    assert [*heard.notes("facets")[0].data["facets"]] == ["question", "1", "4"]
    assert (result.answer.choice, result.answer.text) == (None, "A big dog.")


def test_which_is_not_questions_tell_what_was_found_for_each_option():
    question = Question("Which of these is NOT shown?", ("cat", "dog", "car"))
    reports = {1: ("a cat", False, ""), 3: ("a dog", False, "")}
    detectives = Detectives(FACETS, reports)
    play(detectives, SceneFootage(FILM), question)
    (prompt,) = detectives.prompts["answer"]
    assert "Option A: 00:00:10 to 00:00:20, seen: a cat" in prompt
    assert "Option B: 00:00:30 to 00:00:40, seen: a dog" in prompt
    assert "\nOption C: " in prompt
    assert "NOT true" in prompt
    detectives = Detectives(FACETS, reports)
    play(detectives, SceneFootage(FILM), question, VideoDetective(option_packs=False))
    assert "Option A: " not in detectives.prompts["answer"][0]


def test_a_question_that_names_its_place_is_searched_there():
    question = Question("What is there in the first half of the film?", QUESTION.options)
    detectives = Detectives(FACETS)
    play(detectives, SceneFootage(FILM), question)
    assert max(detectives.observed) == 5
    assert max(detectives.shown["answer"][0]) < 60
    assert max(detectives.shown["timeline"][0]) < 60
    detectives = Detectives(FACETS)
    play(detectives, SceneFootage(FILM), question, VideoDetective(temporal_scope=False))
    assert max(detectives.shown["answer"][0]) > 60


@pytest.mark.parametrize(
    ("question", "options"), [("Where is it?", "cat dog car"), ("Which is NOT shown?", "dog cat")]
)
def test_a_spent_budget_gives_the_option_with_the_best_evidence_so_far(question, options):
    facets = {"question": [], **dict(zip("ABC", map(str.split, options.split()), strict=False))}
    asked = Question(question, tuple(options.split()))
    detectives = Detectives(facets, {3: ("a dog", True, "")})
    result, _ = play(detectives, SceneFootage(FILM), asked, calls=8)
    assert (result.answer.choice, result.answer.status) == ("B", "budget_spent")


# ==== ablations (table 3), captions alone, defaults and presets


def test_table_3_without_propagation_belief_is_what_is_known_of_the_scene_itself():
    _, heard = play(
        Detectives(FACETS, {3: ("a dog", True, "")}),
        SceneFootage(FILM),
        method=VideoDetective(propagation=False),
    )
    last, seen = scores(heard, "belief")[-1], scores(heard, "observed")
    prior = [1.0, 1.0, 0.0, 1.0, 1.0, *[0.0] * 7]
    known = {s.segments[0]: s.values[0] for s in seen}
    assert last.values == pytest.approx(
        [known.get(s, p) for s, p in zip(last.segments, prior, strict=True)]
    )


def test_table_3_without_facets_the_question_is_the_only_one_and_nobody_is_asked():
    detectives = Detectives(FACETS)
    method = VideoDetective(decomposition=False, refinement=False)
    play(detectives, SceneFootage(FILM), method=method)
    assert detectives.steps == ["vlm timeline", "vlm observe", "vlm answer"]


def test_table_3_without_refinement_each_facet_is_looked_for_once():
    detectives = Detectives(FACETS)
    play(detectives, SceneFootage(FILM), method=VideoDetective(refinement=False))
    assert len(detectives.observed) == 4


def test_table_3_without_textual_evidence_the_final_call_sees_frames_alone():
    with_text, without = Detectives(FACETS, SEEN), Detectives(FACETS, SEEN)
    play(with_text, SceneFootage(FILM))
    result, _ = play(without, SceneFootage(FILM), method=VideoDetective(textual_evidence=False))
    assert "seen: a dog" in with_text.prompts["answer"][0]
    assert "seen: a dog" not in without.prompts["answer"][0]
    assert {e.source for e in result.answer.evidence} == {"frame"}
    assert with_text.shown["answer"] == without.shown["answer"]


def test_table_3_without_optimized_sampling_frames_are_uniform_and_texts_the_same():
    ours, plain = Detectives(FACETS, SEEN), Detectives(FACETS, SEEN)
    play(ours, SceneFootage(FILM), method=VideoDetective(fallback=False))
    play(plain, SceneFootage(FILM), method=VideoDetective(fallback=False, optimized_sampling=False))
    assert plain.shown["answer"] == [sampling.uniform(120, 32).tolist()]
    assert ours.shown["answer"] != plain.shown["answer"]
    assert [p for p in ours.prompts["answer"][0].splitlines() if "seen:" in p] == [
        p for p in plain.prompts["answer"][0].splitlines() if "seen:" in p
    ]


def test_captions_alone_are_looked_at_as_words():
    footage = TalkingFootage([("cat", 20), ("dog", 20), ("car", 20)])
    footage.encoder.thresholds["scene"] = 0.5
    readers = Detectives(FACETS, {-1: ("a cat", False, "")})
    result, _ = play(readers, footage)
    assert result.usage.frames == 0
    assert "[00:00:00] a cat at 0" in readers.prompts["answer"][0]


def test_released_is_the_printed_graph_and_presets_are_known_by_name():
    fields = {"preset": "released", "graph": {"top": 4}}
    assert configure(VideoDetective, fields).graph.theta_sim == 0.82
    with pytest.raises(ConfigError, match="unknown preset"):
        configure(VideoDetective, {"preset": "printed"})


def test_replies_are_no_longer_than_an_eighth_of_what_the_model_holds():
    chat = LabChat(parse("acuity=0.8,context=4096"))
    assert most_tokens(chat, 4096) == 512
    assert most_tokens(LabChat(parse("acuity=0.8")), 4096) == 4096


@pytest.mark.parametrize(
    "name", ["retry_below", "fallback_max", "fallback_mean", "fallback_gap", "fallback_low"]
)
def test_what_is_set_overrides_the_encoders_card_which_overrides_the_default(name):
    footage = SceneFootage(FILM)
    default = VideoDetective().threshold(footage, name)
    footage.encoder.thresholds[name] = default + 0.1
    assert VideoDetective().threshold(footage, name) == default + 0.1
    assert VideoDetective(**{name: 0.9}).threshold(footage, name) == 0.9
    footage.encoder.thresholds["scene"] = 0.5
    vectors = footage.embeddings()
    assert cut_off(footage, vectors, GraphRule()) == 0.5
    assert cut_off(footage, vectors, GraphRule(theta_sim=0.9)) == 0.9


# ---- frames for the final call (table 7)


@pytest.mark.parametrize(
    ("count", "uniform", "chosen"),
    [
        (10, 2, [0, 20, 21, 22, 23, 50, 53, 56, 59, 99]),
        (5, 1, [49, 50, 53, 56, 59]),  # frames of the best package come first
    ],
)
def test_uniform_frames_then_four_of_each_package(count, uniform, chosen):
    apart = np.eye(100, dtype=np.float32)  # nothing in common
    packages = [(50, 60), (20, 24)]
    assert FrameRule()(apart, packages, np.zeros(100), count=count, uniform=uniform) == chosen


def test_near_duplicates_are_skipped_then_admitted_up_to_the_relaxed_limit():
    rows = np.zeros((8, 3), np.float32)
    for row, cosine in enumerate([1.0, 0.93, 0.96, 0.5]):
        rows[row] = [cosine, np.sqrt(1 - cosine**2), 0]
    rows[4:] = [0, 0, 1]
    rule = FrameRule()
    # 0, then 3; 1 is too close to 0 in the first pass (0.93) but not in the second; 2 (0.96) is
    assert rule(rows, [(0, 4)], np.zeros(8), count=2, uniform=0) == [0, 3]
    assert rule(rows, [(0, 4)], np.zeros(8), count=3, uniform=0) == [0, 1, 3]
    assert rule(rows, [(0, 4)], np.zeros(8), count=4, uniform=0) == [0, 1, 3, 4]


def test_remaining_frames_are_chosen_by_diversity_and_relevance():
    rows = np.array([[1, 0, 0], [0.8, 0.6, 0], [0.6, 0.8, 0], [0.6, 0, 0.8]], np.float32)
    # 0.7·(1 − cosine) + 0.3·relevance: 0.44, 0.28, 0.28
    assert FrameRule()(rows, [(0, 1)], np.array([0, 1.0, 0, 0]), count=2, uniform=0) == [0, 1]
    assert FrameRule()(rows, [(0, 1)], np.zeros(4), count=2, uniform=0) == [0, 2]


def test_if_all_frames_are_alike_the_rest_is_spread_evenly():
    rows = np.ones((101, 1), np.float32)
    assert FrameRule()(rows, [(40, 50)], np.zeros(101), count=5, uniform=1) == [0, 33, 50, 67, 100]


@given(
    st.integers(1, 80),
    st.integers(1, 40),
    st.integers(0, 40),
    st.integers(0, 2**32 - 1),
    st.booleans(),
)
def test_exactly_as_many_frames_as_asked_for(length, count, uniform, seed, alike):
    random = np.random.default_rng(seed)
    rows = random.normal(size=(length, 4)) + 10 * alike
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    edges = np.unique(np.concatenate([[0, length], random.integers(0, length + 1, 4)]))
    spans = [(int(a), int(b)) for a, b in itertools.pairwise(edges)]
    chosen = FrameRule()(rows, spans, random.random(length), count=count, uniform=uniform)
    assert len(chosen) == len(set(chosen)) == min(count, length)
    assert chosen == sorted(chosen)
