"""Defaults for footage that is not a film: no file, no index, no perception behind it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from longtake.algorithms import sampling
from longtake.algorithms.partition import EventPartition, Partition, Samples
from longtake.footage.protocol import Footage, Material
from longtake.models.witness import Witness
from longtake.perception.protocols import VideoTextEncoder


class PlainFootage:
    """Has pictures and nothing else; subclasses override what they can do."""

    # plain attributes: subclasses override them by assignment or by property
    has: frozenset[Material] = frozenset({"pictures"})
    native_frames: int | None = None
    retriever: VideoTextEncoder | None = None
    given_subtitles: Path | None = None
    replies_folder: Path | None = None
    indexed: bool = True

    def witness(self) -> Witness | None:
        """There is no perception behind plain footage."""
        return None

    def captions(self, times: Sequence[float]) -> list[str]:  # noqa: ARG002
        """There are no captions."""
        return []

    def blocks(self: Footage, rule: EventPartition) -> Partition:
        """The footage divided where its features change."""
        return rule(from_features(self, rule.max_feature_frames), self.duration)


def from_features(footage: Footage, most: int) -> Samples:
    """The features of at most ``most`` moments, evenly spaced over the grid."""
    # evenly over the grid: there is no packet table whose keyframes could be preferred
    chosen = sampling.uniform(len(footage.times), most)
    return Samples(footage.times[chosen], np.asarray(footage.features()[chosen], np.float64))
