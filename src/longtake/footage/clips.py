"""Scores of a stretch of film against texts."""

from __future__ import annotations

from longtake.footage.protocol import Footage
from longtake.perception.pooling import MeanPooling
from longtake.perception.protocols import VideoTextEncoder


def clip_scorer(footage: Footage) -> VideoTextEncoder:
    """The footage's trained head if it has one, otherwise the mean of a clip's frames."""
    return footage.retriever or MeanPooling()
