"""Selects captioned clips worth training on, as LVAgent's LongVR dataset does.

Clips of 5 seconds to 12 minutes with captions of at least 20 tokens are kept. Captions longer than
the text encoder's limit are shortened by whole sentences (the authors let a model rewrite them).
Whatever is dropped is reported.
"""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from longtake.errors import ConfigError
from longtake.types import Segment

_SENTENCE = re.compile(r"(?<=[.!?])\s+")
Count = Callable[[str], int]
"""Counts the tokens of a text."""


@dataclass(frozen=True)
class Rules:
    """Which captioned clips are kept."""

    shortest: float = 5.0
    """Seconds."""
    longest: float = 720.0
    """Seconds."""
    least_tokens: int = 20
    """Minimum per caption; a shorter one cannot distinguish long clips."""


@dataclass(frozen=True)
class Clip:
    """A captioned segment of a video."""

    video: str
    segment: Segment
    caption: str


@dataclass
class Dropped:
    """Counts of dropped clips by reason, and of shortened captions."""

    reasons: Counter[str] = field(default_factory=Counter)
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
        if self.shortened:
            lines.append(f"shortened {self.shortened} captions")
        return lines


def read_list(path: Path) -> list[Mapping[str, Any]]:
    """Rows with ``video, start, end, caption`` from JSON lines, a JSON list, or CSV."""
    try:
        text = path.read_text(encoding="utf-8-sig")
        if path.suffix == ".csv":
            return list(csv.DictReader(text.splitlines()))
        if path.suffix == ".json":
            rows = json.loads(text)
        else:
            rows = [json.loads(line) for line in text.splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"{path}: cannot be read ({reason})") from error
    except json.JSONDecodeError as error:
        raise ConfigError(f"{path}: not valid JSON (line {error.lineno}: {error.msg})") from error
    except (ValueError, RecursionError, csv.Error) as error:
        raise ConfigError(f"{path}: malformed ({error})") from error
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ConfigError(f"{path}: not a list of objects with video, start, end and caption")
    return rows


def keep(
    rows: Iterable[Mapping[str, Any]], rules: Rules, count: Count, most_tokens: int
) -> tuple[list[Clip], Dropped]:
    """The clips that the rules accept, and what was dropped."""
    kept: list[Clip] = []
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
        elif tokens > most_tokens:
            kept.append(replace(clip, caption=shorten(clip.caption, most_tokens, count)))
            dropped.shortened += 1
        else:
            kept.append(clip)
    return kept, dropped


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


def _clip(row: Mapping[str, Any]) -> Clip | None:
    try:
        video, caption = row["video"], row["caption"]
        segment = Segment(float(row["start"]), float(row["end"]))
    except (KeyError, TypeError, ValueError):
        return None
    named = isinstance(video, str) and isinstance(caption, str) and video
    if not named or segment.start < 0:
        return None
    return Clip(video, segment, " ".join(caption.split()))
