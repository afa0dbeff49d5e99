"""Selection of the frames worth an expensive look."""

import numpy as np
from drawings import card
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from longtake.algorithms.shots import runs, spans, survey


def thumbnail(picture: Image.Image) -> np.ndarray:
    return np.asarray(picture.convert("RGB").resize((64, 36), Image.Resampling.BILINEAR))


def plain(*colours: tuple[int, int, int]) -> np.ndarray:
    return np.stack([np.full((36, 64, 3), colour, np.uint8) for colour in colours])


def looked_at(film: np.ndarray) -> list[int]:
    return np.unique(survey(film)).tolist()


RED, GREEN, BLUE = (200, 20, 20), (20, 200, 20), (20, 20, 200)


def test_one_frame_per_distinct_shot():
    film = plain(RED, RED, RED, GREEN, GREEN, GREEN, RED, RED, BLUE)
    found = survey(film)
    assert np.unique(found).tolist() == [1, 4, 8]
    assert found.tolist() == [1, 1, 1, 4, 4, 4, 1, 1, 8]
    assert spans(found, 1) == [(0, 3), (6, 8)]


def test_cards_of_text_on_one_background_are_distinct():
    cards = [card("MUSIC AND SOUND"), card("The John Foundation"), card("VERY SPECIAL THANKS")]
    film = np.stack([thumbnail(picture) for picture in cards for _ in range(3)])
    assert looked_at(film) == [1, 4, 7]


def test_a_caption_on_a_still_picture_is_distinct():
    film = plain(*[BLUE] * 8)
    film[4:, 30:33, 20:44] = 255
    assert looked_at(film) == [2, 6]


def test_movement_in_a_moving_picture_is_not_distinct():
    random = np.random.default_rng(0)
    noisy = plain(GREEN)[0] + random.normal(0, 12, (9, 36, 64, 3))
    film = np.clip(noisy, 0, 255)
    for number, frame in enumerate(film):
        frame[10:16, 4 + number * 5 : 10 + number * 5] = 240
    assert len(looked_at(film.astype(np.uint8))) == 1


def restless(count: int) -> np.ndarray:
    """A still background with something constantly moving on its left half."""
    film = plain(*[BLUE] * count).copy()
    for number in range(count):
        film[number, 14:20, 2 + 5 * (number * 7 % 5) :][:, :6] = 230
    return film


def test_a_sign_beside_movement_is_distinct_unless_it_passes_quickly():
    film = restless(24)
    assert len(looked_at(film)) == 1
    film[8:10, 20:26, 48:56] = 240  # two pictures are too few to read
    assert len(looked_at(film)) == 1
    film[8:16, 20:26, 48:56] = 240
    found = survey(film)
    first, second = looked_at(film)
    assert 8 <= second < 16
    assert set(found[8:16].tolist()) == {second}
    assert set(found[16:].tolist()) == {first}  # known already


def test_a_still_card_does_not_represent_movement_on_a_similar_background():
    random = np.random.default_rng(1)
    still = [thumbnail(card("TITLE"))] * 4
    noisy = thumbnail(card()) + random.normal(0, 20, (5, 36, 64, 3))
    moving = np.clip(noisy, 0, 255).astype(np.uint8)
    found = survey(np.stack([*still, *moving]))
    assert set(found[:4].tolist()) & set(found[4:].tolist()) == set()


def test_the_settled_frame_is_chosen_not_the_fade():
    film = plain(*[(20, 20, 20 + min(step, 4) * 2) for step in range(9)])
    assert looked_at(film)[0] >= 5


def test_a_slow_change_is_looked_at_again():
    film = plain(*[(step * 4, 100, 255 - step * 4) for step in range(60)])
    assert len(looked_at(film)) >= 4
    assert max(end - begin for begin, end in runs(np.zeros((35, 36, 64, 3), np.uint8))) <= 10


def test_films_of_no_frames_and_of_one():
    assert looked_at(np.zeros((0, 36, 64, 3), np.uint8)) == []
    assert looked_at(plain(RED)) == [0]


@given(st.lists(st.sampled_from([RED, GREEN, BLUE, (0, 0, 0), (250, 250, 250)]), max_size=40))
def test_every_frame_has_a_representative_that_looks_like_it(colours):
    film = plain(*colours) if colours else np.zeros((0, 36, 64, 3), np.uint8)
    found = survey(film)
    assert all(found[each] == each for each in looked_at(film))
    assert np.array_equal(film[found], film)


def test_cards_of_small_print_are_distinct_and_a_moved_pointer_is_not():
    film = plain(*[(0, 0, 0)] * 8)
    # two names in small print: single pixels change, no tile does
    film[:4, 18, 20:40:2] = 40
    film[4:, 18, 21:41:2] = 40
    assert looked_at(film) == [2, 6]
    pointer = plain(*[(90, 90, 90)] * 8)
    pointer[:4, 10, 10:12] = 115
    pointer[4:, 20, 40:42] = 115
    assert len(looked_at(pointer)) == 1
