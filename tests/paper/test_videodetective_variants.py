"""VideoDetective's ablations (Table 3), captions alone, defaults and presets."""

from __future__ import annotations

import dataclasses

import pytest
from support.detecting import FACETS, FILM, Detectives, SceneFootage, play, scores
from support.talking import TalkingFootage

from longtake.algorithms import sampling
from longtake.errors import ConfigError
from longtake.lab.model import make
from longtake.methods.base import configure
from longtake.methods.videodetective.method import VideoDetective, most_tokens
from longtake.tracing.events import Noted


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
    play(
        detectives, SceneFootage(FILM), method=VideoDetective(decomposition=False, refinement=False)
    )
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


def test_captions_alone_are_looked_at_as_words():
    footage = TalkingFootage([("cat", 20), ("dog", 20), ("car", 20)])
    footage.encoder.thresholds["scene"] = 0.5

    class Readers(Detectives):
        def observe(self, times, options):
            return {
                "reasoning": "",
                "caption": "a cat",
                "needs_more_info": False,
                "missing_keyword": "",
            }

    readers = Readers(FACETS)
    result, _ = play(readers, footage)
    assert result.usage.frames == 0
    assert "[00:00:00] a cat at 0" in readers.prompts["answer"][0]


def test_defaults_are_the_papers_and_presets_what_they_say():
    ours = VideoDetective()
    rule = ours.graph
    assert (rule.alpha, rule.tau, rule.top, rule.min_frames, rule.iterations, rule.beta) == (
        0.6,
        30.0,
        8,
        10,
        7,
        0.6,
    )
    assert (ours.frames, ours.base_steps, ours.steps_per_option, ours.looking.window) == (
        32,
        10,
        1,
        9,
    )
    assert (ours.retry_below, ours.fallback_max, ours.fallback_mean, ours.fallback_gap) == (
        0.2,
        0.4,
        0.2,
        0.15,
    )
    assert (ours.packages, ours.picking.per_package, ours.min_uniform, ours.eta) == (8, 4, 4, 0.2)
    assert (ours.picking.duplicate, ours.picking.relaxed, ours.picking.similar) == (
        0.92,
        0.95,
        0.90,
    )
    assert dataclasses.astuple(ours.looking.weights) == (0.7, 0.5, 0.3)
    assert (ours.prior_weight, ours.looking.z_lex, ours.vlm_tokens, ours.llm_tokens) == (
        0.5,
        3.0,
        4096,
        2048,
    )
    printed = configure(VideoDetective, {"preset": "paper"})
    assert (printed.graph.theta_sim, printed.graph.max_frames, printed.printed_prior) == (
        0.82,
        None,
        True,
    )
    assert (
        configure(VideoDetective, {"preset": "released", "graph": {"top": 4}}).graph.theta_sim
        == 0.82
    )
    with pytest.raises(ConfigError, match="unknown preset"):
        configure(VideoDetective, {"preset": "printed"})


def test_replies_are_no_longer_than_an_eighth_of_what_the_model_holds():
    chat = make("acuity=0.8,context=4096")
    assert most_tokens(chat, 4096) == 512
    assert most_tokens(make("acuity=0.8"), 4096) == 4096


def test_notes_are_events():
    _, heard = play(Detectives(FACETS), SceneFootage(FILM))
    assert {"facets", "observed"} <= {event.label for event in heard.of(Noted)}
