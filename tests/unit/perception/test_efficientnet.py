"""The built-in eyes see what is there."""

import numpy as np
import onnx
import pytest
from drawings import KNOWN, as_frame, noise
from onnx import numpy_helper

from longtake.errors import ModelError
from longtake.perception import efficientnet
from longtake.perception.efficientnet import EfficientNetLite2, best_tags, class_names, network
from longtake.perception.runtime import without_subnormals
from longtake.perception.weight_files import Network, read_weights


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def eyes(cache):
    return EfficientNetLite2(cache)


@pytest.mark.parametrize("name", KNOWN)
def test_a_drawing_is_tagged_as_what_it_shows(eyes, name):
    tags = best_tags(eyes.probabilities([as_frame(KNOWN[name]())])[0])
    assert tags[0].name == name
    assert tags[0].probability > 0.3
    assert len(tags) == 5


def test_features_of_like_pictures_are_closer(eyes):
    combs = [as_frame(KNOWN["honeycomb"]()), as_frame(KNOWN["honeycomb"]().resize((300, 260)))]
    rows = eyes.images([*combs, as_frame(KNOWN["abacus"]())])
    assert rows[0] @ rows[1] > 0.8 > rows[0] @ rows[2]


def test_probabilities_are_a_distribution(eyes):
    rows = eyes.probabilities([noise(50, 50)])
    assert rows.shape == (1, 1000)
    assert rows.sum() == pytest.approx(1, abs=1e-4)


def test_the_edges_of_a_wide_frame_are_seen(eyes):
    wide = np.full((360, 1280, 3), 128, np.uint8)
    wide[:, :360] = np.asarray(KNOWN["honeycomb"]().resize((360, 360)))
    plain = type(noise(1, 1))(0.0, np.full((360, 1280, 3), 128, np.uint8))
    frame = type(plain)(0.0, wide)
    assert eyes.images([plain])[0] @ eyes.images([frame])[0] < 0.9


def test_the_network_is_valid_onnx_with_every_weight_used(cache):
    weights = read_weights(efficientnet.packaged_weights())
    model = onnx.load_model_from_string(network(weights))
    onnx.checker.check_model(model, full_check=True)
    kernels = {
        name
        for name in weights
        if name.endswith(("conv.weight", "_conv_stem.weight", "_conv_head.weight"))
    }
    assert kernels == {
        tensor.name
        for tensor in model.graph.initializer
        if "conv" in tensor.name and "weight" in tensor.name
    }
    assert [node.op_type for node in model.graph.node].count(
        "Add"
    ) == 14  # residuals: repeats less the first of each


def test_the_network_is_written_once(cache, eyes):
    (file,) = (cache / "models").glob("efficientnet-lite2-*.onnx")
    before = file.stat().st_mtime_ns
    EfficientNetLite2(cache)
    assert file.stat().st_mtime_ns == before
    assert [path.name for path in (cache / "models").iterdir()] == [file.name]


def test_best_tags_are_in_order():
    assert len(class_names()) == 1000
    row = np.zeros(1000, np.float32)
    row[[3, 7]] = 0.25, 0.75
    assert [(tag.name, tag.probability) for tag in best_tags(row, 2)] == [
        ("cock", 0.75),
        ("tiger shark", 0.25),
    ]


def test_other_weights_in_the_package_are_refused(cache, tmp_path, monkeypatch):
    file = tmp_path / "other.pth"
    file.write_bytes(b"not the weights")
    monkeypatch.setattr(efficientnet, "packaged_weights", lambda: file)
    with pytest.raises(ModelError, match="not the file that this version expects"):
        EfficientNetLite2(cache)


def stored(model):
    parsed = onnx.load_from_string(bytes(model))
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in parsed.graph.initializer}


def test_only_subnormal_floats_become_zero():
    network = Network("small")
    floats = np.array([1.0, -1e-39, 1e-45, 1.2e-38, -0.5, 0.0], np.float32)
    network.weight("weights", floats)
    # as floats these bytes would be subnormal
    network.weight("shape", np.array([1, 2, 70_000], np.int64))
    network.node("Add", "x", "weights", output="y")
    model = network.model({"x": ("batch", 6)}, {"y": ("batch", 6)})
    rounded = without_subnormals(model)
    assert len(rounded) == len(model)
    assert stored(rounded)["weights"].tolist() == [1.0, 0.0, 0.0, floats[3], -0.5, 0.0]
    assert stored(rounded)["shape"].tolist() == [1, 2, 70_000]


def test_what_is_not_onnx_is_refused():
    with pytest.raises(ValueError, match="not an ONNX file"):
        without_subnormals(b"\x0f text")
