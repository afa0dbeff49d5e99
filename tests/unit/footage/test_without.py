"""Footage with stretches removed: nothing of them is left, everything else is."""

import numpy as np
from processes import Bags
from support.footages import TestFootage

from longtake.footage.look import fused
from longtake.footage.plain import CaptionedFootage, FootageWithout
from longtake.llm.backend import Description
from longtake.types import Frame, Line, Segment

REMOVED = (Segment(3.0, 5.0), Segment(8.0, 8.5))
LINES = [Line(Segment(start, start + 1.5), f"line {start}") for start in (0.0, 2.0, 5.0, 8.2)]


class Describer:
    revision = "r"

    def describe(self, frame, channels):
        assert "speech" not in channels  # lines of the whole film, which may be removed
        return Description(tags=(f"tag {frame.time:g}",))


class Described(TestFootage):
    def describer(self):
        return Describer()

    def kept(self, name):
        return {"name": name, "digest": "of the whole film"}


def test_pictures_lines_and_embeddings_of_removed_stretches_are_gone():
    whole = Described(10, {"cup": [4, 6]}, LINES, LINES)
    left = FootageWithout(whole, REMOVED)
    assert [bool(frame.pixels.any()) for frame in left.at([2.0, 3.0, 4.9, 5.0, 8.0, 9.0])] == [
        True,
        False,
        False,
        True,
        False,
        True,
    ]
    texts = ["line 0.0", "line 5.0"]
    assert [line.text for line in left.speech()] == texts
    assert [line.text for line in left.onscreen(Segment(4, 10))] == texts[1:]
    assert [[line.text for line in lines] for lines in left.known_lines()] == [texts, texts]
    blank = ~left.embeddings().any(axis=1)
    assert np.flatnonzero(blank).tolist() == [3, 4, 8]
    assert np.array_equal(left.embeddings()[~blank], whole.embeddings()[~blank])
    assert np.flatnonzero(~left.features().any(axis=1)).tolist() == [3, 4, 8]
    assert whole.embeddings().any(axis=1).all()
    # what was noted about the whole film would tell of the removed stretches
    assert left.kept("overview") is None


def test_descriptions_tell_nothing_of_removed_stretches():
    left = FootageWithout(Described(10, lines=LINES), REMOVED)
    describer = left.describer()
    pixels = np.zeros((4, 4, 3), np.uint8)
    asked = ["tags", "speech"]
    assert describer.describe(Frame(4.0, pixels), asked) == Description()
    assert describer.describe(Frame(2.0, pixels), asked) == Description(
        tags=("tag 2",), speech=("line 0.0", "line 5.0")
    )
    assert describer.describe(Frame(2.0, pixels), ["tags"]).speech == ()
    assert describer.revision != FootageWithout(Described(10), REMOVED[:1]).describer().revision
    assert FootageWithout(TestFootage(10), REMOVED).describer() is None


def test_captions_of_removed_stretches_say_so():
    whole = CaptionedFootage("v", [f"caption {second}" for second in range(10)], Bags())
    left = FootageWithout(whole, REMOVED)
    assert left.captions([2.0, 3.0, 5.0]) == ["caption 2", "(removed)", "caption 5"]
    assert left.has == {"captions"}
    assert left.duration == 10.0


class Signs(TestFootage):
    """Two signs, and a picture that looks like the first one's words."""

    def known_lines(self):
        return [], [
            Line(Segment(10, 16), "SUMMER FERRY 55"),
            Line(Segment(20, 23.5), "WINTER TUNNEL 16"),
        ]


def test_where_the_text_itself_is_shown_no_picture_stands_out_more():
    scores = fused(Signs(40, {"summer ferry 5S": [30]}), "summer ferry 5S")  # one letter misread
    assert np.flatnonzero(scores == scores.max()).tolist() == list(range(10, 16))
    assert np.argsort(-scores)[6] == 30


def test_words_that_are_only_alike_are_weighed_against_pictures():
    scores = fused(Signs(40, {"a winter day": [30]}), "a winter day")
    assert scores.argmax() == 30
    assert scores[20] == scores[23] > scores[10]
