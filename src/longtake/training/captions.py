"""From captioned stretches of films to pairs worth training on, as LVAgent's LongVR was made.

Stretches of 5 seconds to 12 minutes whose captions have at least 20 tokens stay; captions that are longer than the text
encoder takes in are shortened by whole sentences (the authors let a model rewrite them). Nothing is dropped unsaid.
"""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from longtake.errors import ConfigError
from longtake.types import Segment

_SENTENCE = re.compile(r"(?<=[.!?])\s+")
Count = Callable[[str], int]
"""Tokens of a text."""


@dataclass(frozen=True)
class Rules:
    """Which captioned stretches stay."""

    shortest: float = 5.0
    """Seconds."""
    longest: float = 720.0
    """Seconds."""
    least_tokens: int = 20
    """Of a caption; a shorter one cannot tell a long clip from another."""


@dataclass(frozen=True)
class Clip:
    """A captioned stretch of a film."""

    video: str
    segment: Segment
    caption: str


@dataclass
class Dropped:
    """What was left out, by reason, and what was changed."""

    reasons: Counter[str] = field(default_factory=Counter)
    shortened: int = 0
    examples: dict[str, str] = field(default_factory=dict)
    """For each reason the first case."""

    def add(self, reason: str, case: str) -> None:
        """Count one."""
        self.reasons[reason] += 1
        self.examples.setdefault(reason, case)

    def lines(self) -> list[str]:
        """One line a reason, with its first case."""
        found = [
            f"dropped {count}: {reason} ({self.examples[reason]})"
            for reason, count in self.reasons.most_common()
        ]
        return [*found, f"shortened {self.shortened} captions"] if self.shortened else found


def read_list(path: Path) -> list[Mapping[str, Any]]:
    """Rows with ``video, start, end, caption``: JSON lines, a JSON list, or CSV with a header."""
    try:
        text = path.read_text(encoding="utf-8-sig")
        if path.suffix == ".csv":
            return list(csv.DictReader(text.splitlines()))
        if path.suffix == ".json":
            rows = json.loads(text)
        else:
            rows = [json.loads(line) for line in text.splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"{path}: cannot be read ({getattr(error, 'strerror', None) or error})"
        ) from error
    except json.JSONDecodeError as error:
        raise ConfigError(f"{path}: not valid JSON (line {error.lineno}: {error.msg})") from error
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ConfigError(f"{path}: holds no list of objects with video, start, end and caption")
    return rows


def keep(
    rows: Iterable[Mapping[str, Any]], rules: Rules, count: Count, most_tokens: int
) -> tuple[list[Clip], Dropped]:
    """The stretches that the rules let through, and what was dropped."""
    kept: list[Clip] = []
    dropped = Dropped()
    for number, row in enumerate(rows, start=1):
        clip = _clip(row)
        if clip is None:
            dropped.add("no video, start, end and caption", f"row {number}")
        elif clip.segment.duration < rules.shortest:
            dropped.add(
                f"shorter than {rules.shortest:g} s", f"row {number}, {clip.segment.duration:g} s"
            )
        elif clip.segment.duration > rules.longest:
            dropped.add(
                f"longer than {rules.longest:g} s", f"row {number}, {clip.segment.duration:g} s"
            )
        elif (tokens := count(clip.caption)) < rules.least_tokens:
            dropped.add(
                f"caption of fewer than {rules.least_tokens} tokens",
                f"row {number}, {tokens} tokens",
            )
        else:
            caption = (
                clip.caption if tokens <= most_tokens else shorten(clip.caption, most_tokens, count)
            )
            dropped.shortened += caption != clip.caption
            kept.append(Clip(clip.video, clip.segment, caption))
    return kept, dropped


def shorten(caption: str, most_tokens: int, count: Count) -> str:
    """The first sentences that fit; where not even one does, as many words as fit."""
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


def _clip(row: Mapping[str, Any]) -> Clip | None:
    try:
        video, caption = row["video"], row["caption"]
        segment = Segment(float(row["start"]), float(row["end"]))
    except (KeyError, TypeError, ValueError):
        return None
    if not isinstance(video, str) or not isinstance(caption, str) or not video or segment.start < 0:
        return None
    return Clip(video, segment, " ".join(caption.split()))
