"""VideoDetective: observations, the final call and replies (3.3.2, 3.4, C to E)."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from support.detecting import FACETS, FILM, QUESTION, Detectives, SceneFootage, play, scores

from longtake.algorithms import lexical, sampling
from longtake.methods.base import configure
from longtake.methods.videodetective.method import VideoDetective
from longtake.methods.videodetective.plan import described
from longtake.methods.videodetective.scenes import GraphRule, ObserveRule
from longtake.types import Line, Question, Segment


def test_a_look_at_a_scene_is_nine_frames_spread_over_it_or_all_of_them():
    detectives = Detectives(FACETS)
    play(detectives, SceneFootage(["sea", "cat"], length=30))
    assert sorted(detectives.shown["observe"])[0] == (sampling.uniform(30, 9)).tolist()
    detectives = Detectives(FACETS, length=5)
    play(
        detectives,
        SceneFootage(["sea", "cat"], length=5),
        method=VideoDetective(graph=GraphRule(min_frames=5)),
    )
    assert sorted(detectives.shown["observe"]) == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]


def lines(*found):
    return [Line(Segment(start, end), text) for start, end, text in found]


def test_text_is_read_in_the_first_middle_and_last_frame_and_speech_is_that_of_the_scene():
    read = lines(
        (0, 1, "FIRST"), (3, 4, "UNSEEN"), (5, 6, "MIDDLE"), (9, 10, "LAST"), (9, 10, "EXI")
    )
    said = lines((2, 4, "all about cars"), (12, 14, "of another scene"))
    footage = SceneFootage(["sea"], onscreen=read, speech=said)
    detectives = Detectives(
        {"question": ["first", "middle", "last"], "A": ["car"]}, {0: ("", False, "")}
    )
    method = VideoDetective(fallback=False)
    play(detectives, footage, method=method)
    assert (
        "read on screen: [00:00:00] FIRST [00:00:05] MIDDLE [00:00:09] LAST\n"
        in detectives.prompts["answer"][0]
    )
    deaf = ObserveRule(onscreen=False)
    detectives = Detectives({"question": ["sea"], "A": ["car"]}, {0: ("", False, "")})
    play(detectives, footage, method=dataclasses.replace(method, looking=deaf))
    assert "heard: [00:00:02] all about cars\n" in detectives.prompts["answer"][0]
    mute = ObserveRule(onscreen=False, speech=False)
    detectives = Detectives({"question": ["sea"], "A": ["car"]}, {0: ("a car", False, "")})
    play(detectives, footage, method=dataclasses.replace(method, looking=mute))
    assert "seen: a car\n" in detectives.prompts["answer"][0]


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


def test_e_5_one_sources_score_by_hand():
    detectives = Detectives(
        {"question": ["cat"], "A": ["dog"], "B": ["dog"]}, {0: ("cat tree", True, "")}
    )
    _, heard = play(detectives, SceneFootage(["cat", "tree"]), Question("Where?", ("dog", "tree")))
    # caption: 0.3 · IDF(cat) / 3 + 0.7 · cos((1, 1)/√2, (1, 0))
    expected = 0.3 * lexical.idf("cat") / 3 + 0.7 / np.sqrt(2)
    assert dict(
        zip(
            [n.data["scene"] for n in heard.notes("observed")],
            scores(heard, "observed"),
            strict=True,
        )
    )[0].values[0] == pytest.approx(expected, abs=1e-4)


def test_equation_9_takes_the_text_without_the_times_that_stand_before_its_lines():
    said = lines((0, 4, "cat"), (4, 8, "tree"))
    detectives = Detectives({"question": ["cat"], "A": ["dog"], "B": ["dog"]}, {0: ("", True, "")})
    _, heard = play(
        detectives, SceneFootage(["cat", "tree"], speech=said), Question("Where?", ("dog", "tree"))
    )
    # heard: 0.5 · IDF(cat) / 3 + 0.5 · cos((1, 1)/√2, (1, 0)); the time of the line does not count
    expected = 0.5 * lexical.idf("cat") / 3 + 0.5 / np.sqrt(2)
    observed = dict(
        zip(
            [n.data["scene"] for n in heard.notes("observed")],
            scores(heard, "observed"),
            strict=True,
        )
    )
    assert observed[0].values[0] == pytest.approx(expected, abs=1e-4)
    assert lexical.untimed("[00:00:00] cat [1:02] tree [x]") == "cat tree [x]"


def test_line_26_packages_are_in_time_order_with_best_text_and_the_answer_cites_them():
    reports = {n: (f"a {FILM[n]}", False, "") for n in range(12)}
    detectives = Detectives(FACETS, reports, choice="B")
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


def test_facets_without_parts_get_the_words_of_their_option_and_letters_may_be_texts():
    detectives = Detectives({"question": [], "dog": ["tree"], "C": []})
    _, heard = play(detectives, SceneFootage(FILM))
    (said,) = heard.notes("facets")
    assert said.data["facets"] == {
        "question": [[], ["Where is it?"]],
        "A": [["cat"], ["cat"]],
        "B": [["tree"], ["tree"]],
        "C": [["car"], ["car"]],
    }


def test_parts_without_letters_belong_to_options_by_their_place():
    detectives = Detectives(
        {"question": ["sea"], "first": ["tree"], "second": ["hill"], "third": ["lake"]}
    )
    _, heard = play(detectives, SceneFootage(FILM))
    found = heard.notes("facets")[0].data["facets"]
    assert [found[letter][0] for letter in "ABC"] == [["tree"], ["hill"], ["lake"]]


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


def test_an_unreadable_observer_saw_nothing_and_needs_more():
    _, heard = play(Detectives(FACETS, mute=["observe"]), SceneFootage(FILM))
    assert all(n.data["needs_more"] and n.data["score"] == 0.0 for n in heard.notes("observed"))
    assert len(heard.notes("default_taken")) == 10


def test_an_unreadable_timeline_is_none_and_an_unreadable_answer_an_abstention():
    result, _ = play(Detectives(FACETS, mute=["timeline", "answer"]), SceneFootage(FILM))
    assert (result.answer.status, result.answer.choice, result.answer.evidence) == (
        "abstained",
        None,
        (),
    )


def test_open_ended_questions_have_a_facet_for_each_group_and_are_answered_in_words():
    facets = {"question": ["sea"], "1": ["dog"], "2": ["sea"], "3": ["dog"], "4": ["car"]}
    detectives = Detectives(facets, choice="A big dog.")
    result, heard = play(detectives, SceneFootage(FILM), Question("What is there?"))
    assert [*heard.notes("facets")[0].data["facets"]] == [
        "question",
        "1",
        "4",
    ]  # the same is said once
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


def test_a_spent_budget_gives_the_option_with_the_best_evidence_so_far():
    reports = {3: ("a dog", True, "")}
    result, _ = play(Detectives(FACETS, reports), SceneFootage(FILM), calls=8)
    assert (result.answer.choice, result.answer.status) == ("B", "budget_spent")
    question = Question("Which is NOT shown?", ("dog", "cat"))
    facets = {"question": [], "A": ["dog"], "B": ["cat"]}
    result, _ = play(Detectives(facets, reports), SceneFootage(FILM), question, calls=8)
    assert (result.answer.choice, result.answer.status) == ("B", "budget_spent")
