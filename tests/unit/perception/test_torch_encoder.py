"""Encoders in transformers' folder layout; those that compute need PyTorch (extra ``gpu``)."""

import json

import numpy as np
import pytest
import tinymodels

from longtake.errors import MissingExtra, ModelError
from longtake.perception.encoders import BuiltIns, open_encoder
from longtake.perception.torch_encoder import ALIGNED, align_hidden_layers, preprocessing
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


def test_aligned_layers_give_the_same_vectors(folder, tmp_path):
    encoder = open_encoder("transformers", BuiltIns(tmp_path), folder=folder)
    before = encoder.images(pictures(3))
    align_hidden_layers(encoder._model)
    shapes = {name: part.shape for name, part in encoder._model.named_parameters()}
    assert {shapes[name][0] % ALIGNED for name in shapes if "fc1.weight" in name} == {0}
    assert np.allclose(encoder.images(pictures(3)), before, atol=1e-5)


def test_aligned_layers_are_compiled_whole(folder, tmp_path):
    torch = pytest.importorskip("torch")
    encoder = open_encoder("transformers", BuiltIns(tmp_path), folder=folder)
    before = encoder.images(pictures(3))
    align_hidden_layers(encoder._model)
    # tracing is what can break; the code that a compiler makes of it is its own affair
    encoder._network = torch.compile(encoder._network, backend="aot_eager", fullgraph=True)
    assert np.allclose(encoder.images(pictures(3)), before, atol=1e-5)


@pytest.mark.parametrize("kind", ["clip", "dinov2"])
def test_other_layouts_give_the_same_vectors(kind):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(2)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
    sizes |= {"image_size": 28, "patch_size": 14}
    if kind == "clip":
        config = transformers.CLIPVisionConfig(intermediate_size=72, **sizes)
        model = transformers.CLIPVisionModel(config).eval()
    else:
        model = transformers.Dinov2Model(transformers.Dinov2Config(**sizes)).eval()
    values = torch.randn(2, 3, 28, 28)
    with torch.inference_mode():
        before = model(pixel_values=values).pooler_output
        align_hidden_layers(model)
        after = model(pixel_values=values).pooler_output
    assert torch.allclose(before, after, atol=1e-5)
