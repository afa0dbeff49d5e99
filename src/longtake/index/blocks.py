"""A film's blocks: measurements on sampled frames, and the event partition made from them.

At most 200 frames of a film are fetched and encoded. The 1 fps grid would be 3,600 embeddings for
an hour, and for a short film it would be too coarse. Measurements and result are separate layers:
another number of blocks needs no decoding, and the same question again needs no computation at all.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from longtake.algorithms import novelty
from longtake.algorithms.partition import Cut, EventPartition, Partition, Samples
from longtake.index.layers import Advance, ignore
from longtake.index.store import Arrays, LayerKey, Notes
from longtake.media.packets import PacketTable
from longtake.stopping import check_stop
from longtake.types import Frame

if TYPE_CHECKING:
    from longtake.index.film import Film

BATCH = 16
"""Frames encoded at once, which bounds memory."""
_MEASURED = ("times", "histograms", "sharpness", "motion", "embeddings")


def partition(
    film: Film, rule: EventPartition | None = None, advance: Advance = ignore
) -> Partition:
    """The blocks of a film, computed once."""
    chosen = rule or EventPartition()

    def make() -> tuple[Arrays, Notes]:
        return _packed(chosen(measured(film, chosen, advance), film.duration))

    return _restored(*film.source.once(_blocks_key(film, chosen), make))


def measured(film: Film, rule: EventPartition, advance: Advance = ignore) -> Samples:
    """The measurements on a film's sampled frames, made once."""

    def make() -> tuple[Arrays, Notes]:
        times = sample_times(film.video.table, rule.max_feature_frames)
        samples = _measure(film, times, rule.width, advance)
        return {name: getattr(samples, name) for name in _MEASURED}, {}

    arrays, _ = film.source.once(_measured_key(film, rule), make)
    return Samples(**{name: np.asarray(arrays[name], np.float64) for name in _MEASURED})


def sample_times(table: PacketTable, most: int) -> NDArray[np.float64]:
    """Evenly spaced times over a film: at most ``most`` and at most one per frame.

    A time moves to the nearest keyframe if that is within a quarter of a step, which saves decoding
    from the keyframe to the time. With keyframes at most half a step apart every time moves; in an
    hour-long film with a keyframe every ten seconds nine in ten do.
    """
    count = min(most, len(table))
    wanted = np.linspace(table.times[0], table.times[-1], count)
    # hidden keyframes cannot be fetched, so no time may move to one
    keys = np.sort(table.pts[table.keys[table.shown[table.keys]]]) * table.tick
    # with so few there is no step to move by, or nothing to move to
    if count < 3 or len(keys) < 2:
        return wanted
    right = np.clip(np.searchsorted(keys, wanted), 1, len(keys) - 1)
    before, after = keys[right - 1], keys[right]
    nearest = np.where(wanted - before <= after - wanted, before, after)
    close = np.abs(nearest - wanted) <= (wanted[1] - wanted[0]) / 4
    return np.asarray(np.where(close, nearest, wanted))


def _measure(film: Film, times: NDArray[np.float64], width: int, advance: Advance) -> Samples:
    encoder = film.senses.scene_encoder
    stamps, sharpness, motion = list[float](), list[float](), list[float]()
    histograms, embeddings = [], []
    # motion compares neighbours, so frames are measured in one pass and kept only per batch
    previous: NDArray[np.float64] | None = None
    batch: list[Frame] = []
    for number, frame in enumerate(film.video.frames(times, width=width), start=1):
        grey = novelty.grey(frame.pixels)
        stamps.append(frame.time)
        histograms.append(novelty.colour_histograms(frame.pixels))
        sharpness.append(novelty.sharpness(grey))
        motion.append(0.0 if previous is None else novelty.motion(grey, previous))
        previous = grey
        batch.append(frame)
        if len(batch) == BATCH or number == len(times):
            check_stop()
            embeddings.append(encoder.images(batch))
            batch = []
            advance(number / len(times))
    return Samples(
        np.array(stamps),
        np.concatenate(embeddings),
        np.array(histograms),
        np.array(sharpness),
        np.array(motion),
    )


# the names in these keys are those of the first release: changing one would discard stored layers


def _measured_key(film: Film, rule: EventPartition) -> LayerKey:
    params = {
        "frames": rule.max_feature_frames,
        "width": rule.width,
        "looker": film.senses.scene_encoder.key,
    }
    return LayerKey("cues", 2, params)


def _blocks_key(film: Film, rule: EventPartition) -> LayerKey:
    params = {**dataclasses.asdict(rule), "looker": film.senses.scene_encoder.key}
    return LayerKey("events", 2, params)


def _packed(result: Partition) -> tuple[Arrays, Notes]:
    arrays = {"times": result.times, "fused": result.fused}
    for name, values in result.cues.items():
        arrays[f"cue_{name}"] = values
    cuts = [dataclasses.asdict(cut) for cut in result.cuts]
    return arrays, {"duration": result.duration, "cuts": cuts}


def _restored(arrays: Arrays, notes: Notes) -> Partition:
    cuts = [Cut(cut["time"], cut["strength"], tuple(cut["heads"])) for cut in notes["cuts"]]
    cues = {}
    for name, values in arrays.items():
        if name.startswith("cue_"):
            cues[name.removeprefix("cue_")] = np.array(values)
    times, fused = np.array(arrays["times"]), np.array(arrays["fused"])
    return Partition(notes["duration"], tuple(cuts), times, cues, fused)
