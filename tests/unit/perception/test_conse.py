"""Texts, and pictures by way of their tags."""

from types import SimpleNamespace

import numpy as np
import pytest
from drawings import KNOWN, as_frame

from longtake.perception.conse import CONFIDENT, TOP, ConSE
from longtake.perception.efficientnet import class_glosses
from longtake.perception.encoders import BuiltIns, open_image_text_encoder
from longtake.perception.minilm import FEW, MeanPooling, MiniLM, bert_tokenizer


@pytest.fixture(scope="module")
def encoder(prepared_models) -> ConSE:
    made = open_image_text_encoder("conse", BuiltIns(prepared_models))
    assert isinstance(made, ConSE)
    return made


@pytest.fixture(scope="module")
def shots(encoder):
    return encoder.images([as_frame(draw()) for draw in KNOWN.values()])


QUERIES = {
    "honeycomb": "bees make honey",
    "abacus": "counting with beads",
    "jack-o'-lantern": "a halloween pumpkin",
    "crossword puzzle": "a word game on paper",
    "traffic light": "red light at a street crossing",
}


@pytest.mark.parametrize("name", KNOWN)
def test_a_description_finds_its_picture(encoder, shots, name):
    (text,) = encoder.texts([QUERIES[name]])
    assert list(KNOWN)[int((shots @ text).argmax())] == name


def test_what_is_there_stands_out_and_nonsense_does_not(encoder, shots):
    real = encoder.surprise(encoder.texts(list(KNOWN)), shots)
    nonsense = encoder.surprise(
        encoder.texts(["xqzzt blorf", "purple quantum tax", "the of and to"]), shots
    )
    assert np.median(np.diag(real)) > CONFIDENT > nonsense.max()
    assert np.diag(real).min() > nonsense.max()
    assert encoder.thresholds == {"surprise": CONFIDENT}


def test_a_certain_picture_is_its_class(encoder):
    row = np.zeros((1, 1000), np.float32)
    row[0, 652] = 1
    (picture,) = encoder.from_probabilities(row)
    (text,) = encoder.texts([class_glosses()[652]])
    assert picture @ text == pytest.approx(1, abs=1e-5)


def test_only_the_most_probable_classes_count(encoder):
    row = np.linspace(0.001, 0.002, 1000, dtype=np.float32)[None]
    top_only = row.copy()
    top_only[0, : 1000 - TOP] = 0
    assert encoder.from_probabilities(row) == pytest.approx(
        encoder.from_probabilities(top_only), abs=1e-6
    )


def test_meaning_orders_texts():
    rows = MiniLM().texts(
        ["a dog runs on grass", "a puppy playing outside", "the stock market fell"]
    )
    assert rows[0] @ rows[1] > 0.4 > rows[0] @ rows[2]


def test_a_question_does_not_wait_until_the_network_is_optimised(monkeypatch):
    texts = MiniLM()
    monkeypatch.setattr(MiniLM, "_optimised", None)
    few = texts.texts(["a dog runs on grass"])
    monkeypatch.undo()
    many = texts.texts(["a dog runs on grass", *map(str, range(FEW))])
    assert np.abs(few[0] - many[0]).max() < 1e-5


def test_word_pieces_are_those_of_bert():
    ids = bert_tokenizer().encode("Hello, wörld! naïve café").ids
    assert ids == [101, 7592, 1010, 2088, 999, 15743, 7668, 102]


def test_text_that_looks_like_a_special_token_stays_text():
    ids = bert_tokenizer().encode("[SEP]").ids
    assert ids[0] == 101
    assert ids.count(102) == 1


def test_a_clip_is_the_mean_of_its_frames():
    frames = np.array([[1, 0], [0, 1]], np.float32)
    scores = MeanPooling().scores(frames, np.array([[1, 0], [-1, 0], [0.6, 0.8]], np.float32))
    assert scores == pytest.approx([0.70711, -0.70711, 0.98995], abs=1e-4)


def test_a_clip_without_frames_scores_nothing():
    assert MeanPooling().scores(
        np.zeros((0, 2), np.float32), np.ones((3, 2), np.float32)
    ).tolist() == [0, 0, 0]


class Counting:
    """A quick text encoder: each text as its length."""

    key, dim = "counting", 2

    def texts(self, texts):
        return np.array([[len(text), 1] for text in texts], np.float32)


@pytest.mark.parametrize("keep", [0, 20, 5000])
def test_class_vectors_are_kept_and_damaged_ones_made_again(tmp_path, keep):
    tagger = SimpleNamespace(key="tagger")
    encoder = ConSE(tmp_path, images=tagger, texts=Counting())
    # nobody waits for them who only asks what is indexed
    assert not list(tmp_path.iterdir())
    classes = encoder._classes
    (file,) = (tmp_path / "models").glob("imagenet-glosses-*.npy")
    data = file.read_bytes()
    np.save(file, 0 * classes)
    assert not ConSE(tmp_path, images=tagger, texts=Counting())._classes.any()
    file.write_bytes(data[:keep])
    assert (ConSE(tmp_path, images=tagger, texts=Counting())._classes == classes).all()
    assert file.read_bytes() == data
