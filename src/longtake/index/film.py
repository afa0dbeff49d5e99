"""A film as methods see it: verbs that give frames with times, and lines of text."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtake.algorithms import sampling
from longtake.algorithms.partition import EventPartition, Partition
from longtake.config import Settings
from longtake.errors import MissingExtra
from longtake.events import note, note_once
from longtake.footage.protocol import Material
from longtake.index import blocks
from longtake.index.fingerprint import fingerprint
from longtake.index.layers import (
    Advance,
    FrameLayer,
    Glimpses,
    build_frame_layers,
    ignore,
    load_video,
    save_video,
    with_grid,
)
from longtake.index.onscreen import Reading
from longtake.index.pictures import Embeddings, Looks, features, needed, probabilities
from longtake.index.speech import Hearing
from longtake.index.store import FilmFolder, LayerKey, Store
from longtake.index.text import TextStore
from longtake.index.witness import FilmWitness
from longtake.media.container import check_plain_file
from longtake.media.subtitles import embedded_subtitles, read_subtitles, sidecar
from longtake.media.video import Video, sample_times
from longtake.perception.conse import ConSE
from longtake.perception.efficientnet import best_tags
from longtake.perception.protocols import ImageTextEncoder, Tag, VideoTextEncoder
from longtake.perception.senses import Senses
from longtake.types import Frame, Line, Segment


class Film:
    """One film with its store. Whatever is asked for and not yet known is computed, once."""

    has: frozenset[Material] = frozenset({"pictures"})

    def __init__(
        self,
        path: Path | str,
        store: Store,
        settings: Settings | None = None,
        *,
        senses: Senses | None = None,
        subtitles: Path | None = None,
        subtitles_begin: float = 0.0,
        full_hash: bool = False,
    ) -> None:
        self.path = Path(path)
        self.settings = settings or Settings()
        self.senses = senses or Senses(self.settings.perception, store.root)
        self.store = store
        self.fingerprint = fingerprint(self.path, full=full_hash)
        self.folder: FilmFolder = store.film(self.fingerprint)
        self.text = TextStore(self.folder.path / "text.db")
        self.given_subtitles = subtitles
        """The subtitle file that was named, before any beside the film."""
        self._subtitles_begin = subtitles_begin
        self._video: Video | None = None

    @property
    def video(self) -> Video:
        """The decoder, opened from the stored packet table when there is one."""
        if self._video is None:
            video = load_video(self.folder, self.path, self.settings.media)
            if video is None:
                video = Video(self.path, limits=self.settings.media)
                len(
                    video.table
                )  # a file that is no film fails here, before anything is made for it
                self.folder.use(self.path)
                with self.folder.building(on_wait=self._waiting):
                    if load_video(self.folder, self.path, self.settings.media) is None:
                        save_video(self.folder, video)
            else:
                self.folder.use(self.path)
            self._video = video
        return self._video

    @property
    def name(self) -> str:
        """The file's name."""
        return self.path.name

    @property
    def encoder(self) -> ImageTextEncoder:
        """The space that :meth:`embeddings` and :meth:`encode` share."""
        return self.senses.encoder

    @property
    def duration(self) -> float:
        """Seconds."""
        return self.video.duration

    @property
    def native_frames(self) -> int:
        """Pictures in the file."""
        return len(self.video.table)

    @property
    def retriever(self) -> VideoTextEncoder | None:
        """What scores clips against texts, where the settings name a trained head."""
        return self.senses.retriever

    @property
    def times(self) -> NDArray[np.float64]:
        """The grid that frame layers and frame numbers refer to, one moment a second by default."""
        return sample_times(self.duration, self.settings.index.fps)

    def at(self, times: Sequence[float], *, width: int | None = None) -> list[Frame]:
        """The frames on screen at these moments."""
        return self.video.at(times, width=width)

    def uniform(
        self, n: int, *, within: Segment | None = None, width: int | None = None
    ) -> list[Frame]:
        """``n`` frames spread evenly over the film, ends included, or over a stretch of it."""
        grid = self._grid(within)
        return self.at(grid[sampling.uniform(len(grid), n)].tolist(), width=width)

    def random(
        self, n: int, *, within: Segment | None = None, seed: int = 0, width: int | None = None
    ) -> list[Frame]:
        """``n`` different frames drawn at random, the same for the same seed, in time order."""
        grid = self._grid(within)
        return self.at(grid[sampling.random(len(grid), n, seed)].tolist(), width=width)

    def layer(self, layer: FrameLayer, advance: Advance = ignore) -> NDArray[Any]:
        """A frame layer's rows, one per moment of :attr:`times`, computed now if need be."""
        return self.frame_layers([layer], advance)[0]

    def frame_layers(
        self, layers: Sequence[FrameLayer], advance: Advance = ignore
    ) -> list[NDArray[Any]]:
        """Several frame layers; those that are missing share one pass over the film."""
        fps = self.settings.index.fps
        keys = [with_grid(layer.key, fps) for layer in layers]
        if not all(self.folder.has(key) for key in keys):
            video = self.video  # outside the lock, which opening may itself need
            with self.folder.building(on_wait=self._waiting):
                build_frame_layers(self.folder, video, layers, fps=fps, advance=advance)
        stored = [self.folder.read(key) for key in keys]
        return [arrays["rows"] for arrays, _ in (s for s in stored if s is not None)]

    def has_layer(self, layer: FrameLayer) -> bool:
        """Whether a frame layer is there already."""
        return self.folder.has(with_grid(layer.key, self.settings.index.fps))

    def glimpses(self) -> NDArray[Any]:
        """Thumbnails, one per moment of :attr:`times`."""
        return self.layer(Glimpses())

    def looking_layers(self) -> list[FrameLayer]:
        """The frame layers that searching and the methods stand on."""
        return [Glimpses(), *needed(self.senses.encoder, self.senses.looker)]

    def embeddings(self) -> NDArray[np.float32]:
        """A unit row per moment of :attr:`times`."""
        return self._embeddings

    @cached_property
    def _embeddings(self) -> NDArray[np.float32]:
        encoder = self.senses.encoder
        if not isinstance(encoder, ConSE):
            return np.asarray(self.layer(Embeddings(encoder)), np.float32)
        key = with_grid(Embeddings(encoder).key, self.settings.index.fps)
        if not self.folder.has(key):
            # they follow from the tags: nothing is decoded or looked at again
            rows = encoder.from_probabilities(probabilities(self.layer(Looks(self.senses.looker))))
            with self.folder.building(on_wait=self._waiting):
                if not self.folder.has(key):
                    self.folder.write(key, {"rows": rows}, {})
        stored = self.folder.read(key)
        assert stored is not None
        return np.asarray(stored[0]["rows"])

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """A unit row per text, in the space of :meth:`embeddings`."""
        return self.senses.encoder.texts(texts)

    def features(self) -> NDArray[np.float32]:
        """How each moment looks, with no text in mind."""
        return features(self.layer(Looks(self.senses.looker)))

    def meanings(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """A unit row per text, by meaning."""
        return self.senses.sentences.texts(texts)

    def tags(self, times: Sequence[float], top: int = 5) -> list[list[Tag]]:
        """The most probable things in the picture at these moments."""
        rows = np.clip(
            np.searchsorted(self.times, list(times), side="right") - 1, 0, len(self.times) - 1
        )
        seen = probabilities(self.layer(Looks(self.senses.looker)))
        return [best_tags(seen[row], top) for row in rows]

    def captions(self, times: Sequence[float]) -> list[str]:  # noqa: ARG002
        """Always empty: a film has pictures, not captions."""
        return []

    def blocks(self, rule: EventPartition) -> Partition:
        """The film divided where what is visible changes, computed once."""
        return blocks.partition(self, rule)

    def witness(self) -> FilmWitness:
        """What describes this film's frames to models that only read."""
        return FilmWitness(self)

    @property
    def replies_folder(self) -> Path:
        """The folder in which models' replies about this film are kept."""
        return self.folder.path

    @cached_property
    def hearing(self) -> Hearing | None:
        """Speech recognition for this film; ``None`` with subtitles, without sound or without a listener."""
        unneeded = self.subtitle_key() is not None or not self.video.info.audio
        listener = None if unneeded or self.unheard else self.senses.listener
        if listener is None:
            return None
        return Hearing(
            self.path,
            self.text,
            listener,
            origin=self.video.origin,
            duration=self.duration,
            limits=self.settings.media,
        )

    @cached_property
    def unheard(self) -> str:
        """Why the film's speech is left out, with the line that installs a listener; empty where nothing is amiss."""
        if self.subtitle_key() is not None or not self.video.info.audio:
            return ""
        try:
            self.senses.listener  # noqa: B018
        except MissingExtra as error:
            return str(error)
        return ""

    @cached_property
    def reading(self) -> Reading | None:
        """On-screen text for this film; ``None`` without a reader."""
        reader = self.senses.reader
        return (
            None
            if reader is None
            else Reading(self.video, self.text, reader, glimpses=self.glimpses(), times=self.times)
        )

    def speech(self, within: Segment | None = None) -> list[Line]:
        """Subtitles where there are any, else what is recognised, listening now to what was not heard before.

        Nothing, with a note, where the listener is not installed: the pictures are worth an answer without it.
        """
        if self.subtitle_key() is not None:
            return self.subtitles(within)
        if self.hearing is None:
            if self.unheard:
                note_once("speech_left_out", why=self.unheard)
            return []
        if self.hearing.missing(within):
            with self.folder.building(on_wait=self._waiting):
                self.hearing.build(within)
        return self.text.lines(self.hearing.key, within)

    def read(self, time: float) -> list[Line]:
        """What can be read in the very frame at a moment."""
        if self.reading is None:
            return []
        with self.folder.building(on_wait=self._waiting):
            return self.reading.exactly(time)

    def known_lines(self) -> tuple[list[Line], list[Line]]:
        """Speech and on-screen text, as far as the film was listened to and read."""
        if self.subtitle_key() is not None:
            speech = self.subtitles()
        else:
            speech = self.text.lines(self.hearing.key) if self.hearing else []
        return speech, self.text.lines(self.reading.key) if self.reading else []

    def onscreen(self, within: Segment | None = None) -> list[Line]:
        """What can be read in the picture, reading now what was not read before."""
        if self.reading is None:
            return []
        if self.reading.missing(within):
            with self.folder.building(on_wait=self._waiting):
                self.reading.build(within)
        return self.text.lines(self.reading.key, within)

    def subtitles(self, within: Segment | None = None) -> list[Line]:
        """Lines of the given subtitle file, else of the one beside the film, else of its own stream."""
        key = self.subtitle_key()
        if key is None:
            return []
        whole = [
            Segment(0.0, self.duration)
        ]  # opens the film: one that was never looked at has no folder yet
        if not self.text.has(key):
            with self.folder.building(on_wait=self._waiting):
                if not self.text.has(key):
                    self.text.add(key, self._read_subtitles(), whole)
        return self.text.lines(key, within)

    def subtitle_key(self) -> LayerKey | None:
        """The layer that holds the subtitles; ``None`` when the film has none."""
        source = self.subtitle_file
        if source is not None:
            check_plain_file(source)
            content = hashlib.blake2b(source.read_bytes(), digest_size=8).hexdigest()
            begin = {"begin": self._subtitles_begin} if self._subtitles_begin else {}
            return LayerKey("subtitles", 1, {"file": content, "suffix": source.suffix, **begin})
        if self.video.info.subtitles:
            return LayerKey("subtitles", 1, {"stream": self.video.info.subtitles[0].index})
        return None

    @property
    def subtitle_file(self) -> Path | None:
        """The side-car in use."""
        return self.given_subtitles or sidecar(self.path)

    def _read_subtitles(self) -> list[Line]:
        if self.subtitle_file is not None:
            return read_subtitles(
                self.subtitle_file, self.settings.media, begin=self._subtitles_begin
            )
        stream = self.video.info.subtitles[0].index
        return embedded_subtitles(
            self.path, origin=self.video.origin, index=stream, limits=self.settings.media
        )

    def _grid(self, within: Segment | None) -> NDArray[np.float64]:
        return (
            self.times
            if within is None
            else sample_times(self.duration, self.settings.index.fps, within)
        )

    def _waiting(self) -> None:
        note("waiting", film=str(self.path), why="another process is working on this film")
