"""Training data for the retrieval head: captioned clips, chosen, encoded and split.

Clips are chosen as for LVAgent's LongVR dataset: 5 seconds to 12 minutes long, with captions of at
least 20 tokens. Captions longer than the text encoder's limit are rewritten by a model, if one is
given, as the authors did; otherwise they are shortened by whole sentences. Whatever is dropped is
reported.
"""

from __future__ import annotations

import csv
import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtake.agents.run import Run
from longtake.agents.team import fanout
from longtake.algorithms import sampling
from longtake.config import Settings, cache_folder
from longtake.errors import ConfigError, LongtakeError
from longtake.footage.protocol import Footage
from longtake.index.film import Film
from longtake.llm.structured.ask import ask
from longtake.perception.cards import CardImageTextEncoder
from longtake.perception.loader import PerceptionModels
from longtake.perception.minilm import LONGEST, bert_tokenizer
from longtake.perception.protocols import ImageTextEncoder
from longtake.perception.runtime import unit
from longtake.perception.torch_encoder import TorchImageTextEncoder
from longtake.runner.films import VIDEO_SUFFIXES, open_store
from longtake.types import Frame, Segment

_SENTENCE = re.compile(r"(?<=[.!?])\s+")
Count = Callable[[str], int]
"""Counts the tokens of a text."""


@dataclass(frozen=True)
class CaptionRules:
    """Which captioned clips are kept."""

    shortest: float = 5.0
    """Seconds."""
    longest: float = 720.0
    """Seconds."""
    least_tokens: int = 20
    """Minimum per caption; a shorter one cannot distinguish long clips."""


@dataclass(frozen=True)
class CaptionedClip:
    """A captioned segment of a video."""

    video: str
    segment: Segment
    caption: str


@dataclass
class Dropped:
    """Counts of dropped clips by reason, and of rewritten and shortened captions."""

    reasons: Counter[str] = field(default_factory=Counter)
    rewritten: int = 0
    shortened: int = 0
    examples: dict[str, str] = field(default_factory=dict)
    """The first case for each reason."""

    def add(self, reason: str, case: str) -> None:
        """Count one dropped clip."""
        self.reasons[reason] += 1
        self.examples.setdefault(reason, case)

    def lines(self) -> list[str]:
        """One line per reason, with its first case."""
        lines = []
        for reason, count in self.reasons.most_common():
            lines.append(f"dropped {count}: {reason} ({self.examples[reason]})")
        if self.rewritten:
            lines.append(f"rewrote {self.rewritten} captions")
        if self.shortened:
            lines.append(f"shortened {self.shortened} captions")
        return lines


def read_list(path: Path) -> list[Mapping[str, Any]]:
    """Rows with ``video, start, end, caption`` from JSON lines, a JSON list, or CSV.

    Annotations of ActivityNet Captions, YouCook2 and ViTT are read as their authors publish them.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
        if path.suffix == ".csv":
            return list(csv.DictReader(text.splitlines()))
        rows = list(_published(_parsed(text, whole=path.suffix == ".json")))
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"{path}: cannot be read ({reason})") from error
    except json.JSONDecodeError as error:
        raise ConfigError(f"{path}: not valid JSON (line {error.lineno}: {error.msg})") from error
    except (AttributeError, KeyError, TypeError) as error:
        known = "nor annotations of ActivityNet Captions, YouCook2 or ViTT"
        columns = "video, start, end and caption"
        raise ConfigError(f"{path}: not a list of objects with {columns}, {known}") from error
    except (ValueError, RecursionError, csv.Error) as error:
        raise ConfigError(f"{path}: malformed ({error})") from error
    return rows


def _parsed(text: str, *, whole: bool) -> Any:
    """JSON in one piece or in lines."""
    if whole:
        try:
            return json.loads(text)
        except json.JSONDecodeError as error:
            # ViTT-annotations.json has an object per line in spite of its name
            if error.msg != "Extra data":
                raise
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def _published(data: Any) -> Iterator[Mapping[str, Any]]:
    """Rows of a list, or of annotations that a dataset's authors publish."""
    if isinstance(data, dict):
        # YouCook2 has its videos under one key
        for video, about in data.get("database", data).items():
            yield from _captions(video, about)
        return
    for row in data:
        if "annotations" not in row:
            yield {**row}
            continue
        # ViTT: sections by their beginnings in milliseconds; where the last one ends is not stated
        begins = [section["timestamp"] / 1000 for section in row["annotations"]]
        ends = [*begins[1:], None]
        for section, start, end in zip(row["annotations"], begins, ends, strict=True):
            yield {"video": row["id"], "start": start, "end": end, "caption": section["tag"]}


def _captions(video: str, about: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The captions of a video in ActivityNet Captions (two lists) or YouCook2 (one)."""
    if "timestamps" in about:
        pairs = list(zip(about["timestamps"], about["sentences"], strict=True))
    else:
        pairs = [(each["segment"], each["sentence"]) for each in about["annotations"]]
    for (start, end), caption in pairs:
        yield {"video": video, "start": start, "end": end, "caption": caption}


def keep(
    rows: Iterable[Mapping[str, Any]],
    rules: CaptionRules,
    count: Count,
    most_tokens: int,
    run: Run | None = None,
) -> tuple[list[CaptionedClip], Dropped]:
    """The clips that the rules accept, and what was dropped; ``run`` has a model that rewrites."""
    kept: list[CaptionedClip] = []
    too_long: list[int] = []
    dropped = Dropped()
    for number, row in enumerate(rows, start=1):
        clip = _clip(row)
        if clip is None:
            dropped.add("no video, start, end and caption", f"row {number}")
            continue
        seconds, tokens = clip.segment.duration, count(clip.caption)
        if seconds < rules.shortest:
            dropped.add(f"shorter than {rules.shortest:g} s", f"row {number}, {seconds:g} s")
        elif seconds > rules.longest:
            dropped.add(f"longer than {rules.longest:g} s", f"row {number}, {seconds:g} s")
        elif tokens < rules.least_tokens:
            reason = f"caption of fewer than {rules.least_tokens} tokens"
            dropped.add(reason, f"row {number}, {tokens} tokens")
        else:
            if tokens > most_tokens:
                too_long.append(len(kept))
            kept.append(clip)
    captions = [kept[place].caption for place in too_long]
    written = captions if run is None else fanout(partial(_rewritten, run, most_tokens), captions)
    for place, caption in zip(too_long, written, strict=True):
        if rules.least_tokens <= count(caption) <= most_tokens:
            dropped.rewritten += 1
        else:
            caption = shorten(kept[place].caption, most_tokens, count)
            dropped.shortened += 1
        kept[place] = replace(kept[place], caption=caption)
    return kept, dropped


def _rewritten(run: Run, most_tokens: int, caption: str) -> str:
    """The caption in a model's words; empty if its reply cannot be read."""
    words = int(most_tokens / 1.4)  # a rough average for English text
    reply = ask(
        run["llm"],
        "shared/caption",
        default="",
        max_tokens=2 * most_tokens,
        caption=caption,
        words=words,
    )
    return " ".join(reply.split())


def shorten(caption: str, most_tokens: int, count: Count) -> str:
    """As many sentences as fit; if not even the first fits, as many of its words as fit."""
    sentences = _SENTENCE.split(caption)
    return _first(sentences, most_tokens, count) or _first(sentences[0].split(), most_tokens, count)


def _first(pieces: Sequence[str], most_tokens: int, count: Count) -> str:
    fits = ""
    for number in range(1, len(pieces) + 1):
        text = " ".join(pieces[:number])
        if count(text) > most_tokens:
            break
        fits = text
    return fits


def _clip(row: Mapping[str, Any]) -> CaptionedClip | None:
    try:
        video, caption = row["video"], row["caption"]
        segment = Segment(float(row["start"]), float(row["end"]))
    except (KeyError, TypeError, ValueError):
        return None
    named = isinstance(video, str) and isinstance(caption, str) and video
    if not named or segment.start < 0:
        return None
    return CaptionedClip(video, segment, " ".join(caption.split()))


Rows = NDArray[np.float32]
Squares = Callable[[Sequence[Frame]], NDArray[np.uint8]]


@dataclass(frozen=True)
class Pairs:
    """``n`` clips with their captions."""

    frames: NDArray[Any]
    """``n × t × d``, padded with zeros after each clip's last frame. Where the encoder is trained
    too, pictures as it takes them instead of vectors: ``n × t × 3 × side × side``."""
    counts: NDArray[np.int64]
    """Number of frames per clip."""
    texts: NDArray[Any]
    """``n × d``, or the captions themselves."""
    videos: NDArray[Any]
    """The video of each clip; clips are held out by video."""

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def raw(self) -> bool:
        """Whether they are pictures and captions, not vectors."""
        return self.frames.ndim > 3

    def clip(self, number: int) -> Rows:
        """The frame vectors of one clip."""
        return np.asarray(self.frames[number, : self.counts[number]], np.float32)

    def only(self, chosen: Sequence[int]) -> Pairs:
        """The pairs with the given indices."""
        rows = np.asarray(chosen, np.int64)
        return Pairs(self.frames[rows], self.counts[rows], self.texts[rows], self.videos[rows])


def stack(
    clips: Sequence[NDArray[Any]], texts: NDArray[Any], videos: Sequence[str], max_frames: int
) -> Pairs:
    """Pairs from clips, each thinned out evenly to at most ``max_frames`` frames."""
    if not clips:
        raise ConfigError("no clips left to train on")
    counts = np.array([min(len(rows), max_frames) for rows in clips], np.int64)
    raw = clips[0].ndim > 2
    kind = np.uint8 if raw else np.float16
    frames = np.zeros((len(clips), max_frames, *clips[0].shape[1:]), kind)
    for number, rows in enumerate(clips):
        thinned = rows[sampling.uniform(len(rows), max_frames)]
        frames[number, : counts[number]] = thinned if raw else unit(thinned)
    return Pairs(frames, counts, texts if raw else texts.astype(np.float16), np.asarray(videos))


def embed(
    clips: Sequence[CaptionedClip],
    dropped: Dropped,
    opener: Callable[[str], Footage],
    max_frames: int,
    advance: Callable[[float], None] = lambda share: None,  # noqa: ARG005
    squares: Squares | None = None,
) -> Pairs:
    """Embed every clip through its film's index; unreadable films are dropped and reported.

    With ``squares``, which prepares frames for the encoder, clips stay pictures and captions.
    """
    by_video: dict[str, list[CaptionedClip]] = {}
    for clip in clips:
        by_video.setdefault(clip.video, []).append(clip)
    rows: list[NDArray[Any]] = []
    texts: list[NDArray[Any]] = []
    names: list[str] = []
    for number, (video, listed) in enumerate(by_video.items()):
        advance(number / len(by_video))
        try:
            footage = opener(video)
            times = footage.times
            vectors = np.zeros(0) if squares else footage.embeddings()
        except LongtakeError as error:
            for _ in listed:
                dropped.add("film cannot be read", str(error))
            continue
        inside = []
        for clip in listed:
            moments = np.flatnonzero((times >= clip.segment.start) & (times < clip.segment.end))
            # containers round durations, so a caption may end a little late
            if not len(moments) or clip.segment.end > footage.duration + 1.0:
                dropped.add("beyond the end of its film", f"{video} at {clip.segment.start:g} s")
                continue
            if squares:
                chosen = times[moments[sampling.uniform(len(moments), max_frames)]]
                try:
                    rows.append(squares(footage.at(chosen.tolist())))
                except LongtakeError as error:
                    dropped.add("film cannot be read", str(error))
                    continue
            else:
                rows.append(np.asarray(vectors[moments], np.float32))
            inside.append(clip)
        if inside:
            written = [clip.caption for clip in inside]
            texts.append(np.asarray(written) if squares else footage.encode(written))
            names += [video] * len(inside)
    captions = np.concatenate(texts) if texts else np.zeros((0, 1), np.float32)
    return stack(rows, captions, names, max_frames)


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


def prepare(
    data: Path,
    videos: Path,
    settings: Settings,
    rules: CaptionRules,
    frames: int,
    advance: Callable[[float], None] = lambda share: None,  # noqa: ARG005
    *,
    raw: bool = False,
    run: Run | None = None,
) -> tuple[Pairs, list[str], ImageTextEncoder]:
    """The pairs of a list, a report of what was dropped, and the encoder.

    Vectors come from the films' indexes. With ``raw`` the pairs are pictures and captions, so that
    the encoder can be trained. The model of ``run`` rewrites captions that are too long.
    """
    senses = PerceptionModels(settings.perception, cache_folder(settings))
    squares = _squares(senses.images) if raw else None
    listed = read_list(data)
    paths = _paths(listed, videos)
    count, max_tokens = tokens_of(senses.images)
    clips, dropped = keep(listed, rules, count, max_tokens, run)
    store = open_store(settings)

    def opened(video: str) -> Film:
        return Film(paths[video], store, settings, senses=senses)

    try:
        pairs = embed(clips, dropped, opened, frames, advance, squares)
    except ConfigError as error:
        why = "; ".join(dropped.lines()) or f"{data} lists none"
        raise ConfigError(f"{error} ({why})") from error
    films = len(set(pairs.videos.tolist()))
    report = [f"kept {len(pairs)} clips of {films} films", *dropped.lines()]
    return pairs, report, senses.images


def tokens_of(encoder: ImageTextEncoder) -> tuple[Count, int]:
    """How the encoder's text side counts tokens, and how many it accepts."""
    if isinstance(encoder, CardImageTextEncoder) and encoder.card.text is not None:
        return encoder.count, encoder.card.text.length
    if isinstance(encoder, TorchImageTextEncoder):
        return encoder.count, encoder.longest
    tokenizer = bert_tokenizer()
    tokenizer.no_truncation()
    return lambda text: len(tokenizer.encode(text).ids), LONGEST


def _squares(encoder: ImageTextEncoder) -> Squares:
    """What prepares frames for an encoder that can be trained."""
    if not isinstance(encoder, TorchImageTextEncoder):
        raise ConfigError(
            f"{encoder.name} cannot be trained; set perception.images=transformers, and "
            "perception.images_folder to a model folder",
            key="--encoder-rate",
        )
    return encoder.squares


def _paths(listed: Sequence[Mapping[str, Any]], videos: Path) -> dict[str, Path]:
    """The file of each video: with a film's suffix anywhere in the folder, or of that name."""
    files = sorted(videos.rglob("*"), reverse=True)
    below = {file.stem: file for file in files if file.suffix in VIDEO_SUFFIXES}
    names = {str(row.get("video")) for row in listed}
    return {name: below.get(name, videos / name) for name in names}
