"""A film as methods see it: :class:`~longtake.footage.protocol.Footage` backed by the store."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from longtake.algorithms import sampling
from longtake.algorithms.partition import EventPartition, Partition
from longtake.config import Settings
from longtake.footage.protocol import Material
from longtake.index.blocks import partition
from longtake.index.layers import Glimpses
from longtake.index.pictures import Pictures
from longtake.index.source import Source
from longtake.index.store import FilmFolder, Store
from longtake.index.witness import FilmWitness
from longtake.index.words import Words
from longtake.media.video import Video
from longtake.perception.protocols import ImageTextEncoder, VideoTextEncoder
from longtake.perception.senses import Senses
from longtake.types import Frame, Line, Segment


class Film:
    """One film and its store. Whatever is asked for and not yet known is computed, once."""

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
        self.settings = settings or Settings()
        self.senses = senses or Senses(self.settings.perception, store.root)
        self.source = Source(Path(path), store, self.settings, full_hash=full_hash)
        self.pictures = Pictures(self.source, self.senses)
        self.words = Words(
            self.source,
            self.senses,
            self.pictures.glimpses,
            subtitles=subtitles,
            subtitles_begin=subtitles_begin,
        )

    @property
    def path(self) -> Path:
        """The file."""
        return self.source.path

    @property
    def name(self) -> str:
        """The file's name."""
        return self.path.name

    @property
    def fingerprint(self) -> str:
        """Identity of the file's content."""
        return self.source.fingerprint

    @property
    def folder(self) -> FilmFolder:
        """The film's folder in the store."""
        return self.source.folder

    @property
    def replies_folder(self) -> Path:
        """The folder in which models' replies about this film are kept."""
        return self.folder.path

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
    def given_subtitles(self) -> Path | None:
        """The subtitle file that the user named, if any."""
        return self.words.subtitles.given

    @property
    def subtitle_file(self) -> Path | None:
        """The subtitle file in use: the given one, else the one beside the film."""
        return self.words.subtitles.file

    @property
    def indexed(self) -> bool:
        """Whether pictures and words are all known."""
        pictures = self.pictures
        # the cheapest first: to name the other layers, models may have to be prepared
        if not (pictures.has(Glimpses()) and self.words.complete):
            return False
        return all(map(pictures.has, pictures.layers()))

    def witness(self) -> FilmWitness:
        """What describes this film's frames to models that only read."""
        return FilmWitness(self)

    def at(self, times: Sequence[float], *, width: int | None = None) -> list[Frame]:
        """The frames on screen at the given times."""
        return self.video.at(times, width=width)

    def uniform(
        self, n: int, *, within: Segment | None = None, width: int | None = None
    ) -> list[Frame]:
        """``n`` frames of the grid, evenly spaced, both ends included."""
        grid = self.source.grid(within)
        return self.at(grid[sampling.uniform(len(grid), n)].tolist(), width=width)

    def random(
        self, n: int, *, within: Segment | None = None, seed: int = 0, width: int | None = None
    ) -> list[Frame]:
        """``n`` distinct frames of the grid in time order; the same seed gives the same frames."""
        grid = self.source.grid(within)
        return self.at(grid[sampling.random(len(grid), n, seed)].tolist(), width=width)

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
