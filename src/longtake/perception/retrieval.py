"""A trained video–text head: frames' vectors in their order against texts, run from ONNX without torch.

``longtake train-retriever`` writes its folder::

    head.onnx    frames (t × d), texts (n × d) → scores (n)
    head.json    the encoder it was trained on, its shape, recall on held-out clips, thresholds
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
    """The head in a folder, for the encoder whose vectors it was trained on."""

    def __init__(
        self, folder: Path, encoder: ImageEncoder, *, compute: Compute | None = None
    ) -> None:
        self.card = read_card(folder)
        trained = self.card["encoder"]
        if trained["key"] != encoder.key:
            raise ConfigError(
                f"{folder}: was trained on the vectors of {trained['name']} ({trained['dim']} numbers), "
                f"and the encoder in use is {encoder.name} or another version of it; train it again, or set "
                "perception.encoder",
                key="perception.retriever",
            )
        self.longest = int(self.card["frames"])
        self.thresholds: Mapping[str, float] = {
            k: float(v) for k, v in self.card.get("thresholds", {}).items()
        }
        weights = folder / WEIGHTS
        self._session = Session(weights, compute or Compute())
        self.key = f"head:{identity(weights)}"

    def scores(self, frames: Array, texts: Array) -> Array:
        """One cosine per text; a clip without frames scores 0, one with too many is thinned out evenly."""
        if len(frames) == 0 or len(texts) == 0:
            return np.zeros(len(texts), np.float32)
        shown = frames[sampling.uniform(len(frames), self.longest)]
        feed = {"frames": np.asarray(shown, np.float32), "texts": np.asarray(texts, np.float32)}
        return np.asarray(self._session.run(("scores",), feed)[0], np.float32)


def read_card(folder: Path) -> dict[str, Any]:
    """What is known of the head in a folder."""
    try:
        card: dict[str, Any] = json.loads((folder / CARD).read_text(encoding="utf-8"))
        if not (folder / WEIGHTS).is_file():
            raise FileNotFoundError(f"no {WEIGHTS}")
        int(card["frames"]), card["encoder"]["key"], card["encoder"]["name"], card["encoder"]["dim"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(
            str(folder),
            "unavailable",
            f"holds no retrieval head ({error}); longtake train-retriever writes one",
        ) from error
    return card
