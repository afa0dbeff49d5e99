"""VideoDetective beside its Algorithm 1, section 3.3."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.detecting import FACETS, FILM, QUESTION, Detectives, SceneFootage, looks, play, scores

from longtake.agents.run import Run
from longtake.lab.model import make
from longtake.methods.videodetective import method as videodetective
from longtake.methods.videodetective.method import VideoDetective
from longtake.methods.videodetective.scenes import GraphRule
from longtake.runner.session import solve
from longtake.tracing.events import ScoresSet
from longtake.types import Question

SETTLED = ("nothing", False, "")


def test_line_7_each_facet_begins_with_its_best_scene_and_all_are_looked_at_side_by_side():
    detectives = Detectives(FACETS, {n: (f"a {FILM[n]}", False, "") for n in range(12)}, together=4)
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
    reports[1] = reports[5] = (
        "",
        True,
        "",
    )  # picture and timeline give A these two, at 0.5 each; both show nothing
    _, heard = play(Detectives(facets, reports, events=events), SceneFootage(FILM))
    assert ("A", 1, "anchor") in looks(heard)[:4]
    assert looks(heard)[4] == ("A", 5, "retry")
    assert [why for _, _, why in looks(heard)].count("retry") == 1


def test_case_a_facets_that_miss_something_take_turns_from_their_own_latest_scene():
    film = ["sea", "k", "l", "m", "n", "cat", "p", "q", "r", "s", "dog", "t"]
    reports = {n: (f"a {film[n]}", True, "") for n in range(12)}
    facets = {"question": ["sea"], "A": ["cat"], "B": ["dog"]}
    rule = GraphRule(top=2)
    _, heard = play(
        Detectives(facets, reports),
        SceneFootage(film),
        Question("Where?", ("cat", "dog")),
        VideoDetective(base_steps=6, graph=rule),
    )
    by_turn = looks(heard)[3:]
    assert [facet for facet, _, _ in by_turn] == ["question", "A", "B"]
    assert all(why == "neighbour" for _, _, why in by_turn)
    assert by_turn[1][1] in (4, 6)  # next to the cat, not next to the last scene anybody looked at


def test_line_17_a_facet_that_misses_nothing_any_more_leaves_the_turns():
    film = ["sea", "k", "l", "m", "n", "cat", "p", "q", "r", "s", "dog", "t"]
    reports = {
        n: (f"a {film[n]}", n in (0, 5, 10), "") for n in range(12)
    }  # anchors miss something, others do not
    facets = {"question": ["sea"], "A": ["cat"], "B": ["dog"]}
    _, heard = play(
        Detectives(facets, reports),
        SceneFootage(film),
        Question("Where?", ("cat", "dog")),
        VideoDetective(base_steps=8),
    )
    assert [(facet, why) for facet, _, why in looks(heard)[3:]] == [
        ("question", "neighbour"),
        ("A", "neighbour"),
        ("B", "neighbour"),
        ("question", "highest belief"),
        ("question", "highest belief"),
    ]


def test_without_unvisited_neighbours_the_missing_keyword_says_where_to_look():
    film = ["sea", "cat", "a", "b", "c", "d", "moon", "e"]
    reports = {0: ("a sea", True, "moon"), 1: ("a cat", False, ""), 6: ("a moon", False, "")}
    facets = {"question": ["sea"], "A": ["cat"], "B": ["cat"]}
    rule = GraphRule(tau=1e-3, alpha=0.0)  # no edges at all
    _, heard = play(
        Detectives(facets, reports),
        SceneFootage(film),
        Question("Where?", ("cat", "dog")),
        VideoDetective(base_steps=5, graph=rule),
    )
    assert ("question", 6, "missing keyword") in looks(heard)


def test_without_a_keyword_either_the_highest_belief_does():
    film = ["sea", "cat", "a", "b", "c", "d", "moon", "e"]
    facets = {"question": ["sea", "moon"], "A": ["cat"], "B": ["cat"]}
    reports = {0: ("a sea", True, ""), 1: ("a cat", False, "")}
    rule = GraphRule(tau=1e-3, alpha=0.0)
    _, heard = play(
        Detectives(facets, reports),
        SceneFootage(film),
        Question("Where?", ("cat", "dog")),
        VideoDetective(base_steps=5, graph=rule, fallback=False),
    )
    assert ("question", 6, "highest belief") in looks(heard)  # presumed of the keyword "moon"


def test_case_b_when_nothing_is_missing_the_highest_belief_is_looked_at_with_the_general_query():
    detectives = Detectives(FACETS, {n: (f"a {FILM[n]}", False, "") for n in range(12)})
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
    detectives = Detectives(FACETS, {n: (f"a {FILM[n]}", False, "") for n in range(12)})
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


def test_lines_9_and_10_the_search_ends_when_all_is_visited():
    detectives = Detectives(FACETS, {})
    play(detectives, SceneFootage(["sea", "cat", "dog"]))
    assert sorted(detectives.observed) == [0, 1, 2]


@pytest.mark.parametrize(("options", "steps"), [(0, 10), (2, 10), (4, 10), (6, 12), (26, 32)])
def test_ten_steps_and_one_more_for_each_option_beyond_four(options, steps):
    words = [f"w{n}" for n in range(60)]
    question = Question("Where?", tuple(words[:options]))
    detectives = Detectives(
        {"question": ["w59"], **{c: [w] for c, w in zip(question.letters, words, strict=False)}}
    )
    play(detectives, SceneFootage(words), question)
    assert len(detectives.observed) == steps


@settings(max_examples=25)
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
    result, _ = play(detectives, SceneFootage(film), question, method)
    assert len(detectives.observed) == len(set(detectives.observed)) <= method.steps(question)
    assert [len(times) for times in detectives.shown["answer"]] == [min(32, count * 10)]
    bounds = method.bounds(count * 10.0, question)
    assert result.usage.calls <= bounds.calls
    assert result.usage.frames <= bounds.frames
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


@pytest.mark.parametrize(
    "question", [QUESTION, Question("What is it?"), Question("Q?", tuple("abcdef"))]
)
def test_bounds_are_reached_when_something_is_always_missing(question):
    film = [f"w{n}" for n in range(40)]
    detectives = Detectives({"question": ["w1"]})
    method = VideoDetective()
    result, _ = play(detectives, SceneFootage(film, length=12), question, method)
    bounds = method.bounds(480.0, question)
    assert (result.usage.calls, result.usage.frames) == (bounds.calls, bounds.frames)


def test_in_the_laboratory_it_finds_a_needle():
    from longtake.lab.film import make_world
    from longtake.lab.footage import LabFootage

    world = make_world(seed=3, minutes=20, questions=10)
    needle = next(asked for asked in world.questions if asked.kind == "needle")
    chat = make("acuity=1")
    method = VideoDetective()
    result = solve(
        method, LabFootage(world.script), needle.question, Run({"llm": chat, "vlm": chat})
    )
    assert result.answer.choice == needle.answer
    assert result.usage.calls <= method.bounds(1200, needle.question).calls


@pytest.mark.parametrize("count", [1, 2])
def test_films_of_one_and_two_scenes(count):
    result, _ = play(Detectives(FACETS), SceneFootage(FILM[:count]))
    assert result.answer.choice == "A"


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
