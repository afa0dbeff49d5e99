"""Frame layers: one row of numbers per frame of the grid, computed once per film and configuration.

All frame layers that are missing share one pass over the film: decoding runs ahead on its own
threads while rows are computed. Every ``CHUNK`` rows are kept as a part, so that a killed run
resumes where it stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from longtake._util.cancellation import check_stop
from longtake.index.source import IndexedSource
from longtake.index.store import FilmFolder, LayerKey
from longtake.perception.efficientnet import best_tags, probabilities_in
from longtake.perception.loader import PerceptionModels
from longtake.perception.protocols import DerivedEncoder, FrameNetwork, ImageEncoder, Tag
from longtake.types import Frame
from longtake.video.video import Video

BATCH = 64
"""Frames given to a layer at once."""
CHUNK = 64
"""Rows in one part: about a minute of film."""

Advance: TypeAlias = Callable[[float], None]
"""Called with the fraction of the work that is done, 0 to 1."""


def ignore(share: float) -> None:
    """Show no progress."""


@dataclass(frozen=True)
class FrameLayer:
    """One row of numbers per frame."""

    key: LayerKey
    """Identity: equal keys mean equal rows."""
    side: int
    """Shorter side in pixels that frames need; larger films are scaled down when decoded."""
    rows: Callable[[Sequence[Frame]], NDArray[Any]]


WIDTH, HEIGHT = 64, 36


def thumbnails(frames: Sequence[Frame]) -> NDArray[Any]:
    """RGB pictures, n × 36 × 64 × 3."""
    from PIL import Image  # late: commands that show no picture start faster

    rows = np.zeros((len(frames), HEIGHT, WIDTH, 3), dtype=np.uint8)
    for row, frame in zip(rows, frames, strict=True):
        picture = Image.fromarray(frame.pixels)
        row[:] = np.asarray(picture.resize((WIDTH, HEIGHT), Image.Resampling.BOX))
    return rows


GLIMPSES = FrameLayer(LayerKey("glimpses", 1, {"width": WIDTH, "height": HEIGHT}), 144, thumbnails)
"""Thumbnails: enough to detect cuts and movement, and to draw a strip."""


def network_layer(network: FrameNetwork) -> FrameLayer:
    """The output of a network, stored once for all encoders derived from it."""
    key = LayerKey(network.layer, 1, {"model": network.key})
    return FrameLayer(key, network.size, _halved(network.outputs))


def stored_layer(encoder: ImageEncoder) -> FrameLayer:
    """The layer that must be stored for an encoder's vectors to be known."""
    if isinstance(encoder, DerivedEncoder):
        return network_layer(encoder.network)
    return FrameLayer(embedding_key(encoder), encoder.size, _halved(encoder.images))


def _halved(rows: Callable[[Sequence[Frame]], NDArray[Any]]) -> Callable[..., NDArray[Any]]:
    # the rounding error is far below that of the models, at half the disk space
    return lambda frames: rows(frames).astype(np.float16)


def embedding_key(encoder: ImageEncoder) -> LayerKey:
    """The key of an encoder's vectors, however they are made."""
    return LayerKey("embeddings", 1, {"encoder": encoder.key})


def with_grid(key: LayerKey, fps: float) -> LayerKey:
    """A frame layer's key on a grid of ``fps`` moments per second."""
    return replace(key, params={**key.params, "fps": fps})


def build_frame_layers(
    folder: FilmFolder, video: Video, layers: Sequence[FrameLayer], *, fps: float, advance: Advance
) -> None:
    """Compute missing layers in one pass; call while the folder is ``building``."""
    times = video.grid(fps)
    chunks = [range(first, min(first + CHUNK, len(times))) for first in range(0, len(times), CHUNK)]
    unfinished: list[_Unfinished] = []
    for layer in layers:
        key = with_grid(layer.key, fps)
        if not folder.has(key):
            # this process holds the lock, so these files are from a killed one
            folder.sweep(key)
            # parts are numbered by chunk, so a resumed run knows which rows are missing
            missing = set(range(len(chunks))) - set(folder.parts(key))
            unfinished.append(_Unfinished(key, layer, missing))
    wanted = sorted(set().union(*(built.chunks for built in unfinished)))
    frames: Iterator[Frame] = iter(())  # a killed run may have left all parts but no layer
    if wanted:
        moments = np.concatenate([times[chunks[number]] for number in wanted])
        width = width_for(video, [built.layer for built in unfinished])
        frames = video.frames(moments, width=width)
    for done, number in enumerate(wanted, 1):
        waiting = [built for built in unfinished if number in built.chunks]
        parts = rows_of([built.layer for built in waiting], islice(frames, len(chunks[number])))
        for built, rows in zip(waiting, parts, strict=True):
            folder.write_part(built.key, number, rows)
        advance(done / len(wanted))
    for built in unfinished:
        finished = [np.load(path) for _, path in sorted(folder.parts(built.key).items())]
        arrays = {"rows": np.concatenate(finished), "times": times}
        folder.write(built.key, arrays, {"fps": fps})


class _Unfinished(NamedTuple):
    key: LayerKey
    layer: FrameLayer
    chunks: set[int]
    """Chunks without a part."""


def rows_of(layers: Sequence[FrameLayer], frames: Iterable[Frame]) -> list[NDArray[Any]]:
    """Each layer's rows, batch by batch: the next is decoded while this one is computed."""
    batches: list[list[NDArray[Any]]] = [[] for _ in layers]
    stream = iter(frames)
    while batch := list(islice(stream, BATCH)):
        for layer, rows in zip(layers, batches, strict=True):
            check_stop()
            rows.append(layer.rows(batch))
    return [
        np.concatenate(rows) if rows else layer.rows([])
        for layer, rows in zip(layers, batches, strict=True)
    ]


def width_for(video: Video, layers: Sequence[FrameLayer]) -> int:
    """The smallest frame width that serves all of the layers."""
    shorter = min(video.info.width, video.info.height)
    # one pass decodes for all layers, so the largest need decides
    side = max(layer.side for layer in layers)
    return -(-side * video.info.width // shorter)  # rounded up


class Pictures:
    """The frame layers of one film; a layer that is missing is computed when it is asked for."""

    def __init__(self, source: IndexedSource, senses: PerceptionModels) -> None:
        self._source, self._senses = source, senses

    def layers(self) -> list[FrameLayer]:
        """The layers that search and the methods need."""
        senses = self._senses
        needed: list[FrameLayer] = [
            GLIMPSES,
            network_layer(senses.tagger),
            stored_layer(senses.scene_encoder),
            stored_layer(senses.images),
        ]
        # encoders derived from one network share its layer
        return list({str(layer.key): layer for layer in needed}.values())

    def rows(self, layer: FrameLayer) -> NDArray[Any]:
        """The rows of a layer, one per moment of the grid."""
        self.build([layer])
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
        return self.rows(GLIMPSES)

    @cached_property
    def embeddings(self) -> NDArray[np.float32]:
        """Unit rows of the encoder that search uses."""
        encoder = self._senses.images
        if not isinstance(encoder, DerivedEncoder):
            return self._vectors(encoder)
        # stored too, since search reads them often
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
        probabilities = probabilities_in(self.rows(network_layer(self._senses.tagger)))
        return [best_tags(probabilities[row], top) for row in np.clip(rows, 0, len(grid) - 1)]

    def _vectors(self, encoder: ImageEncoder) -> NDArray[np.float32]:
        """An encoder's rows, derived from stored outputs or stored themselves."""
        rows = self.rows(stored_layer(encoder))
        if isinstance(encoder, DerivedEncoder):
            return encoder.from_outputs(rows)
        return np.asarray(rows, np.float32)
