"""A film in blocks: the frames that event partition looks at, what is measured on them, and its result, kept.

For a film at most 200 frames are fetched, and they themselves are embedded: an hour of the 1 fps grid would be
3,600 embeddings, and a short film is seen more finely than the grid sees it. The measurements and the result are
layers of the store, so that another number of blocks costs no decoding and the same question nothing at all.

Footage that has no pictures is partitioned by its features alone.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from longtake.algorithms import novelty
from longtake.algorithms.partition import Cut, EventPartition, Partition, Samples
from longtake.index.layers import Advance, ignore
from longtake.index.store import LayerKey
from longtake.media.packets import PacketTable
from longtake.types import Frame

if TYPE_CHECKING:
    from longtake.index.film import Film

BATCH = 16
"""Frames embedded at once: what is held in memory stays small."""
_CUES = ("times", "histograms", "sharpness", "motion", "embeddings")


def partition(
    film: Film, events: EventPartition | None = None, advance: Advance = ignore
) -> Partition:
    """The blocks of a film, computed once."""
    events = events or EventPartition()
    key = _result_key(film, events)
    stored = _load(film, key)
    if stored is None:
        samples = measured(film, events, advance)
        stored = events(samples, film.duration)
        with film.folder.building():
            if not film.folder.has(key):
                _save(film, key, stored)
    return stored


def measured(film: Film, events: EventPartition, advance: Advance = ignore) -> Samples:
    """What was measured on the sampled frames of a film, measured now if need be."""
    key = _cues_key(film, events)
    if not film.folder.has(key):
        times = sample_times(film.video.table, events.max_feature_frames)
        with film.folder.building():
            if not film.folder.has(key):
                samples = _measure(film, times, events.width, advance)
                film.folder.write(key, {name: getattr(samples, name) for name in _CUES}, {})
    stored = film.folder.read(key)
    assert stored is not None
    return Samples(**{name: np.asarray(stored[0][name], np.float64) for name in _CUES})


def sample_times(table: PacketTable, most: int) -> NDArray[np.float64]:
    """Moments spread evenly over a film, at most ``most`` and at most one per frame.

    A moment with a keyframe no further off than a quarter of a step moves to it, which saves decoding up to the moment:
    all of them where keyframes are half a step apart or closer, nine of ten where an hour has one every ten seconds.
    """
    count = min(most, len(table))
    wanted = np.linspace(table.times[0], table.times[-1], count)
    keys = np.sort(table.pts[table.keys[table.shown[table.keys]]]) * table.tick
    if count < 3 or len(keys) < 2:
        return wanted
    right = np.clip(np.searchsorted(keys, wanted), 1, len(keys) - 1)
    before, after = keys[right - 1], keys[right]
    nearest = np.where(wanted - before <= after - wanted, before, after)
    close = np.abs(nearest - wanted) <= (wanted[1] - wanted[0]) / 4
    return np.asarray(np.where(close, nearest, wanted))


def _measure(film: Film, times: NDArray[np.float64], width: int, advance: Advance) -> Samples:
    stamps, colours, sharp, moved, rows = list[float](), [], list[float](), list[float](), []
    before: NDArray[np.float64] | None = None
    held: list[Frame] = []
    for number, frame in enumerate(film.video.frames(times, width=width), start=1):
        picture = novelty.grey(frame.pixels)
        stamps.append(frame.time)
        colours.append(novelty.colour_histograms(frame.pixels))
        sharp.append(novelty.sharpness(picture))
        moved.append(0.0 if before is None else novelty.motion(picture, before))
        before = picture
        held.append(frame)
        if len(held) == BATCH or number == len(times):
            rows.append(_embed(film, held))
            held = []
            advance(number / len(times))
    return Samples(
        np.array(stamps), np.concatenate(rows), np.array(colours), np.array(sharp), np.array(moved)
    )


def _embed(film: Film, frames: Sequence[Frame]) -> NDArray[np.float32]:
    return film.senses.looker.images(frames)


def _cues_key(film: Film, events: EventPartition) -> LayerKey:
    looker = film.senses.looker.key
    return LayerKey(
        "cues", 2, {"frames": events.max_feature_frames, "width": events.width, "looker": looker}
    )


def _result_key(film: Film, events: EventPartition) -> LayerKey:
    return LayerKey("events", 2, {**dataclasses.asdict(events), "looker": film.senses.looker.key})


def _save(film: Film, key: LayerKey, found: Partition) -> None:
    arrays = {
        "times": found.times,
        "fused": found.fused,
        **{f"cue_{name}": z for name, z in found.cues.items()},
    }
    cuts = [dataclasses.asdict(cut) for cut in found.cuts]
    film.folder.write(key, arrays, {"duration": found.duration, "cuts": cuts})


def _load(film: Film, key: LayerKey) -> Partition | None:
    stored = film.folder.read(key)
    if stored is None:
        return None
    arrays, notes = stored
    cuts = tuple(Cut(cut["time"], cut["strength"], tuple(cut["heads"])) for cut in notes["cuts"])
    cues = {
        name.removeprefix("cue_"): np.array(a)
        for name, a in arrays.items()
        if name.startswith("cue_")
    }
    return Partition(
        notes["duration"], cuts, np.array(arrays["times"]), cues, np.array(arrays["fused"])
    )
