"""The retrieval head: its weights by name, and the scores that they give.

The head (ASP-CLIP style) is a temporal transformer over a clip's frame vectors ``e_1 … e_t``::

    h   = e + positions, through pre-norm layers of attention and a feed-forward network
    z_i = unit(e_i + out(norm(h_i)))                 temporal tokens
    j   = argmax_i cos(z_i, text)                    the token closest to the text
    v   = mean_i unit(e_i + z_j)                     added to every frame, normalised, mean-pooled
    score = cos(v, text)

A clip has few frames, so NumPy is fast enough; a test compares it with the training code.
"""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtake.algorithms import sampling
from longtake.errors import ConfigError, ModelError
from longtake.perception.cards import identity
from longtake.perception.protocols import Array, ImageEncoder
from longtake.perception.runtime import unit

EPSILON = 1e-5
Weights = Mapping[str, NDArray[np.float32]]
WEIGHTS = "head.npz"
CARD = "head.json"
_erf = np.vectorize(math.erf, otypes=[np.float32])  # NumPy has none


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


def temporal_tokens(weights: Weights, shape: Shape, frames: Array) -> Array:
    """``z`` of one clip, a row per frame."""

    def linear(rows: Any, name: str) -> Any:
        return rows @ weights[f"{name}.weight"] + weights[f"{name}.bias"]

    def norm(rows: Any, name: str) -> Any:
        centred = rows - rows.mean(axis=1, keepdims=True)
        spread = np.sqrt(rows.var(axis=1, keepdims=True) + EPSILON)
        return centred / spread * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    def split(rows: Any, name: str) -> Any:
        """Heads × frames × the width of a head."""
        return linear(rows, name).reshape(len(rows), shape.heads, -1).transpose(1, 0, 2)

    hidden = frames + weights["positions"][: len(frames)]
    for layer in range(shape.layers):
        at = f"layer{layer}"
        normed = norm(hidden, f"{at}.norm1")
        query, key, value = (split(normed, f"{at}.{part}") for part in ("query", "key", "value"))
        logits = query @ key.transpose(0, 2, 1) / math.sqrt(shape.dim / shape.heads)
        share = np.exp(logits - logits.max(axis=2, keepdims=True))
        mixed = share / share.sum(axis=2, keepdims=True) @ value
        joined = mixed.transpose(1, 0, 2).reshape(len(frames), shape.dim)
        hidden = hidden + linear(joined, f"{at}.mix")
        wide = linear(norm(hidden, f"{at}.norm2"), f"{at}.wide")
        gelu = wide * (1 + _erf(wide / math.sqrt(2.0))) / 2
        hidden = hidden + linear(gelu, f"{at}.narrow")
    return unit(frames + linear(norm(hidden, "norm"), "out"))


class RetrievalHead:
    """The head in a folder, usable with the encoder it was trained on."""

    def __init__(self, folder: Path, encoder: ImageEncoder) -> None:
        self.card, self._shape, self._weights = read_head(folder)
        # vectors of another encoder would give scores that look plausible and mean nothing
        trained = self.card["encoder"]
        if trained["key"] != encoder.key:
            raise ConfigError(
                f"{folder}: was trained on vectors of {trained['name']} (length {trained['dim']}), "
                f"but the encoder in use is {encoder.name} or another version of it; "
                "train it again, or set perception.images",
                key="perception.retriever",
            )
        thresholds = self.card.get("thresholds", {})
        self.thresholds: Mapping[str, float] = {
            name: float(value) for name, value in thresholds.items()
        }
        self.key = f"head:{identity(folder / WEIGHTS)}"

    def scores(self, frames: Array, texts: Array) -> Array:
        """One cosine per text; 0 for a clip without frames. A long clip is sampled evenly."""
        if len(frames) == 0 or len(texts) == 0:
            return np.zeros(len(texts), np.float32)
        # positions were learnt up to this length only
        shown = np.asarray(frames[sampling.uniform(len(frames), self._shape.frames)], np.float32)
        tokens, wanted = temporal_tokens(self._weights, self._shape, shown), unit(texts)
        closest = tokens[(wanted @ tokens.T).argmax(axis=1)]
        pooled = [unit(shown + token).mean(axis=0) for token in closest]
        return np.asarray((unit(pooled) * wanted).sum(axis=1), np.float32)


def read_head(folder: Path) -> tuple[dict[str, Any], Shape, Weights]:
    """The card, shape and weights of the head in a folder."""
    try:
        card: dict[str, Any] = json.loads((folder / CARD).read_text(encoding="utf-8"))
        shape = Shape(*(int(card[name]) for name in ("dim", "layers", "heads", "frames")))
        missing = {"key", "name", "dim"} - card["encoder"].keys()
        if missing:
            raise KeyError(*sorted(missing))
        with np.load(folder / WEIGHTS, allow_pickle=False) as stored:
            weights = {name: np.asarray(stored[name], np.float32) for name in shape.sizes()}
        for name, size in shape.sizes().items():
            if weights[name].shape != size:
                raise ValueError(f"{name} is {weights[name].shape}, not {size}")
    except (
        *(OSError, ValueError, KeyError, TypeError, AttributeError, EOFError),
        *(zipfile.BadZipFile, ConfigError),
    ) as error:
        detail = f"contains no retrieval head ({error}); longtake train-retriever writes one"
        raise ModelError(str(folder), "unavailable", detail) from error
    return card, shape, weights
