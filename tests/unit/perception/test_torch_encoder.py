"""Encoders in transformers' folder layout; those that compute need PyTorch (extra ``gpu``)."""

import json

import numpy as np
import pytest
import tinymodels

from longtake.errors import MissingExtra, ModelError
from longtake.perception.encoders import BuiltIns, open_encoder
from longtake.perception.torch_encoder import preprocessing
from longtake.types import Frame

SQUASH = {
    "size": {"height": 28, "width": 28},
    "resample": 3,
    "image_mean": [0.5] * 3,
    "image_std": [0.5] * 3,
}
CROP = SQUASH | {
    "size": {"shortest_edge": 32},
    "crop_size": {"height": 28, "width": 28},
    "do_center_crop": True,
}


def write(folder, config):
    (folder / "preprocessor_config.json").write_text(json.dumps(config))
    return folder


def test_a_square_size_squashes_the_picture(tmp_path):
    pixels = preprocessing("x", write(tmp_path, SQUASH))
    assert (pixels.fit, pixels.side, pixels.filter) == ("squash", 28, "bicubic")


def test_a_centre_crop_keeps_the_shorter_edge(tmp_path):
    pixels = preprocessing("x", write(tmp_path, CROP))
    assert (pixels.fit, pixels.resize, pixels.side) == ("crop", 32, 28)


@pytest.mark.parametrize("broken", [{"size": 3}, {"image_mean": None}, {"resample": 9}])
def test_an_incomplete_preprocessor_file_is_refused(tmp_path, broken):
    with pytest.raises(ModelError, match="does not say how to prepare pictures"):
        preprocessing("x", write(tmp_path, SQUASH | broken))


def test_a_folder_without_a_model_is_named(tmp_path):
    with pytest.raises(ModelError, match=r"config\.json cannot be read"):
        open_encoder("transformers", BuiltIns(tmp_path), folder=tmp_path / "nothing")


def test_without_pytorch_the_extra_is_named(tmp_path):
    try:
        import torch  # noqa: F401
    except ImportError:
        (tmp_path / "config.json").write_text("{}")
        with pytest.raises(MissingExtra, match=r"longtake\[gpu\]"):
            open_encoder("transformers", BuiltIns(tmp_path), folder=tmp_path)
    else:
        pytest.skip("PyTorch is installed")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A tiny vision model of SigLIP's shape with random weights."""
    pytest.importorskip("torch", reason="needs the extra gpu")
    return tinymodels.vision_folder(tmp_path_factory.mktemp("siglip"))


def pictures(count):
    rng = np.random.default_rng(1)
    return [
        Frame(float(i), rng.integers(0, 256, (36, 64, 3), dtype=np.uint8)) for i in range(count)
    ]


def test_rows_are_unit_vectors_whatever_the_batch(folder, tmp_path):
    encoder = open_encoder("transformers", BuiltIns(tmp_path), folder=folder)
    rows = encoder.images(pictures(9))
    assert rows.shape == (9, 32)
    assert encoder.images([]).shape == (0, 32)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    alone = np.concatenate([encoder.images([picture]) for picture in pictures(9)])
    assert np.allclose(rows, alone, atol=2e-2)


def test_pictures_are_prepared_as_pillow_does(folder, tmp_path):
    encoder = open_encoder("transformers", BuiltIns(tmp_path), folder=folder)
    ours = encoder._prepared(pictures(4)).cpu().numpy()
    pillow = encoder.pixels.prepare(pictures(4))
    one_level = 1 / 255 / 0.5
    assert np.abs(ours - pillow).max() <= one_level * 1.01


def test_other_weights_have_another_key(folder, tmp_path):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(1)
    model = transformers.AutoModel.from_pretrained(folder)
    with torch.no_grad():
        model.get_parameter(next(iter(dict(model.named_parameters())))).add_(1)
    other = write(tmp_path, SQUASH)
    model.save_pretrained(other)
    first = open_encoder("transformers", BuiltIns(tmp_path), folder=folder)
    assert first.key != open_encoder("transformers", BuiltIns(tmp_path), folder=other).key
