"""Lines of text with times as subtitle files."""

from __future__ import annotations

from collections.abc import Sequence

from longtake.timecode import clock

TimedText = tuple[float, float, str]
"""Start, end, text."""


def srt(lines: Sequence[TimedText]) -> str:
    """SubRip."""
    blocks = []
    for number, (start, end, text) in enumerate(lines, start=1):
        times = f"{clock(start, millis=True)} --> {clock(end, millis=True)}".replace(".", ",")
        blocks.append(f"{number}\n{times}\n{_plain(text)}\n")
    return "\n".join(blocks)


def vtt(lines: Sequence[TimedText]) -> str:
    """WebVTT."""
    blocks = ["WEBVTT\n"]
    for start, end, text in lines:
        times = f"{clock(start, millis=True)} --> {clock(end, millis=True)}"
        blocks.append(f"{times}\n{escaped(text)}\n")
    return "\n".join(blocks)


def _plain(text: str) -> str:
    """Without empty lines, which end a subtitle."""
    return "\n".join(line for line in text.splitlines() if line.strip()) or "…"


def escaped(text: str) -> str:
    """WebVTT has tags and arrows; text from a film is shown, never interpreted."""
    return _plain(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
