"""How answers are told: citations with their kind, no guesses as evidence, footnotes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from longtake.runner.rendering import (
    RenderedAnswer,
    as_html,
    as_markdown,
    as_srt,
    kind_of,
    lookalikes,
    outcome,
    quoted,
    sureness,
    times_of,
)
from longtake.runner.session import CARRIED, carry_on, with_carried
from longtake.types import Answer, Evidence, Segment, Usage

HERE = Segment(61, 61)


@pytest.mark.parametrize(
    ("source", "text", "kind", "words"),
    [
        ("frame", "", "picture", ""),
        ("caption", "A man waves.", "picture, described", "A man waves."),
        ("caption", "May show: matchstick, nematode.", "picture", ""),
        ("caption", "May show: St. Bernard, nematode", "picture", ""),
        (
            "caption",
            "May show: a, b. Text: EXIT 4. Said: hello.",
            "read and heard",
            "EXIT 4. hello.",
        ),
        ("caption", "May show: a. May show: b. Text: c.", "read and heard", "c."),
        ("speech", "May show: that it holds.", "said", "May show: that it holds."),
        ("onscreen", "EXIT\n4", "text on screen", "EXIT 4"),
        ("subtitle", "Hello", "said (subtitles)", "Hello"),
    ],
)
def test_guesses_at_a_picture_are_no_evidence(source, text, kind, words):
    cited = Evidence(HERE, source, text)
    assert (kind_of(cited), quoted(cited)) == (kind, words)


def test_times():
    assert times_of(Evidence(HERE, "frame")) == "00:01:01"
    assert times_of(Evidence(Segment(1, 3), "speech")) == "00:00:01–00:00:03"


MOMENT = Evidence(Segment(0, 1), "speech", "Hello.")


@pytest.mark.parametrize(
    ("answer", "calibrated", "words"),
    [
        (Answer(confidence=1.0), True, "confidence high (100%)"),
        (Answer(confidence=0.6), True, "confidence fair (60%)"),
        (Answer(confidence=0.4), True, "confidence low (40%)"),
        (Answer(confidence=0.0), True, "confidence very low (0%)"),
        (Answer(confidence=0.9), False, "confidence high (90%, not calibrated)"),
        (Answer(), False, ""),
        (Answer(evidence=(MOMENT,)), False, "supported by 1 moment"),
        (Answer(evidence=(MOMENT, MOMENT)), False, "supported by 2 moments"),
    ],
)
def test_how_sure_an_answer_is(answer, calibrated, words):
    assert sureness(answer, calibrated=calibrated) == words


def told():
    evidence = (
        Evidence(Segment(1, 3), "speech", "the dog is red"),
        Evidence(Segment(9, 9), "caption", "May show: matchstick. Text: a cat sleeps."),
    )
    answer = Answer(text="The dog is red. A cat sleeps.", evidence=evidence)
    return RenderedAnswer(
        "Who? <b>", "film.mp4", "lookup", answer, Usage(), unseen=["the pictures"]
    )


def test_a_page_has_its_claims_as_footnotes_and_loads_nothing():
    page = as_html(told(), lambda _, time: b"\xff\xd8")
    assert 'The dog is red.<sup><a href="#c1">[1]</a></sup>' in page
    assert 'id="c2"' in page
    assert "matchstick" not in page
    assert "Who? &lt;b&gt;" in page
    assert "Not looked at: the pictures" in page
    assert "http" not in page


def test_markdown_links_to_the_times():
    text = as_markdown(told(), lambda _, time: f"film.mp4#t={time:.2f}")
    assert "1. [00:00:01–00:00:03](film.mp4#t=1.00) said “the dog is red”" in text
    assert "**The dog is red. \\[1\\] A cat sleeps. \\[2\\]**" in text


def test_citations_of_several_films_name_and_link_their_films():
    both = replace(told(), sources=["a_walk.mp4", "<b>.mp4"])
    text = as_markdown(both, lambda place, time: f"{place}#t={time:.0f}")
    assert "1. [a\\_walk.mp4 @ 00:00:01–00:00:03](0#t=1) said" in text
    # the second film is gone
    pictures = [b"\xff\xd8", b""]
    page = as_html(both, lambda place, _: pictures[place], lambda place, time: f"/{place}?t={time}")
    assert '<a href="/1?t=9"><strong>&lt;b&gt;.mp4 @ 00:00:09</strong></a>' in page
    assert page.count("<img") == 1


def test_what_is_carried_is_the_conversation_and_its_end_if_it_is_long():
    carried = carry_on("", "Who is\n it?", "The man.")
    assert carried == "Q: Who is it?\nA: The man."
    assert with_carried(" And then? ", "") == "And then?"
    asked = with_carried("And then?", carried)
    assert asked == "And then?\n(Earlier in this conversation: Q: Who is it?\nA: The man.)"
    long = carry_on("x" * CARRIED, "Last?", "Yes.")
    assert len(long) == CARRIED
    assert long.endswith("A: Yes.")


def test_what_a_search_finds_is_no_answer():
    frame = Evidence(Segment(61, 61), "frame", "pink jacket")
    answer = Answer(reason="the film does not say", status="abstained", nearest=(frame,))
    rendered = replace(told(), answer=answer)
    words = "not an answer, but a search for “pink jacket” finds pictures at 00:01:01"
    page = as_html(rendered, lambda _, time: b"\xff\xd8" if time == 61 else b"")
    assert words in page
    assert page.count("data:image/jpeg") == 1
    assert words in as_markdown(rendered, lambda _, time: "")
    assert lookalikes(answer) == words
    assert lookalikes(Answer()) == ""


def test_citations_are_subtitles():
    assert "00:00:01,000 --> 00:00:03,000\nthe dog is red\n" in as_srt(told())


@pytest.mark.parametrize(
    ("answer", "calls", "meaning"),
    [
        (Answer(text="Red."), 1, ""),
        (Answer(status="abstained", reason="the film does not say"), 0, "the film does not say"),
        (Answer(status="abstained"), 0, "no answer: nothing to answer from"),
        (Answer(status="abstained"), 2, "no answer: the model's replies could not be read"),
        (
            Answer(text="Red.", status="unsupported"),
            1,
            "no moment was found that supports this answer",
        ),
    ],
)
def test_each_outcome_has_its_own_sentence(answer, calls, meaning):
    assert outcome(answer, Usage(calls=calls)) == meaning
