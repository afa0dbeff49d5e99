"""VideoDetective beside its Algorithm 1, sections 3.3 and 3.4, appendices C to E."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.detecting import QUESTION, Detectives, SceneFootage, play
from support.talking import TalkingFootage

from longtake.agents.run import Run
from longtake.algorithms import sampling
from longtake.errors import ConfigError, MissingExtra
from longtake.events import Noted, ScoresSet
from longtake.lab.acuity import make
from longtake.methods import videodetective
from longtake.methods.base import configure, solve
from longtake.methods.detective.belief import GraphRule
from longtake.methods.detective.facets import described
from longtake.methods.detective.observing import Looking
from longtake.methods.videodetective import VideoDetective
from longtake.types import Line, Question, Segment

FACETS = {"question": ["sea"], "A": ["cat"], "B": ["dog"], "C": ["car"]}
FILM = ["sea", "cat", "tree", "dog", "car", "hill", "lake", "road", "barn", "moon", "star", "wood"]
SETTLED = ("nothing", False, "")


def looks(heard):
    """Facet, scene and reason of every observation, in order."""
    return [(n.data["facet"], n.data["scene"], n.data["why"]) for n in heard.notes("observed")]


def scores(heard, label):
    return [event for event in heard.of(ScoresSet) if event.label == label]


def test_line_7_each_facet_begins_with_its_best_scene_and_all_are_looked_at_side_by_side():
    detectives = Detectives(FACETS, {n: (f"a {FILM[n]}", False, "") for n in range(12)}, together=4)
    _, heard = play(detectives, SceneFootage(FILM), method=VideoDetective(base_steps=4))
    assert looks(heard) == [
        ("question", 0, "anchor"), ("A", 1, "anchor"), ("B", 3, "anchor"), ("C", 4, "anchor"),
    ]  # fmt: skip


def test_anchors_come_in_order_of_score_and_a_taken_one_gives_way_to_the_next_best():
    events = [{"start": f"00:00:{at}0", "end": f"00:00:{at}9", "description": what}
              for at, what in [(0, "sea"), (1, "dog"), (2, "tree"), (3, "dog"), (4, "hill")]]  # fmt: skip
    facets = {"question": ["nothing"], "A": ["dog"], "B": ["dog"], "C": ["car"]}
    detectives = Detectives(facets, dict.fromkeys(range(12), SETTLED), events=events)
    _, heard = play(detectives, SceneFootage(FILM), method=VideoDetective(base_steps=4))
    # A has picture and timeline for scene 3, 0.5 + 0.5; B then has the timeline for scene 1, 0.5
    assert looks(heard)[:2] == [("A", 3, "anchor"), ("B", 1, "anchor")]
    (anchors,) = scores(heard, "anchors")
    assert anchors.values[:2] == (1.0, 0.5)


def test_an_anchor_that_scores_low_is_followed_by_its_facets_next_best_once():
    events = [{"start": "00:00:00", "end": "00:00:49", "description": "sea"},
              {"start": "00:00:50", "end": "00:00:59", "description": "cat"},
              {"start": "00:01:00", "end": "00:01:59", "description": "road"}]  # fmt: skip
    facets = {"question": ["moon"], "A": ["cat"], "B": ["dog"], "C": ["car"]}
    reports = {n: (f"a {FILM[n]}", False, "") for n in (3, 4, 9)}
    reports[1] = reports[5] = ("", True, "")  # picture and timeline give A these two, at 0.5 each; both show nothing
    _, heard = play(Detectives(facets, reports, events=events), SceneFootage(FILM))
    assert ("A", 1, "anchor") in looks(heard)[:4]
    assert looks(heard)[4] == ("A", 5, "retry")
    assert [why for _, _, why in looks(heard)].count("retry") == 1


def test_case_a_facets_that_miss_something_take_turns_from_their_own_latest_scene():
    film = ["sea", "k", "l", "m", "n", "cat", "p", "q", "r", "s", "dog", "t"]
    reports = {n: (f"a {film[n]}", True, "") for n in range(12)}
    facets = {"question": ["sea"], "A": ["cat"], "B": ["dog"]}
    rule = GraphRule(top=2)
    _, heard = play(Detectives(facets, reports), SceneFootage(film), Question("Where?", ("cat", "dog")),
                    VideoDetective(base_steps=6, graph=rule))  # fmt: skip
    by_turn = looks(heard)[3:]
    assert [facet for facet, _, _ in by_turn] == ["question", "A", "B"]
    assert all(why == "neighbour" for _, _, why in by_turn)
    assert by_turn[1][1] in (4, 6)  # next to the cat, not next to the last scene anybody looked at


def test_line_17_a_facet_that_misses_nothing_any_more_leaves_the_turns():
    film = ["sea", "k", "l", "m", "n", "cat", "p", "q", "r", "s", "dog", "t"]
    reports = {n: (f"a {film[n]}", n in (0, 5, 10), "") for n in range(12)}  # anchors miss something, others do not
    facets = {"question": ["sea"], "A": ["cat"], "B": ["dog"]}
    _, heard = play(Detectives(facets, reports), SceneFootage(film), Question("Where?", ("cat", "dog")),
                    VideoDetective(base_steps=8))  # fmt: skip
    assert [(facet, why) for facet, _, why in looks(heard)[3:]] == [
        ("question", "neighbour"), ("A", "neighbour"), ("B", "neighbour"),
        ("question", "highest belief"), ("question", "highest belief"),
    ]  # fmt: skip


def test_without_unvisited_neighbours_the_missing_keyword_says_where_to_look():
    film = ["sea", "cat", "a", "b", "c", "d", "moon", "e"]
    reports = {0: ("a sea", True, "moon"), 1: ("a cat", False, ""), 6: ("a moon", False, "")}
    facets = {"question": ["sea"], "A": ["cat"], "B": ["cat"]}
    rule = GraphRule(tau=1e-3, alpha=0.0)  # no edges at all
    _, heard = play(Detectives(facets, reports), SceneFootage(film), Question("Where?", ("cat", "dog")),
                    VideoDetective(base_steps=5, graph=rule))  # fmt: skip
    assert ("question", 6, "missing keyword") in looks(heard)


def test_without_a_keyword_either_the_highest_belief_does():
    film = ["sea", "cat", "a", "b", "c", "d", "moon", "e"]
    facets = {"question": ["sea", "moon"], "A": ["cat"], "B": ["cat"]}
    reports = {0: ("a sea", True, ""), 1: ("a cat", False, "")}
    rule = GraphRule(tau=1e-3, alpha=0.0)
    _, heard = play(Detectives(facets, reports), SceneFootage(film), Question("Where?", ("cat", "dog")),
                    VideoDetective(base_steps=5, graph=rule, fallback=False))  # fmt: skip
    assert ("question", 6, "highest belief") in looks(heard)  # presumed of the keyword "moon"


def test_case_b_when_nothing_is_missing_the_highest_belief_is_looked_at_with_the_general_query():
    detectives = Detectives(FACETS, {n: (f"a {FILM[n]}", False, "") for n in range(12)})
    _, heard = play(detectives, SceneFootage(FILM))
    after = looks(heard)[4:]
    assert len(after) == 6
    assert {(facet, why) for facet, _, why in after} == {("question", "highest belief")}
    assert "sea" in detectives.prompts["observe"][-1].split("Look for these:")[1].split("And for")[0]
    fields = [np.array(s.values) for s in scores(heard, "belief")]
    visited = [scene for _, scene, _ in looks(heard)]
    for t, scene in enumerate(visited[4:], start=4):  # eq. 7 on the belief of the step before
        open_ = [n for n in range(12) if n not in visited[:t]]
        assert scene == max(open_, key=lambda n, t=t: (fields[t][n], -n))


@pytest.mark.parametrize("iterations", [1, 7])
def test_lines_23_and_24_scores_are_injected_and_diffused_one_by_one_from_the_last_belief(iterations):
    detectives = Detectives(FACETS, {n: (f"a {FILM[n]}", False, "") for n in range(12)})
    rule = GraphRule(iterations=iterations)
    _, heard = play(detectives, SceneFootage(FILM), method=VideoDetective(graph=rule))
    fields = [np.array(s.values) for s in scores(heard, "belief")]
    seen = scores(heard, "observed")
    assert len(fields) == 1 + len(seen) == 11
    film = videodetective.scene_graph(SceneFootage(FILM), GraphRule())
    prior = np.array([1, 1, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0], float)
    assert fields[0] == pytest.approx(prior)  # Y⁰: the keyword's cosine
    injected, field = prior.copy(), prior
    for t, one in enumerate(seen, start=1):
        injected[film.segments.index(one.segments[0])] = one.values[0]
        field = videodetective.graph.diffuse(film.spreading, injected, field, steps=iterations)
        assert fields[t] == pytest.approx(field, abs=1e-3)


def test_lines_9_and_10_the_search_ends_when_all_is_visited():
    detectives = Detectives(FACETS, {})
    play(detectives, SceneFootage(["sea", "cat", "dog"]))
    assert sorted(detectives.observed) == [0, 1, 2]


@pytest.mark.parametrize(("options", "steps"), [(0, 10), (2, 10), (4, 10), (6, 12), (26, 32)])
def test_ten_steps_and_one_more_for_each_option_beyond_four(options, steps):
    words = [f"w{n}" for n in range(60)]
    question = Question("Where?", tuple(words[:options]))
    detectives = Detectives({"question": ["w59"], **{c: [w] for c, w in zip(question.letters, words, strict=False)}})
    play(detectives, SceneFootage(words), question)
    assert len(detectives.observed) == steps


@settings(max_examples=25, deadline=None)
@given(
    st.integers(1, 15), st.sampled_from([0, 2, 3, 4, 7]), st.integers(1, 12), st.randoms(use_true_random=False),
    st.booleans(), st.booleans(),
)  # fmt: skip
def test_no_scene_is_looked_at_twice_and_never_more_than_the_budget(count, options, base, chance, refine, spread):
    film = [f"w{n}" for n in range(count)]
    words = [f"w{chance.randrange(count)}" for _ in range(8)]
    question = Question("Where?", tuple(f"{w} {n}" for n, w in enumerate(words[:options])))
    facets = {"question": words[-1:], **{c: [w] for c, w in zip(question.letters, words, strict=False)}}
    reports = {
        n: (chance.choice(["", film[n]]), chance.random() < 0.7, chance.choice(["", words[0]])) for n in range(count)
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


def test_a_look_at_a_scene_is_nine_frames_spread_over_it_or_all_of_them():
    detectives = Detectives(FACETS)
    play(detectives, SceneFootage(["sea", "cat"], length=30))
    assert sorted(detectives.shown["observe"])[0] == (sampling.uniform(30, 9)).tolist()
    detectives = Detectives(FACETS, length=5)
    play(detectives, SceneFootage(["sea", "cat"], length=5), method=VideoDetective(graph=GraphRule(min_frames=5)))
    assert sorted(detectives.shown["observe"]) == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]


def lines(*found):
    return [Line(Segment(start, end), text) for start, end, text in found]


def test_text_is_read_in_the_first_middle_and_last_frame_and_speech_is_that_of_the_scene():
    read = lines((0, 1, "FIRST"), (3, 4, "UNSEEN"), (5, 6, "MIDDLE"), (9, 10, "LAST"), (9, 10, "EXI"))
    said = lines((2, 4, "all about cars"), (12, 14, "of another scene"))
    footage = SceneFootage(["sea"], onscreen=read, speech=said)
    detectives = Detectives({"question": ["first", "middle", "last"], "A": ["car"]}, {0: ("", False, "")})
    method = VideoDetective(fallback=False)
    play(detectives, footage, method=method)
    assert "read on screen: [00:00:00] FIRST [00:00:05] MIDDLE [00:00:09] LAST\n" in detectives.prompts["answer"][0]
    deaf = Looking(onscreen=False)
    detectives = Detectives({"question": ["sea"], "A": ["car"]}, {0: ("", False, "")})
    play(detectives, footage, method=dataclasses.replace(method, looking=deaf))
    assert "heard: [00:00:02] all about cars\n" in detectives.prompts["answer"][0]
    mute = Looking(onscreen=False, speech=False)
    detectives = Detectives({"question": ["sea"], "A": ["car"]}, {0: ("a car", False, "")})
    play(detectives, footage, method=dataclasses.replace(method, looking=mute))
    assert "seen: a car\n" in detectives.prompts["answer"][0]


def test_without_speech_recognition_the_rest_goes_on_with_a_note():
    class Deaf(SceneFootage):
        def speech(self, within=None):
            raise MissingExtra("speech", "speech recognition")

    result, heard = play(Detectives(FACETS, {1: ("a cat", True, "")}), Deaf(FILM))
    assert result.answer.status == "answered"
    assert "longtake[speech]" in heard.notes("speech_left_out")[0].data["why"]


def test_e_5_one_sources_score_by_hand():
    from longtake.algorithms.lexical import idf

    detectives = Detectives({"question": ["cat"], "A": ["dog"], "B": ["dog"]}, {0: ("cat tree", True, "")})
    _, heard = play(detectives, SceneFootage(["cat", "tree"]), Question("Where?", ("dog", "tree")))
    # caption: 0.3 · IDF(cat) / 3 + 0.7 · cos((1, 1)/√2, (1, 0))
    expected = 0.3 * idf("cat") / 3 + 0.7 / np.sqrt(2)
    assert dict(zip([n.data["scene"] for n in heard.notes("observed")], scores(heard, "observed"), strict=True))[
        0
    ].values[0] == pytest.approx(expected, abs=1e-4)


def test_line_26_packages_are_in_time_order_with_best_text_and_the_answer_cites_them():
    reports = {n: (f"a {FILM[n]}", False, "") for n in range(12)}
    detectives = Detectives(FACETS, reports, choice="B")
    result, heard = play(detectives, SceneFootage(FILM), method=VideoDetective(fallback=False))
    (selected,) = scores(heard, "selected")
    assert len(selected.segments) == 8
    assert {Segment(0, 10), Segment(10, 20), Segment(30, 40), Segment(40, 50)} <= set(selected.segments)
    notes = [line for line in detectives.prompts["answer"][0].splitlines() if ", seen: " in line]
    assert notes == sorted(notes)
    assert "00:00:30 to 00:00:40, seen: a dog" in notes
    assert (result.answer.choice, result.answer.text) == ("B", "dog")
    assert [e.source for e in result.answer.evidence] == ["caption"] * 3
    assert all(e.text == f"a {FILM[int(e.segment.start // 10)]}" for e in result.answer.evidence)
    assert [e.segment for e in result.answer.evidence] == sorted(e.segment for e in result.answer.evidence)


@pytest.mark.parametrize(
    ("text", "uniform"), [("Where is it?", 4), ("How many are there?", 16), ("What comes after?", 12)]
)
def test_more_frames_are_spread_over_the_film_for_counting_order_text_and_speech(text, uniform):
    question = Question(text, QUESTION.options)
    assert VideoDetective().uniform_frames(question) == uniform
    assert VideoDetective(frames=10).uniform_frames(question) == 2
    assert configure(VideoDetective, {"preset": "paper"}).uniform_frames(question) == 4


def test_where_scores_tell_nothing_apart_frames_are_uniform_and_every_observed_scene_keeps_its_text():
    reports = dict.fromkeys(range(12), ("a cat", True, ""))
    detectives = Detectives(FACETS, reports)
    _, heard = play(detectives, SceneFootage(FILM))
    assert "stands out" in heard.notes("fallback")[0].data["why"]
    assert detectives.shown["answer"][0] == sampling.uniform(120, 32).tolist()
    assert detectives.prompts["answer"][0].count(", seen: a cat") == 10
    _, heard = play(Detectives(FACETS, reports), SceneFootage(FILM), method=VideoDetective(fallback=False))
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
    events = [{"start": "soon", "end": "later", "description": "x"}, {"start": 99999, "end": 99999, "description": "x"},
              {"start": 12, "end": 5, "description": "dog"}]  # fmt: skip
    _, heard = play(Detectives(FACETS, events=events), SceneFootage(FILM))
    assert len(heard.notes("event_dropped")) == 2


def test_facets_without_parts_get_the_words_of_their_option_and_letters_may_be_texts():
    detectives = Detectives({"question": [], "dog": ["tree"], "C": []})
    _, heard = play(detectives, SceneFootage(FILM))
    (said,) = heard.notes("facets")
    assert said.data["facets"] == {
        "question": [[], ["Where is it?"]], "A": [["cat"], ["cat"]], "B": [["tree"], ["tree"]], "C": [["car"], ["car"]],
    }  # fmt: skip


def test_parts_without_letters_belong_to_options_by_their_place():
    detectives = Detectives({"question": ["sea"], "first": ["tree"], "second": ["hill"], "third": ["lake"]})
    _, heard = play(detectives, SceneFootage(FILM))
    found = heard.notes("facets")[0].data["facets"]
    assert [found[letter][0] for letter in "ABC"] == [["tree"], ["hill"], ["lake"]]


def test_an_unreadable_decomposition_is_the_words_of_question_and_options():
    _, heard = play(Detectives(mute=["decompose"]), SceneFootage(FILM), Question("Where is the moon?", ("cat", "dog")))
    assert heard.notes("facets")[0].data["facets"] == {
        "question": [["moon"], ["Where is the moon?"]], "A": [["cat"], ["cat"]], "B": [["dog"], ["dog"]],
    }  # fmt: skip
    assert heard.notes("default_taken")


def test_an_unreadable_observer_saw_nothing_and_needs_more():
    _, heard = play(Detectives(FACETS, mute=["observe"]), SceneFootage(FILM))
    assert all(n.data["needs_more"] and n.data["score"] == 0.0 for n in heard.notes("observed"))
    assert len(heard.notes("default_taken")) == 10


def test_an_unreadable_timeline_is_none_and_an_unreadable_answer_an_abstention():
    result, _ = play(Detectives(FACETS, mute=["timeline", "answer"]), SceneFootage(FILM))
    assert (result.answer.status, result.answer.choice, result.answer.evidence) == ("abstained", None, ())


def test_open_ended_questions_have_a_facet_for_each_group_and_are_answered_in_words():
    facets = {"question": ["sea"], "1": ["dog"], "2": ["sea"], "3": ["dog"], "4": ["car"]}
    detectives = Detectives(facets, choice="A big dog.")
    result, heard = play(detectives, SceneFootage(FILM), Question("What is there?"))
    assert [*heard.notes("facets")[0].data["facets"]] == ["question", "1", "4"]  # the same is said once
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
    assert "NOT so" in prompt
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


def test_a_spent_budget_gives_the_option_with_the_best_evidence_so_far():
    reports = {3: ("a dog", True, "")}
    result, _ = play(Detectives(FACETS, reports), SceneFootage(FILM), calls=8)
    assert (result.answer.choice, result.answer.status) == ("B", "budget_spent")
    question = Question("Which is NOT shown?", ("dog", "cat"))
    facets = {"question": [], "A": ["dog"], "B": ["cat"]}
    result, _ = play(Detectives(facets, reports), SceneFootage(FILM), question, calls=8)
    assert (result.answer.choice, result.answer.status) == ("B", "budget_spent")


def test_table_3_without_propagation_belief_is_what_is_known_of_the_scene_itself():
    _, heard = play(
        Detectives(FACETS, {3: ("a dog", True, "")}), SceneFootage(FILM), method=VideoDetective(propagation=False)
    )
    last, seen = scores(heard, "belief")[-1], scores(heard, "observed")
    prior = [1.0, 1.0, 0.0, 1.0, 1.0, *[0.0] * 7]
    known = {s.segments[0]: s.values[0] for s in seen}
    assert last.values == pytest.approx([known.get(s, p) for s, p in zip(last.segments, prior, strict=True)])


def test_table_3_without_facets_the_question_is_the_only_one_and_nobody_is_asked():
    detectives = Detectives(FACETS)
    play(detectives, SceneFootage(FILM), method=VideoDetective(decomposition=False, refinement=False))
    assert detectives.steps == ["vlm timeline", "vlm observe", "vlm answer"]


def test_table_3_without_refinement_each_facet_is_looked_for_once():
    detectives = Detectives(FACETS)
    play(detectives, SceneFootage(FILM), method=VideoDetective(refinement=False))
    assert len(detectives.observed) == 4


def test_table_3_without_textual_evidence_the_final_call_sees_frames_alone():
    reports = {n: (f"a {FILM[n]}", False, "") for n in range(12)}
    with_text, without = Detectives(FACETS, reports), Detectives(FACETS, reports)
    play(with_text, SceneFootage(FILM))
    result, _ = play(without, SceneFootage(FILM), method=VideoDetective(textual_evidence=False))
    assert "seen: a dog" in with_text.prompts["answer"][0]
    assert "seen: a dog" not in without.prompts["answer"][0]
    assert {e.source for e in result.answer.evidence} == {"frame"}
    assert with_text.shown["answer"] == without.shown["answer"]


def test_table_3_without_optimized_sampling_frames_are_uniform_and_texts_the_same():
    reports = {n: (f"a {FILM[n]}", False, "") for n in range(12)}
    ours, plain = Detectives(FACETS, reports), Detectives(FACETS, reports)
    play(ours, SceneFootage(FILM), method=VideoDetective(fallback=False))
    play(plain, SceneFootage(FILM), method=VideoDetective(fallback=False, optimized_sampling=False))
    assert plain.shown["answer"] == [sampling.uniform(120, 32).tolist()]
    assert ours.shown["answer"] != plain.shown["answer"]
    assert [p for p in ours.prompts["answer"][0].splitlines() if "seen:" in p] == [
        p for p in plain.prompts["answer"][0].splitlines() if "seen:" in p
    ]


@pytest.mark.parametrize("count", [1, 2])
def test_films_of_one_and_two_scenes(count):
    result, _ = play(Detectives(FACETS), SceneFootage(FILM[:count]))
    assert result.answer.choice == "A"


def test_captions_alone_are_looked_at_as_words():
    footage = TalkingFootage([("cat", 20), ("dog", 20), ("car", 20)])
    footage.encoder.thresholds["scene"] = 0.5

    class Readers(Detectives):
        def observe(self, times, options):
            return {"reasoning": "", "caption": "a cat", "needs_more_info": False, "missing_keyword": ""}

    readers = Readers(FACETS)
    result, _ = play(readers, footage)
    assert result.usage.frames == 0
    assert "[00:00:00] a cat at 0" in readers.prompts["answer"][0]


def test_frames_of_the_film_that_resemble_nothing_are_cut_by_quantile():
    footage = SceneFootage(FILM)
    footage.encoder.thresholds.clear()
    assert len(videodetective.scene_graph(footage, GraphRule(quantile=0.0))) == 1
    assert len(videodetective.scene_graph(footage, GraphRule(quantile=0.2))) == 12


def test_defaults_are_the_papers_and_presets_what_they_say():
    ours = VideoDetective()
    rule = ours.graph
    assert (rule.alpha, rule.tau, rule.top, rule.min_frames, rule.iterations, rule.beta) == (0.6, 30.0, 8, 10, 7, 0.6)
    assert (ours.frames, ours.base_steps, ours.steps_per_option, ours.looking.window) == (32, 10, 1, 9)
    assert (ours.retry_below, ours.fallback_max, ours.fallback_mean, ours.fallback_gap) == (0.2, 0.4, 0.2, 0.15)
    assert (ours.packages, ours.picking.per_package, ours.min_uniform, ours.eta) == (8, 4, 4, 0.2)
    assert (ours.picking.duplicate, ours.picking.relaxed, ours.picking.similar) == (0.92, 0.95, 0.90)
    assert dataclasses.astuple(ours.looking.weights) == (0.7, 0.5, 0.3)
    assert (ours.prior_weight, ours.looking.z_lex, ours.vlm_tokens, ours.llm_tokens) == (0.5, 3.0, 4096, 2048)
    printed = configure(VideoDetective, {"preset": "paper"})
    assert (printed.graph.theta_sim, printed.graph.max_frames, printed.printed_prior) == (0.82, None, True)
    assert configure(VideoDetective, {"preset": "released", "graph": {"top": 4}}).graph.theta_sim == 0.82
    with pytest.raises(ConfigError, match="unknown preset"):
        configure(VideoDetective, {"preset": "printed"})


def test_the_printed_prior_is_also_where_belief_begins():
    events = [{"start": "00:00:50", "end": "00:00:59", "description": "cat"}]
    printed = VideoDetective(printed_prior=True)
    _, heard = play(Detectives(FACETS, events=events), SceneFootage(FILM), method=printed)
    assert scores(heard, "belief")[0].values[:2] == (0.5, 1.0)  # 0.5 · keyword + 0.5 · event, best facet
    assert np.allclose(scores(heard, "belief")[0].values[5], 0.5)


@pytest.mark.parametrize("question", [QUESTION, Question("What is it?"), Question("Q?", tuple("abcdef"))])
def test_bounds_are_reached_when_something_is_always_missing(question):
    film = [f"w{n}" for n in range(40)]
    detectives = Detectives({"question": ["w1"]})
    method = VideoDetective()
    result, _ = play(detectives, SceneFootage(film, length=12), question, method)
    bounds = method.bounds(480.0, question)
    assert (result.usage.calls, result.usage.frames) == (bounds.calls, bounds.frames)


def test_replies_are_no_longer_than_a_quarter_of_what_the_model_holds():
    chat = make("acuity=0.8,context=4096")
    assert videodetective.most_tokens(chat, 4096) == 1024
    assert videodetective.most_tokens(make("acuity=0.8"), 4096) == 4096


def test_in_the_laboratory_it_finds_a_needle():
    from longtake.lab.film import make_world
    from longtake.lab.footage import LabFootage

    world = make_world(seed=3, minutes=20, questions=10)
    needle = next(asked for asked in world.questions if asked.kind == "needle")
    chat = make("acuity=1")
    method = VideoDetective()
    result = solve(method, LabFootage(world.script), needle.question, Run({"llm": chat, "vlm": chat}))
    assert result.answer.choice == needle.answer
    assert result.usage.calls <= method.bounds(1200, needle.question).calls


def test_notes_are_events():
    _, heard = play(Detectives(FACETS), SceneFootage(FILM))
    assert {"facets", "observed"} <= {event.label for event in heard.of(Noted)}
