"""Cards, what is loaded from them, and how their files are fetched."""

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import tinymodels
from drawings import noise
from support.hub import serve_hub

from longtake.config import PerceptionSettings
from longtake.errors import ConfigError, ModelError
from longtake.llm.pull import pull_files
from longtake.perception.cards import (
    CARDS,
    WHISPER,
    CardImageTextEncoder,
    TextTower,
    card,
    identity,
    lay_out,
    open_card,
)
from longtake.perception.encoders import BuiltIns, card_folder, open_encoder
from longtake.perception.loader import PerceptionModels
from longtake.perception.protocols import Preprocessing

CLIP, SIGLIP, DINO = (
    CARDS["clip-vit-base-patch32"],
    CARDS["siglip2-base-patch16-224"],
    CARDS["dinov2-small"],
)


def test_an_unknown_card_names_the_nearest():
    with pytest.raises(ConfigError, match="siglip2-base-patch16-224"):
        card("siglip2-base-patch16-22")
    with pytest.raises(ConfigError, match="did you mean 'conse'"):
        open_encoder("cones", BuiltIns(Path("nowhere")))


def test_a_missing_file_says_how_to_get_it(tmp_path):
    with pytest.raises(
        ModelError, match=r"longtake models pull dinov2-small\) or copy it there from Xenova"
    ):
        open_encoder("dinov2-small", BuiltIns(tmp_path))


def test_files_may_lie_flat(tmp_path):
    tinymodels.vision(tmp_path / "model.onnx", DINO)
    assert open_card(DINO, tmp_path).images([noise(30, 40)]).shape == (1, 384)


def test_the_first_token_stands_for_the_picture(tmp_path):
    tinymodels.folder_for(DINO, tmp_path)
    encoder = open_card(DINO, tmp_path)
    sequence = encoder._vision.session.run(
        ("last_hidden_state",), {"pixel_values": DINO.pixels.prepare([noise(30, 40)])}
    )[0]
    first = sequence[:, 0] / np.linalg.norm(sequence[:, 0])
    assert encoder.images([noise(30, 40)]) == pytest.approx(first, abs=1e-5)


def test_a_model_of_another_shape_is_refused(tmp_path):
    tinymodels.vision(tmp_path / "onnx/vision_model.onnx", DINO)
    with pytest.raises(ModelError, match="returns last_hidden_state, not image_embeds"):
        open_card(CLIP, tmp_path)
    tinymodels.vision(tmp_path / "onnx/model.onnx", CARDS["clip-vit-base-patch32"])
    with pytest.raises(ModelError, match="not last_hidden_state"):
        open_card(DINO, tmp_path)


def test_a_damaged_model_is_refused_by_name(tmp_path):
    (tmp_path / "model.onnx").write_bytes(b"nothing of the kind")
    with pytest.raises(ModelError, match=r"model\.onnx: not a usable ONNX model"):
        open_card(DINO, tmp_path)


def test_texts_are_lower_cased_where_the_card_says_so(tmp_path):
    siglip = open_card(SIGLIP, tinymodels.folder_for(SIGLIP, tmp_path / "s"))
    clip = open_card(CLIP, tinymodels.folder_for(CLIP, tmp_path / "c"))
    assert isinstance(siglip, CardImageTextEncoder)
    assert isinstance(clip, CardImageTextEncoder)
    assert np.array_equal(siglip.texts(["Red Car"]), siglip.texts(["red car"]))
    assert not np.allclose(clip.texts(["Red Car"]), clip.texts(["red car"]), atol=1e-3)


def test_texts_are_padded_to_the_length_the_model_was_trained_on(tmp_path):
    siglip = open_card(SIGLIP, tinymodels.folder_for(SIGLIP, tmp_path / "s"))
    clip = open_card(CLIP, tinymodels.folder_for(CLIP, tmp_path / "c"))
    ids = siglip._feed(["a dog", "a red car runs"])["input_ids"]
    assert ids.shape == (2, 64)
    assert ids[0].tolist() == [11, 14, 1] + [0] * 61
    assert clip._feed(["a dog", "a red car runs"])["input_ids"].tolist() == [
        [11, 14, 49407, 49407, 49407],
        [11, 12, 13, 15, 49407],
    ]


def test_a_long_text_keeps_its_end():
    tower = TextTower("f", ("o",), length=4, end=9)
    assert lay_out([1, 2], tower) == [1, 2, 9]
    assert lay_out([1, 2, 9], tower) == [1, 2, 9]
    assert lay_out([1, 2, 3, 4, 5, 9], tower) == [1, 2, 3, 9]
    assert lay_out([], tower) == [9]


def test_the_key_changes_with_the_weights(tmp_path):
    tinymodels.folder_for(DINO, tmp_path)
    before = open_card(DINO, tmp_path).key
    file = tmp_path / DINO.image.file
    file.write_bytes(file.read_bytes() + b"\x0a\x00")  # one more, empty, string field
    assert identity(file) not in before


def test_normalised_pixels_are_those_of_the_formula():
    frame = type(noise(1, 1))(0.0, np.full((8, 8, 3), (0, 128, 255), np.uint8))
    pixels = Preprocessing(side=4, resize=4, mean=(0.5, 0.4, 0.3), std=(0.5, 0.2, 0.1))
    (picture,) = pixels.prepare([frame])
    assert picture.shape == (3, 4, 4)
    expected = [(0 - 0.5) / 0.5, (128 / 255 - 0.4) / 0.2, (1 - 0.3) / 0.1]
    assert picture.mean(axis=(1, 2)) == pytest.approx(expected, abs=1e-5)


def test_the_middle_is_what_is_cropped():
    pixels = np.zeros((100, 300, 3), np.uint8)
    pixels[:, 100:200] = 255
    frame = type(noise(1, 1))(0.0, pixels)
    cropped = Preprocessing(side=10, resize=10, mean=(0,) * 3, std=(1,) * 3).prepare([frame])
    squashed = Preprocessing(side=10, resize=10, mean=(0,) * 3, std=(1,) * 3, fit="squash").prepare(
        [frame]
    )
    assert cropped[:, :, :, 1:-1].min() == 1  # the filter reaches one pixel beyond the cut
    assert squashed.mean() == pytest.approx(1 / 3, abs=0.05)


def test_whisper_is_opened_from_what_was_pulled(tmp_path, monkeypatch):
    opened = []

    def model(folder, *, local_files_only):
        assert local_files_only
        opened.extend(file for file in WHISPER.files if (Path(folder) / file).is_file())
        return SimpleNamespace(model=SimpleNamespace(device="cpu"))

    module = SimpleNamespace(WhisperModel=model, BatchedInferencePipeline=None)
    monkeypatch.setitem(sys.modules, "faster_whisper", module)
    models = PerceptionModels(PerceptionSettings(listener="whisper"), tmp_path)
    with pytest.raises(ModelError, match=r"not downloaded yet .* longtake models pull whisper"):
        models.listener  # noqa: B018
    folder = card_folder("whisper", tmp_path)
    with serve_hub({file: file.encode() for file in WHISPER.files}) as (_, hub):
        monkeypatch.setenv("HF_ENDPOINT", hub)
        pull_files("whisper", WHISPER.repo, WHISPER.revision, WHISPER.files, folder)
    assert models.listener.key == "faster-whisper:whisper"
    assert opened == list(WHISPER.files)
