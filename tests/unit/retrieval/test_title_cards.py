"""Title cards among what is shown."""

import pytest

from longtake.retrieval.title_cards import title_cards
from longtake.types import Line, Segment


def shown(*screens):
    """Screens as ``(start, end, line, …)``."""
    return [Line(Segment(start, end), text) for start, end, *texts in screens for text in texts]


TRAILER = shown(
    (5, 6, "Peach Project presen"),
    (6, 10, "Peach Project presents", "BUNNY"),
    (11, 14, "An unlucky bird"),
    (33, 36, "And three rodent pests"),
)


def test_a_card_that_appears_letter_by_letter_is_one():
    assert [(card.segment, card.text) for card in title_cards(TRAILER, [], 60)] == [
        (Segment(5, 10), "Peach Project presents BUNNY"),
        (Segment(11, 14), "An unlucky bird"),
        (Segment(33, 36), "And three rodent pests"),
    ]


def test_what_is_shown_while_somebody_speaks_is_a_card_only_if_it_is_numbered():
    speech = [Line(Segment(0, 60), "so this is what we will see today")]
    assert title_cards(TRAILER, speech, 60) == []
    numbered = shown((5, 8, "1. THE LION"), (9, 12, "the lion roars"), (20, 23, "2. THE LYNX"))
    for spoken in (speech, []):
        cards = title_cards(numbered, spoken, 60)
        assert [card.text for card in cards] == ["1. THE LION", "2. THE LYNX"]


@pytest.mark.parametrize(
    "screens",
    [
        TRAILER[:2],  # one card divides nothing
        shown((1, 2, "The News"), (5, 9, "The News"), (20, 30, "The News"), (40, 42, "The end")),
        shown((40, 44, "Music and sound"), (44, 48, "Thanks to everybody")),  # credits
        shown((1, 5, "File", "Open", "Close", "Settings"), (5, 9, "File", "Open", "Close", "Help")),
        shown((1, 5, "xq"), (5, 9, "18:39")),
    ],
)
def test_other_words_on_the_screen_are_no_cards(screens):
    assert title_cards(screens, [], 60) == []
