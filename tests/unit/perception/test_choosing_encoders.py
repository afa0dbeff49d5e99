"""Encoders are chosen by name and purpose; installed packages add their own."""

import pytest
import tinymodels
from films import FILMS

from longtake import registry
from longtake.algorithms.partition import EventPartition
from longtake.config import PerceptionSettings, Settings, load
from longtake.errors import ConfigError
from longtake.index.film import Film
from longtake.index.store import Store
from longtake.perception.cards import CARDS
from longtake.perception.efficientnet import EfficientNetLite2
from longtake.perception.encoders import card_folder
from longtake.perception.loader import PerceptionModels


def film_with(film_folder, tmp_path, **perception):
    settings = Settings(perception=PerceptionSettings(listener="none", reader=False, **perception))
    return Film(FILMS[0].make(film_folder), Store(tmp_path / "cache"), settings)


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


@pytest.mark.parametrize(("former", "now"), [("encoder", "images"), ("looks", "scene_encoder")])
def test_a_former_name_of_a_setting_is_an_error_that_says_the_present_one(former, now):
    with pytest.raises(ConfigError, match=f"is now perception.{now}"):
        load(assignments=(f"perception.{former}=dinov2-small",))
