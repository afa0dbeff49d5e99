"""A trained video–text head: scores the vectors of a clip's frames, in order, against texts.

It runs from ONNX, without torch. ``longtake train-retriever`` writes its folder::

    head.onnx    frames (t × d), texts (n × d) → scores (n)
    head.json    the encoder it was trained on, shape, recall on held-out clips, thresholds
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from longtake.algorithms import sampling
from longtake.errors import ConfigError, ModelError
from longtake.perception.cardencoder import identity
from longtake.perception.protocols import ImageEncoder
from longtake.perception.runtime import Compute, Session

if TYPE_CHECKING:
    from longtake.perception.protocols import Array

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
        self._session = Session(weights, compute or Compute())
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
