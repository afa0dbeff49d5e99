"""VideoDetective's equations and Algorithm 2, with numbers computed by hand."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longtake.algorithms import lexical, scene_graph
from longtake.methods.videodetective.scenes import Observation, SceneText

E1, E2, E3 = math.exp(-1), math.exp(-2), math.exp(-3)
VECTORS = np.array([[1.0, 0.0], [0.6, 0.8], [-1.0, 0.0]])
CENTRES = np.array([0.0, 30.0, 90.0])


def matrix(entries, count):
    weights = np.zeros((count, count))
    for (i, j), w in entries.items():
        weights[i, j] = weights[j, i] = w
    return scene_graph.Edges(
        count, *(np.asarray(i, np.int64) for i in np.nonzero(weights)), weights[weights > 0]
    )


def limit(weights, injected, beta=0.6):
    """B.1: F* = (1 − β)(I − βW)⁻¹Y."""
    return (1 - beta) * np.linalg.solve(np.eye(len(injected)) - beta * weights.dense(), injected)


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
    assert scene_graph.visual(VECTORS, VECTORS) == pytest.approx(
        np.array([[1, 0.6, 0], [0.6, 1, 0], [0, 0, 1]])
    )


def test_equation_2_temporal_affinity_fades_with_distance_over_tau():
    assert scene_graph.temporal(CENTRES, CENTRES, 30.0) == pytest.approx(
        np.array([[1, E1, E3], [E1, 1, E2], [E3, E2, 1]])
    )


def test_fusion_sparsification_and_symmetry():
    one = scene_graph.affinity(VECTORS, CENTRES, top=1).dense()
    strong, weak = 0.6 * 0.6 + 0.4 * E1, 0.4 * E2
    # 0 and 1 choose each other; 2 chooses 1, which does not choose it back: half of that edge stays
    assert one == pytest.approx(np.array([[0, strong, 0], [strong, 0, weak / 2], [0, weak / 2, 0]]))
    full = scene_graph.affinity(VECTORS, CENTRES, top=8).dense()
    assert full == pytest.approx(
        np.array([[0, strong, 0.4 * E3], [strong, 0, weak], [0.4 * E3, weak, 0]])
    )


def test_blocks_give_the_same_graph_as_one(monkeypatch):
    random = np.random.default_rng(3)
    rows = random.normal(size=(50, 4))
    times = np.arange(50.0) * 20
    whole = scene_graph.affinity(rows, times)
    monkeypatch.setattr(scene_graph, "BATCH", 7)
    assert abs(scene_graph.affinity(rows, times).dense() - whole.dense()).max() < 1e-15


def test_of_equally_strong_edges_those_further_left_are_kept():
    kept = scene_graph.strongest(
        np.array([[0.0, 0.5, 0.5, 0.5, 0.9], [0.0, 0.0, 0.0, 0.1, 0.0]]), 2
    )
    assert kept.tolist() == [[False, True, False, False, True], [False, False, False, True, False]]


def test_equation_3_symmetric_normalisation():
    normal = scene_graph.normalise(matrix({(0, 1): 4.0, (1, 2): 5.0}, 3)).dense()
    expected = np.array(
        [[0, 4 / math.sqrt(4 * 9), 0], [4 / 6, 0, 5 / math.sqrt(9 * 5)], [0, 5 / math.sqrt(45), 0]]
    )
    assert normal == pytest.approx(expected)


def test_a_scene_without_edges_divides_nothing_by_zero():
    normal = scene_graph.normalise(matrix({(0, 1): 1.0}, 3))
    assert normal.dense() == pytest.approx(np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]]))
    belief = scene_graph.diffuse(normal, np.array([0.0, 0.0, 1.0]), np.zeros(3), steps=100)
    assert belief == pytest.approx([0, 0, 0.4])


@settings(max_examples=60)
@given(graphs())
def test_no_eigenvalue_exceeds_one(made):
    weights, _ = made
    values = np.linalg.eigvalsh(scene_graph.normalise(weights).dense())
    assert np.abs(values).max() <= 1 + 1e-12


def test_equation_13_two_steps_by_hand():
    pair = matrix({(0, 1): 1.0}, 2)
    injected = np.array([1.0, 0.0])
    assert scene_graph.diffuse(pair, injected, injected, steps=1) == pytest.approx([0.4, 0.6])
    assert scene_graph.diffuse(pair, injected, injected, steps=2) == pytest.approx([0.76, 0.24])


@settings(max_examples=60)
@given(graphs())
def test_diffusion_goes_to_the_closed_form_and_seven_steps_keep_the_bound(made):
    weights, random = made
    normal = scene_graph.normalise(weights)
    injected, start = random.random(normal.count), random.random(normal.count)
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
        return (
            np.sum((belief - injected) ** 2) + mu * belief @ (np.eye(3) - normal.dense()) @ belief
        )

    settled = scene_graph.diffuse(normal, injected, injected, steps=200)
    assert all(
        cost(settled) <= cost(settled + nudge)
        for nudge in 1e-3 * np.vstack([np.eye(3), -np.eye(3)])
    )


def test_equation_5_as_printed_and_with_both_parts_on_one_scale():
    keyword = np.array([[0.2, -0.1, 0.05], [0.0, 0.3, 0.1]])
    event = np.array([[0.5, 0.9, 0.7], [0.4, 0.4, 0.4]])
    assert scene_graph.prior(keyword, event, printed=True) == pytest.approx(
        np.array([[0.35, 0.4, 0.375], [0.2, 0.35, 0.25]])
    )
    # −0.1 counts as 0; 0.5, 0.9, 0.7 are 0, 1, 0.5; equal cosines say nothing
    assert scene_graph.prior(keyword, event) == pytest.approx(
        np.array([[0.1, 0.5, 0.275], [0.0, 0.15, 0.05]])
    )
    assert scene_graph.prior(keyword, event, weight=1.0)[1] == pytest.approx([0.0, 0.3, 0.1])


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
    assert scene_graph.semantic(text, queries) == pytest.approx(0.8)
    assert scene_graph.semantic(text, np.zeros((0, 2))) == 0.0


def test_long_texts_are_compared_in_pieces_of_fifty_words():
    words = [f"w{n}" for n in range(120)]
    assert [len(piece.split()) for piece in scene_graph.pieces(" ".join(words))] == [50, 50, 20]
    assert scene_graph.pieces("  ") == []


@pytest.mark.parametrize(
    ("weight", "expected"), [(0.7, 0.7 * 0.9 + 0.3 * 0.4), (0.5, 0.65), (0.3, 0.3 * 0.9 + 0.28)]
)
def test_equation_10_lexical_and_semantic_by_source(weight, expected):
    assert scene_graph.source_aware(0.9, 0.4, weight) == pytest.approx(expected)
    assert scene_graph.source_aware(0.0, -0.5, weight) == 0.0


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


@settings(max_examples=60)
@given(graphs(), st.integers(1, 6), st.integers(1, 8))
def test_graph_nms_keeps_one_scene_per_facet_and_never_too_many(made, facets, most):
    weights, random = made
    count = weights.count
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
    assert scene_graph.scenes(film(20, 12, 15), 0.82) == [(0, 20), (20, 32), (32, 47)]
    assert scene_graph.scenes(film(20), 0.82) == [(0, 20)]
    assert scene_graph.scenes(film(3), 0.82) == [(0, 3)]  # nothing to merge with
    assert scene_graph.scenes(np.zeros((0, 4), np.float32), 0.82) == []


def test_short_scenes_merge_left_to_right_with_the_neighbour_they_resemble_more():
    rows = film(20, 4, 20, 3, 3, 3)
    rows[20:24] = [0.1, 0.8, 0.6, 0, 0, 0]  # closer to the third than to the first
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    # the last three resemble nothing: the first joins the scene before it, and so do the others
    assert scene_graph.scenes(rows, 0.82) == [(0, 20), (20, 53)]


@settings(max_examples=60)
@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=20), st.integers(1, 12), st.integers(24, 60)
)
def test_scenes_cover_the_film_and_keep_their_bounds(lengths, shortest, longest):
    found = scene_graph.scenes(film(*lengths), 0.5, shortest=shortest, longest=longest)
    assert found[0][0] == 0
    assert found[-1][1] == sum(lengths)
    assert all(a[1] == b[0] for a, b in itertools.pairwise(found))
    assert all(b - a <= longest for a, b in found)
    assert all(b - a >= min(shortest, sum(lengths)) for a, b in found)


def test_a_long_scene_is_divided_at_its_lowest_cosine_and_a_still_one_in_the_middle():
    steps = np.full(199, 0.95)
    steps[69] = 0.9
    assert scene_graph.split_long(steps, (0, 200), 10, 140) == [(0, 70), (70, 200)]
    assert scene_graph.split_long(np.ones(199), (0, 200), 10, 120) == [(0, 100), (100, 200)]


def test_a_scenes_vector_is_the_unit_mean_of_its_frames():
    rows = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]], np.float32)
    assert scene_graph.scene_vectors(rows, [(0, 2), (2, 3)]) == pytest.approx(
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
    ],
)
def test_scores_that_tell_nothing_apart(scores, why):
    assert why in scene_graph.distrust(scores)


def test_scores_that_do():
    assert scene_graph.distrust([0.9, 0.5, 0.3]) is None
