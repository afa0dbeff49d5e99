"""The retrieval head: its weights by name, and the ONNX network that computes scores with them.

The head (ASP-CLIP style) is a temporal transformer over a clip's frame vectors ``e_1 … e_t``::

    h   = e + positions, through pre-norm layers of attention and a feed-forward network
    z_i = unit(e_i + out(norm(h_i)))                 temporal tokens
    j   = argmax_i cos(z_i, text)                    the token closest to the text
    v   = mean_i unit(e_i + z_j)                     added to every frame, normalised, mean-pooled
    score = cos(v, text)

It is written with :mod:`longtake.perception.weight_files`, so exporting needs only NumPy; a test
compares it with the training code.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from longtake.algorithms import sampling
from longtake.errors import ConfigError, ModelError
from longtake.perception.cards import identity
from longtake.perception.protocols import ImageEncoder
from longtake.perception.runtime import Compute, OnnxSession
from longtake.perception.weight_files import Network

if TYPE_CHECKING:
    from longtake.perception.protocols import Array


EPSILON = 1e-5
Weights = Mapping[str, NDArray[np.float32]]


@dataclass(frozen=True)
class Shape:
    """The dimensions that determine a head's weights."""

    dim: int
    """Length of the encoder's vectors, and width of the transformer."""
    layers: int = 4
    heads: int = 8
    frames: int = 16
    """Maximum number of frames in a clip."""

    def __post_init__(self) -> None:
        if self.dim % self.heads:
            raise ConfigError(
                f"vectors of length {self.dim} cannot be split among {self.heads} attention heads"
            )

    def sizes(self) -> dict[str, tuple[int, ...]]:
        """The shape of every weight; matrices multiply from the right."""
        d = self.dim
        sizes: dict[str, tuple[int, ...]] = {"positions": (self.frames, d)}
        for layer in range(self.layers):
            at = f"layer{layer}"
            sizes |= {f"{at}.norm1.weight": (d,), f"{at}.norm1.bias": (d,)}
            for part in ("query", "key", "value", "mix"):
                sizes |= {f"{at}.{part}.weight": (d, d), f"{at}.{part}.bias": (d,)}
            sizes |= {f"{at}.norm2.weight": (d,), f"{at}.norm2.bias": (d,)}
            sizes |= {f"{at}.wide.weight": (d, 4 * d), f"{at}.wide.bias": (4 * d,)}
            sizes |= {f"{at}.narrow.weight": (4 * d, d), f"{at}.narrow.bias": (d,)}
        return sizes | {
            "norm.weight": (d,),
            "norm.bias": (d,),
            "out.weight": (d, d),
            "out.bias": (d,),
        }

    def plain(self) -> dict[str, int]:
        """The same as a dictionary, for the head's card."""
        return asdict(self)


def initial(shape: Shape, seed: int) -> dict[str, NDArray[np.float32]]:
    """Initial weights: neutral norms, small matrices, an almost zero output.

    An untrained head therefore scores like mean pooling that counts the frame closest to the text
    twice.
    """
    random = np.random.default_rng(seed)
    weights = {}
    for name, size in shape.sizes().items():
        if name.endswith("bias"):
            value = np.zeros(size)
        elif "norm" in name:
            value = np.ones(size)
        elif name == "out.weight":
            # after a norm, a tenth of the length of a frame's vector
            value = random.normal(size=size) * 0.1 / shape.dim
        elif name == "positions":
            # as long as a frame's vector
            value = random.normal(size=size) / math.sqrt(shape.dim)
        else:
            value = random.normal(size=size) / math.sqrt(size[0])
        weights[name] = value.astype(np.float32)
    return weights


def network(shape: Shape, weights: Weights) -> bytes:
    """The ONNX file: ``frames`` (t × d) and ``texts`` (n × d), unit rows, to ``scores`` (n)."""
    return _Writer(shape, weights).write()


class _Writer:
    def __init__(self, shape: Shape, weights: Weights) -> None:
        self.shape = shape
        self.net = Network("retrieval-head")
        for name, size in shape.sizes().items():
            # checked here, where the name is known; ONNX Runtime's error would not say it
            if weights[name].shape != size:
                raise ValueError(f"{name} is {weights[name].shape}, not {size}")
            self.net.weight(name, np.asarray(weights[name], np.float32))
        self.net.weight("epsilon", np.array(EPSILON, np.float32))
        self.net.weight("half", np.array(0.5, np.float32))
        self.net.weight("one", np.array(1.0, np.float32))
        self.net.weight("tiny", np.array(1e-12, np.float32))
        self.net.weight("root2", np.array(math.sqrt(2.0), np.float32))
        self.net.weight("scale", np.array(math.sqrt(shape.dim / shape.heads), np.float32))
        self.net.weight("split", np.array([0, shape.heads, shape.dim // shape.heads], np.int64))
        self.net.weight("joined", np.array([0, shape.dim], np.int64))
        for number in (0, 1):
            self.net.weight(f"axis{number}", np.array([number], np.int64))

    def write(self) -> bytes:
        node = self.net.node
        length = node("Slice", node("Shape", "frames"), "axis0", "axis1", "axis0")
        hidden = node("Add", "frames", node("Slice", "positions", "axis0", length, "axis0"))
        for layer in range(self.shape.layers):
            hidden = node("Add", hidden, self._attention(hidden, f"layer{layer}"))
            hidden = node("Add", hidden, self._feed_forward(hidden, f"layer{layer}"))
        residual = self._linear(self._norm(hidden, "norm"), "out")
        tokens = self._unit(node("Add", "frames", residual), axis=1)
        closest = node("ArgMax", self._times_transposed("texts", tokens), axis=1, keepdims=0)
        added = node("Unsqueeze", node("Gather", tokens, closest, axis=0), "axis1")  # n × 1 × d
        shifted = self._unit(node("Add", "frames", added), axis=2)
        pooled = node("ReduceMean", shifted, axes=[1], keepdims=0)
        product = node("Mul", self._unit(pooled, axis=1), self._unit("texts", axis=1))
        node("ReduceSum", product, "axis1", keepdims=0, output="scores")
        d = self.shape.dim
        return self.net.model({"frames": ("t", d), "texts": ("n", d)}, {"scores": ("n",)})

    def _attention(self, hidden: str, at: str) -> str:
        node = self.net.node
        normed = self._norm(hidden, f"{at}.norm1")
        query = self._split(normed, f"{at}.query", perm=[1, 0, 2])
        key = self._split(normed, f"{at}.key", perm=[1, 2, 0])  # transposed, ready to multiply
        value = self._split(normed, f"{at}.value", perm=[1, 0, 2])
        share = node("Softmax", node("Div", node("MatMul", query, key), "scale"), axis=2)
        mixed = node("Transpose", node("MatMul", share, value), perm=[1, 0, 2])
        return self._linear(node("Reshape", mixed, "joined"), f"{at}.mix")

    def _split(self, rows: str, name: str, *, perm: list[int]) -> str:
        """A linear layer's output divided among the attention heads."""
        divided = self.net.node("Reshape", self._linear(rows, name), "split")
        return self.net.node("Transpose", divided, perm=perm)

    def _feed_forward(self, hidden: str, at: str) -> str:
        node = self.net.node
        wide = self._linear(self._norm(hidden, f"{at}.norm2"), f"{at}.wide")
        # GELU written out: opset 13 has no operator for it
        bell = node("Mul", node("Add", node("Erf", node("Div", wide, "root2")), "one"), "half")
        return self._linear(node("Mul", wide, bell), f"{at}.narrow")

    def _linear(self, rows: str, name: str) -> str:
        return self.net.node("Add", self.net.node("MatMul", rows, f"{name}.weight"), f"{name}.bias")

    def _norm(self, rows: str, name: str) -> str:
        node = self.net.node
        centred = node("Sub", rows, node("ReduceMean", rows, axes=[1], keepdims=1))
        variance = node("ReduceMean", node("Mul", centred, centred), axes=[1], keepdims=1)
        normed = node("Div", centred, node("Sqrt", node("Add", variance, "epsilon")))
        return node("Add", node("Mul", normed, f"{name}.weight"), f"{name}.bias")

    def _unit(self, rows: str, *, axis: int) -> str:
        # never zero: a clip of black frames may have zero vectors
        length = self.net.node("ReduceL2", rows, axes=[axis], keepdims=1)
        return self.net.node("Div", rows, self.net.node("Max", length, "tiny"))

    def _times_transposed(self, left: str, right: str) -> str:
        return self.net.node("MatMul", left, self.net.node("Transpose", right, perm=[1, 0]))


WEIGHTS = "head.onnx"
CARD = "head.json"


class RetrievalHead:
    """The head in a folder, usable with the encoder it was trained on."""

    def __init__(
        self, folder: Path, encoder: ImageEncoder, *, compute: Compute | None = None
    ) -> None:
        self.card = read_card(folder)
        # vectors of another encoder would give scores that look plausible and mean nothing
        trained = self.card["encoder"]
        if trained["key"] != encoder.key:
            raise ConfigError(
                f"{folder}: was trained on vectors of {trained['name']} (length {trained['dim']}), "
                f"but the encoder in use is {encoder.name} or another version of it; "
                "train it again, or set perception.images",
                key="perception.retriever",
            )
        self.longest = int(self.card["frames"])
        thresholds = self.card.get("thresholds", {})
        self.thresholds: Mapping[str, float] = {
            name: float(value) for name, value in thresholds.items()
        }
        weights = folder / WEIGHTS
        self._session = OnnxSession(weights, compute or Compute())
        self.key = f"head:{identity(weights)}"

    def scores(self, frames: Array, texts: Array) -> Array:
        """One cosine per text; 0 for a clip without frames. A long clip is sampled evenly."""
        if len(frames) == 0 or len(texts) == 0:
            return np.zeros(len(texts), np.float32)
        # positions were learnt up to this length only
        shown = frames[sampling.uniform(len(frames), self.longest)]
        feed = {"frames": np.asarray(shown, np.float32), "texts": np.asarray(texts, np.float32)}
        return np.asarray(self._session.run(("scores",), feed)[0], np.float32)


def read_card(folder: Path) -> dict[str, Any]:
    """The card of the head in a folder."""
    try:
        card: dict[str, Any] = json.loads((folder / CARD).read_text(encoding="utf-8"))
        if not (folder / WEIGHTS).is_file():
            raise FileNotFoundError(f"no {WEIGHTS}")
        int(card["frames"])
        missing = {"key", "name", "dim"} - card["encoder"].keys()
        if missing:
            raise KeyError(*sorted(missing))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        detail = f"contains no retrieval head ({error}); longtake train-retriever writes one"
        raise ModelError(str(folder), "unavailable", detail) from error
    return card
