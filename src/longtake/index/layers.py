"""Layers: things computed once per film and configuration.

A *frame layer* turns each frame of the 1 fps grid into a row of numbers. All frame layers that are missing
share one pass over the film: decoding runs ahead on its threads while the rows are computed. Every
``CHUNK`` rows are kept as a part, so that a killed run goes on where it stopped.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from longtake.index.store import UNREADABLE, Arrays, FilmFolder, LayerKey, note_damage
from longtake.media.packets import PacketTable
from longtake.media.video import StreamInfo, Video, VideoInfo, sample_times
from longtake.types import Frame

BATCH = 8
"""Frames that are looked at together."""
CHUNK = 64
"""Rows in one part: about a minute of film."""

Advance: TypeAlias = Callable[[float], None]
"""Called with the share of the work that is done, 0 to 1."""


def ignore(share: float) -> None:
    """Show no progress."""


class FrameLayer(Protocol):
    """Rows of numbers, one per frame."""

    @property
    def key(self) -> LayerKey:
        """Identity: the same key means the same rows."""

    @property
    def side(self) -> int:
        """How long the shorter side of a picture must be; a larger film is scaled down while it is decoded."""

    def rows(self, frames: Sequence[Frame]) -> NDArray[Any]:
        """One row per frame."""


class Glimpses:
    """Thumbnails of 64 × 36: enough to see cuts, to draw a strip, to tell a still from a moving picture."""

    key = LayerKey("glimpses", 1, {"width": 64, "height": 36})
    side = 144

    def rows(self, frames: Sequence[Frame]) -> NDArray[Any]:
        """RGB pictures, n × 36 × 64 × 3."""
        from PIL import Image

        size = (self.key.params["width"], self.key.params["height"])
        pictures = [
            np.asarray(Image.fromarray(f.pixels).resize(size, Image.Resampling.BOX)) for f in frames
        ]
        return (
            np.stack(pictures) if pictures else np.zeros((0, size[1], size[0], 3), dtype=np.uint8)
        )


def with_grid(key: LayerKey, fps: float) -> LayerKey:
    """A frame layer's key on a grid of ``fps``."""
    return dataclasses.replace(key, params={**key.params, "fps": fps})


def share_built(folder: FilmFolder, layer: FrameLayer, fps: float, count: int) -> float:
    """How much of an unfinished layer over ``count`` frames exists as parts, 0 to 1."""
    return min(1.0, len(folder.parts(with_grid(layer.key, fps))) * CHUNK / max(1, count))


def build_frame_layers(
    folder: FilmFolder, video: Video, layers: Sequence[FrameLayer], *, fps: float, advance: Advance
) -> None:
    """Compute whichever of the layers are missing, in one pass; call while the folder is ``building``."""
    times = sample_times(video.duration, fps)
    chunks = [range(a, min(a + CHUNK, len(times))) for a in range(0, len(times), CHUNK)]
    missing = [layer for layer in layers if not folder.has(with_grid(layer.key, fps))]
    todo = {
        id(layer): set(range(len(chunks))) - set(folder.parts(with_grid(layer.key, fps)))
        for layer in missing
    }
    for layer in missing:
        folder.sweep(with_grid(layer.key, fps))
    needed = sorted(set().union(*todo.values()))
    stream = (
        _stream(video, np.concatenate([times[chunks[c]] for c in needed]), missing)
        if needed
        else iter(())
    )
    for done, chunk in enumerate(needed):
        wanting = [layer for layer in missing if chunk in todo[id(layer)]]
        for layer, rows in zip(
            wanting, rows_of(wanting, islice(stream, len(chunks[chunk]))), strict=True
        ):
            folder.write_part(with_grid(layer.key, fps), chunk, rows)
        advance((done + 1) / len(needed))
    for layer in missing:
        key = with_grid(layer.key, fps)
        parts = [np.load(path) for _, path in sorted(folder.parts(key).items())]
        folder.write(key, {"rows": np.concatenate(parts), "times": times}, {"fps": fps})


def rows_of(layers: Sequence[FrameLayer], frames: Iterable[Frame]) -> list[NDArray[Any]]:
    """Each layer's rows of the frames, a few at a time: the next are decoded while these are looked at."""
    pieces: list[list[NDArray[Any]]] = [[] for _ in layers]
    stream = iter(frames)
    while batch := list(islice(stream, BATCH)):
        for layer, rows in zip(layers, pieces, strict=True):
            rows.append(layer.rows(batch))
    return [
        np.concatenate(rows) if rows else layer.rows([])
        for layer, rows in zip(layers, pieces, strict=True)
    ]


def _stream(
    video: Video, times: NDArray[np.float64], layers: Sequence[FrameLayer]
) -> Iterator[Frame]:
    return video.frames(times, width=width_for(video, layers))


def width_for(video: Video, layers: Sequence[FrameLayer]) -> int:
    """The narrowest picture of a film that serves all of the layers."""
    info = video.info
    return -(-max(layer.side for layer in layers) * info.width // min(info.width, info.height))


PACKETS = LayerKey("packets", 1)
"""The packet table and the headers, so that a film is opened without reading it again."""


def load_video(folder: FilmFolder, path: Any, limits: Any) -> Video | None:
    """The film from its stored headers and packet table, if they are there and whole."""
    stored = folder.read(PACKETS)
    if stored is None:
        return None
    try:
        return _restored(path, limits, *stored)
    except UNREADABLE as error:
        note_damage(folder.path / "layers" / str(PACKETS), error)
        return None


def _restored(path: Any, limits: Any, arrays: Arrays, notes: Mapping[str, Any]) -> Video:
    info = dict(notes["info"])
    tracks = {
        name: tuple(StreamInfo(**track) for track in info[name]) for name in ("audio", "subtitles")
    }
    table = PacketTable(
        *(np.asarray(arrays[name]) for name in ("pts", "dts", "key", "shown")),  # type: ignore[arg-type]
        **notes["table"],
    )
    return Video(path, limits=limits, info=VideoInfo(**{**info, **tracks}), table=table)


def save_video(folder: FilmFolder, video: Video) -> None:
    """Keep a film's headers and packet table."""
    table = video.table
    folder.write(
        PACKETS,
        {"pts": table.pts, "dts": table.dts, "key": table.key, "shown": table.shown},
        {
            "info": dataclasses.asdict(video.info),
            "table": {
                "tick": table.tick,
                "origin": table.origin,
                "duration": table.duration,
                "timed": table.timed,
            },
        },
    )
