"""Clips as frame vectors beside captions as text vectors: all that training sees."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtake.algorithms import sampling
from longtake.errors import ConfigError, LongtakeError
from longtake.footage.protocol import Footage
from longtake.perception.runtime import unit
from longtake.training.captions import Clip, Dropped

Rows = NDArray[np.float32]


@dataclass(frozen=True)
class Pairs:
    """``n`` clips with their captions."""

    frames: NDArray[np.float16]
    """``n × t × d``; what lies beyond a clip's own number of frames is zero."""
    counts: NDArray[np.int64]
    """Frames of each clip."""
    texts: NDArray[np.float16]
    """``n × d``."""
    videos: NDArray[Any]
    """The video of each, by which they are held out."""

    def __len__(self) -> int:
        return len(self.counts)

    def clip(self, number: int) -> Rows:
        """One clip's frame vectors."""
        return np.asarray(self.frames[number, : self.counts[number]], np.float32)

    def only(self, chosen: Sequence[int]) -> Pairs:
        """Some of them."""
        rows = np.asarray(chosen, np.int64)
        return Pairs(self.frames[rows], self.counts[rows], self.texts[rows], self.videos[rows])

    def save(self, path: Path) -> None:
        """Write them, whole or not at all."""
        draft = path.with_name(f".{path.name}.npz")
        np.savez(
            draft, frames=self.frames, counts=self.counts, texts=self.texts, videos=self.videos
        )
        draft.replace(path)


def load(path: Path) -> Pairs:
    """What :meth:`Pairs.save` wrote."""
    with np.load(path, allow_pickle=False) as stored:
        return Pairs(stored["frames"], stored["counts"], stored["texts"], stored["videos"])


def stack(clips: Sequence[Rows], texts: Rows, videos: Sequence[str], most: int) -> Pairs:
    """Pairs of clips that are thinned out evenly to ``most`` frames."""
    if not clips:
        raise ConfigError("no clip is left to train on")
    counts = np.array([min(len(rows), most) for rows in clips], np.int64)
    frames = np.zeros((len(clips), most, texts.shape[1]), np.float16)
    for number, rows in enumerate(clips):
        frames[number, : counts[number]] = unit(rows[sampling.uniform(len(rows), most)])
    return Pairs(frames, counts, np.asarray(texts, np.float16), np.asarray(videos))


def embed(
    clips: Sequence[Clip],
    dropped: Dropped,
    opener: Callable[[str], Footage],
    most: int,
    advance: Callable[[float], None] = lambda share: None,  # noqa: ARG005
) -> Pairs:
    """Look at every clip through its film's index; films that cannot be opened are dropped, and said."""
    by_video: dict[str, list[Clip]] = {}
    for clip in clips:
        by_video.setdefault(clip.video, []).append(clip)
    rows: list[Rows] = []
    texts: list[Rows] = []
    names: list[str] = []
    for number, (video, some) in enumerate(by_video.items()):
        advance(number / len(by_video))
        try:
            footage = opener(video)
            vectors, times = footage.embeddings(), footage.times
        except LongtakeError as error:
            for _ in some:
                dropped.add("film cannot be read", str(error))
            continue
        inside = []
        for clip in some:
            found = np.flatnonzero((times >= clip.segment.start) & (times < clip.segment.end))
            if len(found) and clip.segment.end <= footage.duration + 1.0:
                inside.append(clip)
                rows.append(np.asarray(vectors[found], np.float32))
            else:
                dropped.add("beyond the end of its film", f"{video} at {clip.segment.start:g} s")
        if inside:
            texts.append(footage.encode([clip.caption for clip in inside]))
            names += [video] * len(inside)
    return stack(
        rows, np.concatenate(texts) if texts else np.zeros((0, 1), np.float32), names, most
    )


def held_out(pairs: Pairs, share: float, seed: int) -> tuple[Pairs, Pairs]:
    """Pairs to train on and pairs to test on; no video is in both."""
    videos = sorted(set(pairs.videos.tolist()))
    if len(videos) < 2:
        raise ConfigError("clips of at least two videos are needed, so that some can be held out")
    random.Random(seed).shuffle(videos)
    test: set[str] = set()
    for video in videos[:-1]:
        if test and np.isin(pairs.videos, list(test)).mean() >= share:
            break
        test.add(video)
    mine = np.isin(pairs.videos, list(test))
    return pairs.only(np.flatnonzero(~mine).tolist()), pairs.only(np.flatnonzero(mine).tolist())
