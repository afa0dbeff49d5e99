"""Pairs of clips (frame vectors) and captions (text vectors), the input of training."""

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
    """``n × t × d``, padded with zeros after each clip's last frame."""
    counts: NDArray[np.int64]
    """Number of frames per clip."""
    texts: NDArray[np.float16]
    """``n × d``."""
    videos: NDArray[Any]
    """The video of each clip; clips are held out by video."""

    def __len__(self) -> int:
        return len(self.counts)

    def clip(self, number: int) -> Rows:
        """The frame vectors of one clip."""
        return np.asarray(self.frames[number, : self.counts[number]], np.float32)

    def only(self, chosen: Sequence[int]) -> Pairs:
        """The pairs with the given indices."""
        rows = np.asarray(chosen, np.int64)
        return Pairs(self.frames[rows], self.counts[rows], self.texts[rows], self.videos[rows])

    def save(self, path: Path) -> None:
        """Write the pairs atomically."""
        draft = path.with_name(f".{path.name}.npz")
        np.savez(
            draft, frames=self.frames, counts=self.counts, texts=self.texts, videos=self.videos
        )
        draft.replace(path)


def load(path: Path) -> Pairs:
    """Read what :meth:`Pairs.save` wrote."""
    with np.load(path, allow_pickle=False) as stored:
        return Pairs(stored["frames"], stored["counts"], stored["texts"], stored["videos"])


def stack(clips: Sequence[Rows], texts: Rows, videos: Sequence[str], most: int) -> Pairs:
    """Pairs from clips, each thinned out evenly to at most ``most`` frames."""
    if not clips:
        raise ConfigError("no clips left to train on")
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
    """Embed every clip through its film's index; unreadable films are dropped and reported."""
    by_video: dict[str, list[Clip]] = {}
    for clip in clips:
        by_video.setdefault(clip.video, []).append(clip)
    rows: list[Rows] = []
    texts: list[Rows] = []
    names: list[str] = []
    for number, (video, listed) in enumerate(by_video.items()):
        advance(number / len(by_video))
        try:
            footage = opener(video)
            vectors, times = footage.embeddings(), footage.times
        except LongtakeError as error:
            for _ in listed:
                dropped.add("film cannot be read", str(error))
            continue
        inside = []
        for clip in listed:
            moments = np.flatnonzero((times >= clip.segment.start) & (times < clip.segment.end))
            # containers round durations, so a caption may end a little late
            if len(moments) and clip.segment.end <= footage.duration + 1.0:
                inside.append(clip)
                rows.append(np.asarray(vectors[moments], np.float32))
            else:
                dropped.add("beyond the end of its film", f"{video} at {clip.segment.start:g} s")
        if inside:
            texts.append(footage.encode([clip.caption for clip in inside]))
            names += [video] * len(inside)
    captions = np.concatenate(texts) if texts else np.zeros((0, 1), np.float32)
    return stack(rows, captions, names, most)


def held_out(pairs: Pairs, share: float, seed: int) -> tuple[Pairs, Pairs]:
    """Split pairs into training and test pairs; no video is in both."""
    videos = sorted(set(pairs.videos.tolist()))
    if len(videos) < 2:
        raise ConfigError("clips of at least two videos are needed, so that one can be held out")
    random.Random(seed).shuffle(videos)
    test: set[str] = set()
    for video in videos[:-1]:  # at least one video stays for training
        if test and np.isin(pairs.videos, list(test)).mean() >= share:
            break
        test.add(video)
    tested = np.isin(pairs.videos, list(test))
    train_pairs = pairs.only(np.flatnonzero(~tested).tolist())
    return train_pairs, pairs.only(np.flatnonzero(tested).tolist())
