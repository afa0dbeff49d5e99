"""The retrieval head as the default install runs it, without torch."""

import json
import math

import numpy as np
import pytest
from films import FILMS
from support.listening import listening
from support.talking import Team

from longtake.agents.run import Run
from longtake.config import PerceptionSettings, Settings
from longtake.errors import ConfigError, ModelError
from longtake.index.film import Film
from longtake.index.store import Store
from longtake.methods.lvagent.method import LVAgent
from longtake.perception.minilm import MeanPooling
from longtake.perception.retriever import RetrievalHead, Shape, initial
from longtake.runner.session import solve
from longtake.types import Question

SHAPE = Shape(dim=16, layers=2, heads=4, frames=6)


class Encoder:
    """An encoder's name tag."""

    name, key, dim, size = "tiny", "tiny:1", 16, 224

    def images(self, frames):
        raise AssertionError("the head never looks at pictures")


def unit(rows):
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def write_head(folder, weights, shape=SHAPE, encoder=Encoder, **card):
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / "head.npz", **weights)
    who = {"name": encoder.name, "key": encoder.key, "dim": encoder.dim}
    (folder / "head.json").write_text(json.dumps({"encoder": who, **shape.plain(), **card}))
    return folder


def strong_weights(seed=0, shape=SHAPE):
    """Weights that matter: the way out is as loud as the frames."""
    weights = initial(shape, seed)
    return {**weights, "out.weight": weights["out.weight"] * 10 * shape.dim / math.sqrt(shape.dim)}


@pytest.fixture
def rows():
    random = np.random.default_rng(5)
    return lambda n: unit(random.normal(size=(n, 16))).astype(np.float32)


def test_the_network_scores_as_its_definition_says(tmp_path, rows):
    head = RetrievalHead(write_head(tmp_path / "head", strong_weights()), Encoder())
    # computed from the definition, one clip and one attention head at a time
    for count, expected in (
        (1, [0.23496, 0.20803, -0.04175, 0.21174, -0.18207]),
        (2, [0.35727, 0.41004, -0.0903, 0.14565, -0.24294]),
        (6, [0.31634, 0.1746, 0.36769, 0.04373, 0.05951]),
    ):
        frames, texts = rows(count), rows(5)
        assert head.scores(frames, texts) == pytest.approx(expected, abs=1e-5)


def test_an_untrained_head_is_the_pooled_frames_with_the_closest_counted_double(tmp_path, rows):
    weights = {**initial(SHAPE, 0), "out.weight": np.zeros((16, 16), np.float32)}
    frames, texts = rows(4), rows(1)
    closest = frames[int(np.argmax(frames @ texts[0]))]
    expected = float(unit(unit(frames + closest).mean(0)) @ texts[0])
    head = RetrievalHead(write_head(tmp_path / "h", weights), Encoder())
    assert head.scores(frames, texts) == pytest.approx([expected])


def test_order_matters_to_the_head_and_not_to_the_mean(tmp_path, rows):
    head = RetrievalHead(write_head(tmp_path / "head", strong_weights()), Encoder())
    frames, texts = rows(6), rows(3)
    assert np.abs(head.scores(frames, texts) - head.scores(frames[::-1], texts)).max() > 0.01
    backwards = MeanPooling().scores(frames[::-1], texts)
    assert MeanPooling().scores(frames, texts) == pytest.approx(backwards, abs=1e-6)


def test_long_clips_are_thinned_out_and_empty_ones_score_nothing(tmp_path, rows):
    head = RetrievalHead(write_head(tmp_path / "head", strong_weights()), Encoder())
    frames, texts = rows(20), rows(2)
    thin = frames[np.linspace(0, 19, 6).astype(int)]
    assert head.scores(frames, texts) == pytest.approx(head.scores(thin, texts))
    assert head.scores(frames[:0], texts).tolist() == [0, 0]
    assert head.scores(frames, texts[:0]).shape == (0,)


def test_a_head_of_another_encoder_is_refused(tmp_path):
    folder = write_head(tmp_path / "head", initial(SHAPE, 0))

    class Other(Encoder):
        name, key = "other", "other:1"

    with pytest.raises(ConfigError, match="trained on vectors of tiny"):
        RetrievalHead(folder, Other())


@pytest.mark.parametrize("broken", ["nothing", "no weights", "cut off", "no frames", "not json"])
def test_a_folder_without_a_head_is_named(tmp_path, broken):
    folder = write_head(tmp_path / "head", initial(SHAPE, 0))
    if broken == "nothing":
        folder = tmp_path / "elsewhere"
    elif broken == "no weights":
        (folder / "head.npz").unlink()
    elif broken == "cut off":
        (folder / "head.npz").write_bytes((folder / "head.npz").read_bytes()[:1000])
    elif broken == "no frames":
        (folder / "head.json").write_text('{"encoder": {"key": "x"}}')
    else:
        (folder / "head.json").write_text("hm")
    with pytest.raises(ModelError, match="contains no retrieval head"):
        RetrievalHead(folder, Encoder())


def test_vectors_that_heads_cannot_share_are_refused():
    with pytest.raises(ConfigError, match="cannot be split among"):
        Shape(dim=10, heads=4)


def test_a_film_is_searched_with_the_head_that_the_settings_name(
    film_folder, tmp_path, lend_models
):
    path, folder = FILMS[0].make(film_folder), tmp_path / "head"
    settings = Settings(perception=PerceptionSettings(listener="none", retriever=str(folder)))
    film = Film(path, Store(lend_models(tmp_path / "cache")), settings)
    shape = Shape(film.encoder.dim, layers=1, frames=16)
    write_head(
        folder,
        initial(shape, 0),
        shape,
        film.encoder,
        thresholds={"chunk_low": 0.1, "chunk_high": 0.3},
    )
    team = Team({"ann": ["A"]}, {})
    with listening() as heard:
        solve(
            LVAgent(native_whole=False),
            film,
            Question("Which?", ("one", "two")),
            Run({}, team=team.agents),
        )
    assert heard.notes("retrieval")[0].data["scorer"].startswith("head:")
    assert film.retriever.thresholds == {"chunk_low": 0.1, "chunk_high": 0.3}
    assert film.native_frames == len(film.video.table) > 0
