"""Footage that is not a film: captions, frames in memory, and footage with removed segments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtake.algorithms import sampling
from longtake.algorithms.partition import EventPartition, Partition
from longtake.algorithms.partition_numbers import Samples
from longtake.errors import MediaError
from longtake.footage.protocol import Encoder, Footage, Material
from longtake.llm.backend import Description, FrameDescriber
from longtake.perception.loader import PerceptionModels
from longtake.perception.protocols import ImageTextEncoder, Reranker, TextEncoder, VideoTextEncoder
from longtake.tracing.events import CAPTIONS_READ, note
from longtake.types import Frame, Line, Segment


class PlainFootage:
    """Footage with pictures only, without index and perception; a base class."""

    # subclasses override these by assignment or by property
    has: frozenset[Material] = frozenset({"pictures"})
    native_frames: int | None = None
    retriever: VideoTextEncoder | None = None
    reranker: Reranker | None = None
    given_subtitles: Path | None = None
    replies_folder: Path | None = None
    indexed: bool = True

    def describer(self) -> FrameDescriber | None:
        """There is no perception."""
        return None

    def captions(self, times: Sequence[float]) -> list[str]:  # noqa: ARG002
        """There are no captions."""
        return []

    def speech(self, within: Segment | None = None) -> list[Line]:  # noqa: ARG002
        """Nothing is said."""
        return []

    def onscreen(self, within: Segment | None = None) -> list[Line]:  # noqa: ARG002
        """Nothing is read in the pictures."""
        return []

    def known_lines(self) -> tuple[list[Line], list[Line]]:
        """Nothing is known to be said or shown."""
        return [], []

    def kept(self, name: str) -> Mapping[str, Any] | None:  # noqa: ARG002
        """There is no index to keep anything with."""
        return None

    def keep(self, name: str, notes: Mapping[str, Any]) -> None:
        """There is no index to keep anything with."""

    def blocks(self: Footage, rule: EventPartition) -> Partition:
        """The footage divided where its features change."""
        return rule(from_features(self, rule.max_feature_frames), self.duration)


def from_features(footage: Footage, max_frames: int) -> Samples:
    """The features of at most ``max_frames`` moments, evenly spaced over the grid."""
    # evenly over the grid: there is no packet table whose keyframes could be preferred
    chosen = sampling.uniform(len(footage.times), max_frames)
    return Samples(footage.times[chosen], np.asarray(footage.features()[chosen], np.float64))


class CaptionSpace:
    """The space of captions and queries: both are sentences."""

    logit_scale: float | None = None

    def __init__(self, name: str) -> None:
        self.name = name
        self.thresholds: Mapping[str, float] = {}


class CaptionedFootage(PlainFootage):
    """A video of which only captions are known; retrieval compares their meaning."""

    has: frozenset[Material] = frozenset({"captions"})

    def __init__(
        self, name: str, captions: Sequence[str], sentences: TextEncoder, *, step: float = 1.0
    ) -> None:
        if not captions:
            raise MediaError(name, "unreadable", "has no captions")
        self.name = name
        self._captions = tuple(captions)
        self._sentences = sentences
        self._step = step
        self.encoder = CaptionSpace(sentences.name)
        self.duration = len(captions) * step
        # the moments that have a caption
        self.times: NDArray[np.float64] = np.arange(len(captions), dtype=np.float64) * step

    def captions(self, times: Sequence[float]) -> list[str]:
        """The captions at the given times."""
        # the addend makes up for rounding errors in times of the grid
        rows = (np.asarray(times) / self._step + 1e-6).astype(int)
        # counted as frames that were seen
        note(CAPTIONS_READ, times=[float(time) for time in times])
        return [self._captions[row] for row in np.clip(rows, 0, len(self._captions) - 1)]

    def embeddings(self) -> NDArray[np.float32]:
        """The meaning of each caption."""
        return self._rows

    @cached_property
    def _rows(self) -> NDArray[np.float32]:
        # each distinct caption is encoded once
        distinct = list(dict.fromkeys(self._captions))
        row_of = {caption: row for row, caption in enumerate(distinct)}
        return self._sentences.texts(distinct)[[row_of[caption] for caption in self._captions]]

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Queries in the space of the captions."""
        return self._sentences.texts(texts)

    # captions differ in nothing but their meaning
    meanings, features = encode, embeddings

    def at(self, times: Sequence[float], *, width: int | None = None) -> list[Frame]:  # noqa: ARG002
        """Raises: there are no pictures."""
        detail = f"is made of captions; it has no pictures to show (asked for {len(times)})"
        raise MediaError(self.name, "no_video", detail)


class FrameFootage(PlainFootage):
    """A series of frames in the order of their times; the grid is the frames themselves."""

    def __init__(self, name: str, frames: Sequence[Frame], senses: PerceptionModels) -> None:
        self.name = name
        self._frames, self._senses = list(frames), senses
        self.times: NDArray[np.float64] = np.asarray([frame.time for frame in frames], np.float64)
        # the last frame lasts as long as the median frame
        gaps = np.diff(self.times)
        self.duration = float(self.times[-1] + (np.median(gaps) if len(gaps) else 1.0))
        self.native_frames = len(self._frames)

    @property
    def encoder(self) -> ImageTextEncoder:
        """The space shared by :meth:`embeddings` and :meth:`encode`, loaded when it is needed."""
        return self._senses.images

    def at(self, times: Sequence[float], *, width: int | None = None) -> list[Frame]:  # noqa: ARG002
        """The last frame at or before each of these times."""
        rows = np.searchsorted(self.times, list(times), side="right") - 1
        return [self._frames[row] for row in np.clip(rows, 0, len(self._frames) - 1)]

    def embeddings(self) -> NDArray[np.float32]:
        """One unit row per frame."""
        return self._embeddings

    @cached_property
    def _embeddings(self) -> NDArray[np.float32]:
        return np.asarray(self._senses.images.images(self._frames), np.float32)

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One unit row per text, in the space of :meth:`embeddings`."""
        return self._senses.images.texts(texts)

    def features(self) -> NDArray[np.float32]:
        """One row per frame describing how it looks."""
        return np.asarray(self._senses.scene_encoder.images(self._frames), np.float32)

    def meanings(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One unit row per text; the cosine of two rows measures how close they are in meaning."""
        return self._senses.sentences.texts(texts)

    @property
    def reranker(self) -> Reranker | None:  # type: ignore[override]  # loaded when needed
        """The reranker of the settings."""
        return self._senses.reranker


class FootageWithout(PlainFootage):
    """Other footage with some stretches removed, as if they had never been recorded.

    Times stay as they are. A removed moment has a black picture, a caption that says so, and a row
    of zeros as its embedding; lines that touch a removed stretch are gone.
    """

    def __init__(self, footage: Footage, removed: Sequence[Segment]) -> None:
        self._footage, self.removed = footage, tuple(removed)
        self.name, self.has, self.duration = footage.name, footage.has, footage.duration
        self.times, self.native_frames = footage.times, footage.native_frames

    @property
    def encoder(self) -> Encoder:
        """The space of the footage."""
        return self._footage.encoder

    @property
    def retriever(self) -> VideoTextEncoder | None:  # type: ignore[override]  # loaded when needed
        """The head of the footage; it only reads embeddings."""
        return self._footage.retriever

    @property
    def reranker(self) -> Reranker | None:  # type: ignore[override]  # loaded when needed
        """The reranker of the footage; it only reads texts."""
        return self._footage.reranker

    def describer(self) -> FrameDescriber | None:
        """Itself, which describes what is left."""
        if self._footage.describer() is None:
            return None
        return self

    @property
    def revision(self) -> str:
        """Changes whenever a picture would be described differently."""
        describer = self._footage.describer()
        return f"{describer.revision if describer else ''} without {self.removed}"

    def describe(self, frame: Frame, channels: Sequence[str]) -> Description:
        """The description of a frame that is not removed, with remaining lines around it."""
        describer = self._footage.describer()
        if describer is None or self.lacks(frame.time):
            return Description()
        described = describer.describe(frame, [name for name in channels if name != "speech"])
        around = Segment(max(0.0, frame.time - 5.0), frame.time + 5.0)
        lines = self.speech(around) if "speech" in channels else []
        return replace(described, speech=tuple(line.text for line in lines))

    def lacks(self, time: float) -> bool:
        """Whether a moment is removed."""
        return any(time in stretch for stretch in self.removed)

    def at(self, times: Sequence[float], *, width: int | None = None) -> list[Frame]:
        """The frames; those of removed moments are black."""
        shown = []
        for frame in self._footage.at(times, width=width):
            pixels = frame.pixels
            # without its film, which would show what is removed
            shown.append(Frame(frame.time, pixels * 0 if self.lacks(frame.time) else pixels))
        return shown

    def captions(self, times: Sequence[float]) -> list[str]:
        """The captions that are left."""
        captions = zip(times, self._footage.captions(times), strict=False)
        return ["(removed)" if self.lacks(time) else text for time, text in captions]

    def speech(self, within: Segment | None = None) -> list[Line]:
        """The lines that are left."""
        return self._left(self._footage.speech(within))

    def onscreen(self, within: Segment | None = None) -> list[Line]:
        """The texts that are left."""
        return self._left(self._footage.onscreen(within))

    def known_lines(self) -> tuple[list[Line], list[Line]]:
        """The lines that are known and left."""
        speech, onscreen = self._footage.known_lines()
        return self._left(speech), self._left(onscreen)

    def _left(self, lines: Sequence[Line]) -> list[Line]:
        return [
            line
            for line in lines
            if not self.lacks(line.segment.start)
            and not any(line.segment.overlap(stretch) > 0 for stretch in self.removed)
        ]

    def embeddings(self) -> NDArray[np.float32]:
        """One row per moment of the grid."""
        return self._blanked(self._footage.embeddings())

    def features(self) -> NDArray[np.float32]:
        """One row per moment of the grid."""
        return self._blanked(self._footage.features())

    def _blanked(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        rows = np.array(rows)
        rows[[self.lacks(time) for time in self.times.tolist()]] = 0.0
        return rows

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One unit row per text, in the space of :meth:`embeddings`."""
        return self._footage.encode(texts)

    def meanings(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One unit row per text."""
        return self._footage.meanings(texts)
