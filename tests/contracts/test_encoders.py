"""What every encoder promises, asked of every encoder."""

from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
import pytest
import tinymodels
from drawings import as_frame, honeycomb, noise

from longtake import registry
from longtake.perception.cards import CARDS, open_card
from longtake.perception.encoders import BuiltIns, open_encoder
from longtake.perception.minilm import MiniLM
from longtake.perception.protocols import ImageEncoder, ImageTextEncoder, TextEncoder
from longtake.perception.runtime import Compute

SMALL = Compute(threads=2, batch=3)
TEXTS = ["a red car", "the dog runs", "street", "a red car runs the street " * 30, ""]


@pytest.fixture(scope="module")
def opened(prepared_models, tmp_path_factory):
    """Encoders by name, each opened once."""

    @cache
    def open_once(name):
        if name == "minilm":
            return MiniLM(compute=SMALL)
        folder = tmp_path_factory.mktemp(name)
        if name in CARDS:
            return open_card(CARDS[name], tinymodels.folder_for(CARDS[name], folder), compute=SMALL)
        if name == "transformers":
            pytest.importorskip("torch", reason="needs the extra gpu")
            folder = tinymodels.vision_folder(folder)
        return open_encoder(name, BuiltIns(prepared_models, SMALL), folder=folder)

    return open_once


@pytest.fixture(params=registry.encoders.names())
def encoder(request, opened):
    return opened(request.param)


@pytest.fixture(params=["minilm", *(name for name, card in CARDS.items() if card.text)])
def texter(request, opened):
    return opened(request.param)


@pytest.fixture(scope="module")
def frames():
    sizes = [(90, 160), (1, 1), (301, 77), (17, 640), (360, 640)]
    return [
        as_frame(honeycomb()),
        *(noise(high, wide, seed) for seed, (high, wide) in enumerate(sizes)),
    ]


@pytest.mark.usefixtures("networks_run_anew")
def test_rows_are_unit_and_the_same_for_the_same_frames_alone_together_and_in_threads(
    encoder, frames
):
    rows = encoder.images(frames)
    assert rows.shape == (len(frames), encoder.dim)
    assert rows.dtype == np.float32
    assert np.linalg.norm(rows, axis=1) == pytest.approx(1, abs=1e-5)
    assert float(rows[0] @ rows[1]) < 0.999, "different pictures"
    assert np.array_equal(encoder.images(frames), rows)
    alone = np.concatenate([encoder.images([frame]) for frame in frames])
    assert rows == pytest.approx(alone, abs=2e-4)
    with ThreadPoolExecutor(2) as pool:
        for again in pool.map(lambda _: encoder.images(frames), range(2)):
            assert again == pytest.approx(rows, abs=2e-4)


def test_no_frames_give_no_rows_of_the_right_width(encoder):
    rows = encoder.images([])
    assert rows.shape == (0, encoder.dim)
    assert rows.dtype == np.float32


def test_a_view_with_odd_strides_is_the_same_picture_and_no_picture_is_changed(encoder):
    whole = noise(80, 120)
    before = whole.pixels.copy()
    mirrored = type(whole)(0.0, whole.pixels[:, ::-1][:, ::-1])
    assert np.array_equal(encoder.images([whole]), encoder.images([mirrored]))
    assert np.array_equal(whole.pixels, before)


def test_it_says_who_it_is_and_whether_texts_share_its_space(encoder):
    assert isinstance(encoder, ImageEncoder)
    assert encoder.name in registry.encoders.names()
    assert encoder.key.startswith(encoder.name)
    assert 200 <= encoder.size <= 400
    if isinstance(encoder, ImageTextEncoder):
        assert encoder.texts(["a red car"]).shape == (1, encoder.dim)
        assert all(np.isfinite(value) for value in encoder.thresholds.values())


def test_texts_are_unit_rows_whatever_their_length_alone_and_together(texter):
    rows = texter.texts(TEXTS)
    assert isinstance(texter, TextEncoder)
    assert rows.shape == (len(TEXTS), texter.dim)
    assert rows.dtype == np.float32
    # an empty text may have no direction
    assert np.isfinite(rows).all()
    assert np.linalg.norm(rows[:4], axis=1) == pytest.approx(1, abs=1e-5)
    assert float(rows[0] @ rows[1]) < 0.99, "different texts"
    alone = np.concatenate([texter.texts([text]) for text in TEXTS])
    assert rows == pytest.approx(alone, abs=1e-4)
    assert texter.texts([]).shape == (0, texter.dim)
