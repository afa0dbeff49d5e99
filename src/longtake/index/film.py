"""The :class:`Film` that methods look at, its division into blocks, and descriptions of its frames
for models without vision."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtake._util.cancellation import check_stop
from longtake.algorithms import novelty
from longtake.algorithms.partition import EventCut, EventPartition, Partition
from longtake.algorithms.partition_numbers import Samples
from longtake.config import Settings
from longtake.errors import RunError
from longtake.footage.protocol import Material
from longtake.index.layers import GLIMPSES, Advance, Pictures, ignore
from longtake.index.source import IndexedSource
from longtake.index.store import Arrays, LayerKey, Notes, Store
from longtake.index.text_layers import FilmWords
from longtake.llm.backend import Description
from longtake.perception.loader import PerceptionModels
from longtake.perception.protocols import ImageTextEncoder, Reranker, VideoTextEncoder
from longtake.types import Frame, Line, Segment
from longtake.video.packets import PacketTable
from longtake.video.remote import film_path
from longtake.video.video import Video


class FilmFrameDescriber:
    """Describes moments with the built-in perception; the film's store remembers the result."""

    def __init__(self, film: Film) -> None:
        self._film = film

    @property
    def revision(self) -> str:
        """Identity of the perception models and of the subtitles in use."""
        film, readable = self._film, self._film.words.readable
        onscreen = readable.key if readable else ""
        speech = film.words.speech_key() or ""
        # cached replies of models that read these descriptions depend on all of them
        return "|".join(map(str, (film.fingerprint, film.senses.tagger.key, onscreen, speech)))

    def describe(self, frame: Frame, channels: Sequence[str]) -> Description:
        """The description of a frame by the given channels."""
        film = self._film
        # a caller may have rounded the time of the last frame up
        time = min(frame.time, film.duration)
        tags: tuple[str, ...] = ()
        onscreen: tuple[str, ...] = ()
        speech: tuple[str, ...] = ()
        # channels that are not asked for are not computed
        if "tags" in channels and "pictures" in film.has:
            tags = tuple(tag.name for tag in film.pictures.tags([time], 3)[0])
        if "onscreen" in channels:
            onscreen = tuple(line.text for line in film.words.onscreen_at(time))
        if "speech" in channels:
            # speech within five seconds belongs to the frame
            around = Segment(max(0.0, time - 5.0), min(film.duration, time + 5.0))
            speech = tuple(line.text for line in film.speech(around))
        return Description(tags, onscreen, speech)


_MEASURED = ("times", "histograms", "sharpness", "motion", "embeddings")


def partition(film: Film, rule: EventPartition, advance: Advance = ignore) -> Partition:
    """The blocks of a film, computed once."""

    def make() -> tuple[Arrays, Notes]:
        # JSON keeps the few cuts readable
        return {}, dataclasses.asdict(rule(measured(film, rule, advance), film.duration))

    _, notes = film.source.once(_blocks_key(film, rule), make)
    cuts = [EventCut(cut["time"], cut["strength"], tuple(cut["heads"])) for cut in notes["cuts"]]
    return Partition(notes["duration"], tuple(cuts))


def measured(film: Film, rule: EventPartition, advance: Advance = ignore) -> Samples:
    """The measurements on a film's sampled frames, made once."""

    def make() -> tuple[Arrays, Notes]:
        times = sample_times(film.video.table, rule.max_feature_frames)
        samples = _measure(film, times, rule.width, advance)
        return {name: getattr(samples, name) for name in _MEASURED}, {}

    arrays, _ = film.source.once(_measured_key(film, rule), make)
    return Samples(**{name: np.asarray(arrays[name], np.float64) for name in _MEASURED})


def sample_times(table: PacketTable, max_frames: int) -> NDArray[np.float64]:
    """Evenly spaced times over a film: at most ``max_frames`` and at most one per frame.

    A time moves to the nearest keyframe within a quarter of a step, which saves decoding from the
    keyframe to the time. With keyframes at most half a step apart every time moves; in an hour-long
    film with a keyframe every ten seconds, nine of ten do.
    """
    count = min(max_frames, len(table))
    wanted = np.linspace(table.times[0], table.times[-1], count)
    # hidden keyframes cannot be fetched, so no time may move to one
    keys = np.sort(table.pts[table.keys[table.shown[table.keys]]]) * table.tick
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
    # motion compares consecutive frames, so all are measured in one pass
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
        # in batches, to limit memory
        if len(batch) == 16 or number == len(times):
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


class Film:
    """One film and its store; everything is computed on demand, and once."""

    def __init__(
        self,
        path: Path | str,
        store: Store,
        settings: Settings | None = None,
        *,
        senses: PerceptionModels | None = None,
        subtitles: Path | None = None,
        subtitles_begin: float = 0.0,
    ) -> None:
        self.settings = settings or Settings()
        # all films of a process share the models, which take seconds to load
        self.senses = senses or PerceptionModels(self.settings.perception, store.root)
        self.source = IndexedSource(film_path(path), store, self.settings)
        self.path, self.name = self.source.path, self.source.path.name
        self.fingerprint, self.folder = self.source.fingerprint, self.source.folder
        # what models reply about the film is kept with it
        self.replies_folder = self.folder.path
        self.given_subtitles = subtitles
        self.pictures = Pictures(self.source, self.senses)
        self.words = FilmWords(
            self.source,
            self.senses,
            self.pictures.glimpses,
            subtitles=subtitles,
            subtitles_begin=subtitles_begin,
        )

    @property
    def has(self) -> frozenset[Material]:
        """Pictures, unless the file has sound only."""
        return frozenset({"pictures"} if self.video.info.codec else ())

    @property
    def video(self) -> Video:
        """The decoder."""
        return self.source.video

    @property
    def duration(self) -> float:
        """Length in seconds."""
        return self.video.duration

    @property
    def times(self) -> NDArray[np.float64]:
        """The grid that rows and frame numbers refer to, one moment per second by default."""
        return self.source.grid()

    @property
    def native_frames(self) -> int:
        """Number of pictures in the file."""
        return len(self.video.table)

    @property
    def encoder(self) -> ImageTextEncoder:
        """The space shared by :meth:`embeddings` and :meth:`encode`."""
        return self.senses.images

    @property
    def retriever(self) -> VideoTextEncoder | None:
        """The trained head that scores clips against texts, if one is configured."""
        return self.senses.retriever

    @property
    def reranker(self) -> Reranker | None:
        """What tells whether lines answer a question, if it is there."""
        return self.senses.reranker

    @property
    def subtitle_file(self) -> Path | None:
        """The subtitle file in use: the given one, else the one beside the film."""
        return self.words.subtitles.file

    @property
    def indexed(self) -> bool:
        """Whether pictures and words are all known."""
        pictures = self.pictures
        # cheapest first: the names of the other layers may require loading models
        if not (pictures.has(GLIMPSES) and self.words.complete):
            return False
        return all(map(pictures.has, pictures.layers()))

    def describer(self) -> FilmFrameDescriber:
        """What describes this film's frames to models that only read."""
        return FilmFrameDescriber(self)

    def at(self, times: Sequence[float], *, width: int | None = None) -> list[Frame]:
        """The frames on screen at the given times."""
        video = self.video
        return [dataclasses.replace(each, film=video) for each in video.at(times, width=width)]

    def embeddings(self) -> NDArray[np.float32]:
        """One unit row per moment of the grid."""
        return self.pictures.embeddings

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One unit row per text, in the space of :meth:`embeddings`."""
        return self.senses.images.texts(texts)

    def features(self) -> NDArray[np.float32]:
        """How each moment of the grid looks, independent of any text."""
        return self.pictures.features()

    def blocks(self, rule: EventPartition) -> Partition:
        """The film divided where what is visible changes, computed once."""
        return partition(self, rule)

    def meanings(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One unit row per text; the cosine of two rows measures how close they are in meaning."""
        self.video  # noqa: B018 - creates the folder that the vectors are kept in
        encoder, store = self.senses.sentences, self.source.text
        # encoding is slow, so vectors are stored
        known = store.meanings(encoder.key, set(texts))
        new = [text for text in dict.fromkeys(texts) if text not in known]
        if new:
            rows = np.asarray(encoder.texts(new), np.float32)
            added = {text: row.tobytes() for text, row in zip(new, rows, strict=True)}
            store.add_meanings(encoder.key, added)
            known |= added
        if not texts:
            return encoder.texts(texts)
        return np.stack([np.frombuffer(known[text], np.float32) for text in texts])

    def captions(self, times: Sequence[float]) -> list[str]:  # noqa: ARG002
        """Always empty: a film has pictures, not captions."""
        return []

    def speech(self, within: Segment | None = None) -> list[Line]:
        """What is said: subtitles if there are any, otherwise recognised speech."""
        return self.words.speech(within)

    def onscreen(self, within: Segment | None = None) -> list[Line]:
        """Text visible in the picture."""
        return self.words.onscreen(within)

    def known_lines(self) -> tuple[list[Line], list[Line]]:
        """Speech and on-screen text that are already known."""
        return self.words.known()

    def kept(self, name: str) -> Mapping[str, Any] | None:
        """What :meth:`keep` was given under a name; ``None`` if nothing was."""
        stored = self.folder.read(kept_key(name))
        return None if stored is None else stored[1]

    def keep(self, name: str, notes: Mapping[str, Any]) -> None:
        """Keep notes, as JSON, with the film's index."""
        # notes can be made again, so this does not wait for another process
        with suppress(RunError), self.folder.building(wait=False):
            self.folder.write(kept_key(name), {}, notes)


def kept_key(name: str) -> LayerKey:
    """The layer of notes that are kept under a name."""
    return LayerKey(name, 1)
