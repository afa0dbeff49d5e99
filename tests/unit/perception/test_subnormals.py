"""Subnormal weights are rounded to zero, and nothing else changes."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from longtake.perception.runtime import without_subnormals
from longtake.perception.weight_files import Network


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


def test_without_any_the_file_stays_as_it_is():
    network = Network("small")
    network.weight("weights", np.linspace(-1, 1, 1000, dtype=np.float32))
    model = network.model({"x": (1,)}, {"y": (1,)})
    assert without_subnormals(model) == model


def test_what_is_not_onnx_is_refused():
    with pytest.raises(ValueError, match="not an ONNX file"):
        without_subnormals(b"\x0f text")
