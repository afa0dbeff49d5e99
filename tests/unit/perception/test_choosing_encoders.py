"""Encoders are chosen by name and purpose; installed packages add their own."""

from __future__ import annotations

import dataclasses
import sys

import numpy as np
import pytest
import tinymodels
from films import FILMS

from longtake import registry
from longtake.algorithms.partition import EventPartition
from longtake.config import PerceptionSettings, Settings, load
from longtake.errors import ConfigError
from longtake.index.film import Film
from longtake.index.search import search
from longtake.index.store import Store
from longtake.perception.cards import CARDS
from longtake.perception.efficientnet import EfficientNetLite2
from longtake.perception.encoders import card_folder
from longtake.perception.loader import PerceptionModels


class Redness:
    """A plug-in encoder: how red a picture is, and whether a text says so."""

    name = "redness"
    key = "redness:1"
    dim = 2
    size = 36
    logit_scale = None

    def __init__(self, setup):
        self.setup = setup
        self.thresholds = {}

    def images(self, frames):
        means = np.array([frame.pixels.mean(axis=(0, 1)) for frame in frames]).reshape(-1, 3)
        rows = np.stack([means[:, 0], means[:, 1:].mean(axis=1) + 1], axis=1).astype(np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def texts(self, texts):
        return np.array([[1.0, 0.0] if "red" in t else [0.0, 1.0] for t in texts], np.float32)


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """An installed package, as far as its metadata goes, whose entry point is the class above."""
    folder = tmp_path / "site"
    info = folder / "redness-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: redness\nVersion: 1.0\n")
    entry = "[longtake.encoders]\nredness = redness_plugin:Redness\n"
    (info / "entry_points.txt").write_text(entry)
    (folder / "redness_plugin.py").write_text(
        "from unit.perception.test_choosing_encoders import Redness\n"
    )
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setattr(registry.encoders, "_plugins_read", False)
    yield
    sys.modules.pop("redness_plugin", None)


def film_with(film_folder, tmp_path, **perception):
    settings = Settings(perception=PerceptionSettings(listener="none", reader=False, **perception))
    return Film(FILMS[0].make(film_folder), Store(tmp_path / "cache"), settings)


def test_an_encoder_of_another_package_is_used_for_search(plugin, film_folder, tmp_path):
    film = film_with(film_folder, tmp_path, images="redness")
    hits = search(film, "something red").hits
    redness = film.embeddings() @ film.encode(["red"])[0]
    assert film.embeddings().shape == (len(film.times), 2)
    assert hits[0].time == pytest.approx(film.times[redness.argmax()])
    assert film.senses.images.setup.name == "redness"
    assert "redness:1" in str([layer.key for layer in film.pictures.layers()])


def test_the_encoder_that_finds_changes_is_chosen_by_its_own_setting(
    film_folder, tmp_path, lend_models
):
    card = CARDS["dinov2-small"]
    tinymodels.folder_for(card, card_folder(card.name, lend_models(tmp_path / "cache")))
    film = film_with(film_folder, tmp_path, scene_encoder="dinov2-small")
    assert film.features().shape == (len(film.times), 384)
    assert film.blocks(EventPartition()).duration == film.duration
    stored = " ".join(path.read_text() for path in film.folder.path.glob("layers/*/meta.json"))
    assert film.senses.scene_encoder.key in stored
    assert film.embeddings().shape[1] == 384  # search keeps its own encoder, ConSE
    assert film.senses.images.name == "conse"


def test_built_in_encoders_share_one_network(prepared_models):
    senses = PerceptionModels(PerceptionSettings(), prepared_models)
    assert isinstance(senses.scene_encoder, EfficientNetLite2)
    assert senses.scene_encoder is senses.tagger is senses.images.network


def test_every_card_is_registered():
    others = {"conse", "efficientnet-lite2", "transformers"}
    assert set(CARDS) == set(registry.encoders.names()) - others


def test_only_registered_names_are_encoders(tmp_path):
    """An address would let a configuration in a working folder run code."""
    for name in ("os:getcwd", "nothing", "conse:ConSE"):
        opened = PerceptionModels(PerceptionSettings(scene_encoder=name), tmp_path)
        with pytest.raises(ConfigError, match="unknown encoder"):
            opened.scene_encoder  # noqa: B018


def test_an_encoder_without_texts_is_refused_for_search(tmp_path):
    with pytest.raises(ConfigError, match=r"encodes pictures only; search needs .* such as conse"):
        PerceptionModels(PerceptionSettings(images="efficientnet-lite2"), tmp_path).images  # noqa: B018


def test_the_old_names_of_the_settings_still_work():
    old = ("perception.encoder=clip-vit-base-patch32", "perception.encoder_folder=/clip")
    chosen = load(assignments=(*old, "perception.looks=dinov2-small")).perception
    assert chosen.scene_encoder == "dinov2-small"
    assert (chosen.images, chosen.images_folder) == ("clip-vit-base-patch32", "/clip")
    assert {"images", "scene_encoder"} <= dataclasses.asdict(chosen).keys()
