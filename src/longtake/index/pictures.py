"""A film's pictures as stored rows: thumbnails, embeddings, features and tags."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtake.index.layers import (
    Advance,
    EmbeddingLayer,
    FrameLayer,
    Glimpses,
    NetworkLayer,
    build_frame_layers,
    embedding_key,
    ignore,
    with_grid,
)
from longtake.index.source import Source
from longtake.perception.efficientnet import best_tags, probabilities_in
from longtake.perception.protocols import DerivedEncoder, ImageEncoder, Tag
from longtake.perception.senses import Senses


class Pictures:
    """The frame layers of one film; a layer that is missing is computed when it is asked for."""

    def __init__(self, source: Source, senses: Senses) -> None:
        self._source, self._senses = source, senses

    def layers(self) -> list[FrameLayer]:
        """The layers that search and the methods need."""
        senses = self._senses
        needed: list[FrameLayer] = [
            Glimpses(),
            NetworkLayer(senses.tagger),
            stored_layer(senses.scene_encoder),
            stored_layer(senses.images),
        ]
        # encoders derived from one network share its layer
        return list({str(layer.key): layer for layer in needed}.values())

    def rows(self, layer: FrameLayer, advance: Advance = ignore) -> NDArray[Any]:
        """The rows of a layer, one per moment of the grid."""
        self.build([layer], advance)
        stored = self._source.folder.read(with_grid(layer.key, self._source.fps))
        assert stored is not None  # just built
        return stored[0]["rows"]

    def build(self, layers: Sequence[FrameLayer], advance: Advance = ignore) -> None:
        """Compute the layers that are missing, in one pass over the film."""
        source = self._source
        source.ensure(
            lambda: all(self.has(layer) for layer in layers),
            lambda: build_frame_layers(
                source.folder, source.video, layers, fps=source.fps, advance=advance
            ),
        )

    def has(self, layer: FrameLayer) -> bool:
        """Whether a layer is stored."""
        return self._source.folder.has(with_grid(layer.key, self._source.fps))

    def glimpses(self) -> NDArray[Any]:
        """Thumbnails."""
        return self.rows(Glimpses())

    @cached_property
    def embeddings(self) -> NDArray[np.float32]:
        """Unit rows of the encoder that search uses."""
        encoder = self._senses.images
        if not isinstance(encoder, DerivedEncoder):
            return self._vectors(encoder)
        # search reads these often; deriving them anew would cost more than reading them
        key = with_grid(embedding_key(encoder), self._source.fps)
        arrays, _ = self._source.once(key, lambda: ({"rows": self._vectors(encoder)}, {}))
        return np.asarray(arrays["rows"])

    def features(self) -> NDArray[np.float32]:
        """How each moment looks, independent of any text."""
        return self._vectors(self._senses.scene_encoder)

    def tags(self, times: Sequence[float], top: int) -> list[list[Tag]]:
        """The most probable tags of the frames on screen at the given times."""
        grid = self._source.grid()
        # the last moment of the grid that is not after the given time
        rows = np.searchsorted(grid, list(times), side="right") - 1
        probabilities = probabilities_in(self.rows(NetworkLayer(self._senses.tagger)))
        return [best_tags(probabilities[row], top) for row in np.clip(rows, 0, len(grid) - 1)]

    def _vectors(self, encoder: ImageEncoder) -> NDArray[np.float32]:
        """An encoder's rows, derived from stored outputs or stored themselves."""
        rows = self.rows(stored_layer(encoder))
        if isinstance(encoder, DerivedEncoder):
            return encoder.from_outputs(rows)
        return np.asarray(rows, np.float32)


def stored_layer(encoder: ImageEncoder) -> FrameLayer:
    """The layer that must be stored for an encoder's vectors to be known."""
    if isinstance(encoder, DerivedEncoder):
        return NetworkLayer(encoder.network)
    return EmbeddingLayer(encoder)
