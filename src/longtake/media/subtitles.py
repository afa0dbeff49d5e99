"""Lines of text with times: side-car files, streams inside the film, and benchmarks' JSON."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import av

from longtake.config import MediaSettings
from longtake.errors import ConfigError, MediaError
from longtake.media.container import check_plain_file, open_container
from longtake.timecode import parse_time
from longtake.types import Line, Segment

if TYPE_CHECKING:
    import pysubs2

SUFFIXES = (".srt", ".vtt", ".ass", ".ssa")
"""Side-car formats, in order of preference."""

_TAGS = re.compile(r"<[^<>]{0,200}>|\{\\[^{}]{0,200}\}")
_BREAKS = re.compile(r"<br\s*/?>", re.IGNORECASE)
_ASS_FIELDS = 8
"""Fields before the text in a decoded ASS event."""


def sidecar(film: Path) -> Path | None:
    """The subtitle file that lies beside a film: ``film.srt``, else ``film.en.srt`` and the like."""
    for suffix in SUFFIXES:
        exact = film.with_suffix(suffix)
        if exact.is_file():
            return exact
    beside = sorted(
        p
        for p in film.parent.glob(f"{_literal(film.stem)}.*")
        if p.suffix in SUFFIXES and p.is_file()
    )
    return beside[0] if beside else None


def read_subtitles(
    path: Path, limits: MediaSettings | None = None, *, begin: float = 0.0
) -> list[Line]:
    """Lines of an SRT, VTT, ASS or JSON file, by time; ``begin`` is the time in it at which the film begins."""
    import pysubs2  # late: a film that is known is searched without it

    limits = limits or MediaSettings()
    size = check_plain_file(path)
    if size > limits.max_subtitle_mb * 2**20:
        raise MediaError(
            path,
            "too_large",
            f"{size / 2**20:.1f} MB of subtitles are over the limit of {limits.max_subtitle_mb:g} MB "
            f"(--set media.max_subtitle_mb={size / 2**20 + 1:.0f} allows it)",
        )
    text = path.read_bytes().decode("utf-8-sig", errors="replace")
    if path.suffix.lower() == ".json":
        return _tidy(_benchmark_lines(path, text), begin)
    try:
        parsed = _parse(text, path.suffix.lower())
    except (pysubs2.exceptions.Pysubs2Error, ValueError, IndexError) as error:
        raise MediaError(
            path, "unreadable", "is not a subtitle file (SRT, VTT, ASS or JSON)"
        ) from error
    if not parsed.events:
        raise MediaError(path, "unreadable", "holds no subtitle line")
    events = [event for event in parsed if not event.is_comment]
    return _tidy(
        ((event.start / 1000, event.end / 1000, event.plaintext) for event in events), begin
    )


def _parse(text: str, suffix: str) -> pysubs2.SSAFile:
    import pysubs2

    try:
        return pysubs2.SSAFile.from_string(text)
    except pysubs2.exceptions.FormatAutodetectionError:  # no telling mark in it: go by the name
        return pysubs2.SSAFile.from_string(
            text, format_=suffix.lstrip(".") if suffix in SUFFIXES else "srt"
        )


def embedded_subtitles(
    path: Path, *, origin: float, index: int | None = None, limits: MediaSettings | None = None
) -> list[Line]:
    """Lines of a text stream inside the film: the first, or that of ``index``; bitmap streams give none."""
    limits = limits or MediaSettings()
    room = limits.max_subtitle_mb * 2**20
    raw: list[tuple[float, float, str]] = []
    with open_container(path, limits) as container:
        streams = [s for s in container.streams.subtitles if index is None or s.index == index]
        if not streams:
            raise MediaError(
                path,
                "unreadable",
                f"has no subtitle stream {index}" if index else "has no subtitles",
            )
        stream = streams[0]
        for packet in container.demux(stream):
            if packet.pts is None or stream.time_base is None:
                continue
            start = float(packet.pts * stream.time_base) - origin
            for subtitle in packet.decode():
                text = _event_text(subtitle)
                room -= len(text)
                if room < 0:
                    raise MediaError(
                        path, "too_large", f"holds over {limits.max_subtitle_mb:g} MB of subtitles"
                    )
                raw.append((start, start + float((packet.duration or 0) * stream.time_base), text))
    return _tidy(raw)


def _event_text(subtitle: object) -> str:
    """Text of one decoded event; FFmpeg makes ASS of every text format, with eight fields before the text."""
    if not isinstance(subtitle, av.subtitles.subtitle.AssSubtitle):
        return ""
    raw = subtitle.ass.decode("utf-8", errors="replace") if subtitle.ass else ""
    return (
        raw.split(",", _ASS_FIELDS)[-1]
        .replace("\\N", "\n")
        .replace("\\n", "\n")
        .replace("\\h", " ")
    )


def _benchmark_lines(path: Path, text: str) -> Iterable[tuple[float, float, str]]:
    """The JSON lists that benchmarks ship: ``{start, end, line}`` or ``{timestamp: [a, b], text}``."""
    try:
        rows = json.loads(text)
        if not isinstance(rows, list):
            raise TypeError("a list is needed")
        return [_benchmark_line(row) for row in rows]
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError, ConfigError) as error:
        raise MediaError(
            path, "unreadable", f"is not a list of subtitle lines ({error})"
        ) from error


def _benchmark_line(row: Mapping[str, Any]) -> tuple[float, float, str]:
    start, end = row["timestamp"] if "timestamp" in row else (row["start"], row["end"])
    text = row["line"] if "line" in row else row["text"]
    seconds = _seconds(start)
    # LongVideoBench leaves the end of a last line open
    return seconds, seconds if end is None else _seconds(end), str(text)


def _seconds(value: Any) -> float:
    seconds = parse_time(value) if isinstance(value, str) else float(value)
    if not math.isfinite(seconds):
        raise ValueError(f"{seconds} is not a time")
    return seconds


def _tidy(raw: Iterable[tuple[float, float, str]], begin: float = 0.0) -> list[Line]:
    """Lines by time from ``begin`` on, without markup, blanks or negative lengths."""
    lines = []
    for start, end, text in ((start - begin, end - begin, text) for start, end, text in raw):
        plain = " ".join(_TAGS.sub("", _BREAKS.sub(" ", text)).split())
        if plain and end >= 0:
            lines.append(Line(Segment(max(0.0, start), max(start, end, 0.0)), plain))
    return sorted(lines, key=lambda line: line.segment)


def _literal(name: str) -> str:
    return re.sub(r"([*?[])", r"[\1]", name)
