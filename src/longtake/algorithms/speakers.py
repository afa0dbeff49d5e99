"""Who speaks: the label at the beginning of a line, and which labels are speakers.

The text of a line begins with its speaker, ``Anna: We should begin.``, so that every display of the
line names the speaker as well. :func:`turns` converts the other forms of labels that subtitles use.
A label is a speaker if at least two lines have it, since a single one may be the end of a sentence
("Remember this: …"). A line without such a label has no known speaker.

:func:`numbered_voices` distinguishes unnamed speakers by the sound of their voices.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from longtake.types import Line

_NAME = r"[^\W\d_][\w .'’-]{0,40}"
_SPEAKER = re.compile(rf"({_NAME}):\s+")
# "- ANNA: …", ">> Anna: …", "[Anna] …", "(ANNA) …"
_LABEL = re.compile(rf"(?:[-–—>]+\s*)?(?:({_NAME}):|[\[(]([^\W\d_a-z].{{0,40}}?)[\])]:?)\s+(?=\S)")
_VOICE = re.compile(r"<v(?:\.[^\s<>]*)?\s+([^<>:]{1,60})>")
_NO_NAME = re.compile(r"(?:note|warning|question|answer|example|step|chapter|tip)\b", re.IGNORECASE)
_SOUND = re.compile(
    r".*\b(?:music|song|applause|laughter|noise|sounds?|silence|inaudible|crosstalk|foreign|\w+ing"
    r"|laughs|sighs|gasps|cheers)\b",
    re.IGNORECASE,
)

SAME_VOICE = 0.35
"""Smallest cosine of a line and its voice; ``benchmarks/voices.py`` compares other values."""
LONG_ENOUGH = 1.5
"""Seconds that a line must last to characterise a voice (compared there as well)."""


def speaker(text: str) -> tuple[str, str]:
    """The label of a line, which may be its speaker, and what is said."""
    match = _SPEAKER.match(text)
    return (match[1], text[match.end() :]) if match else ("", text)


def speakers(lines: Iterable[Line]) -> Counter[str]:
    """The speakers of a film with their numbers of lines, in the order of their first lines."""
    counts = Counter(speaker(line.text)[0] for line in lines)
    return Counter({name: n for name, n in counts.items() if n > 1 and _may_be_name(name)})


def by_speaker(lines: Iterable[Line]) -> dict[str, list[Line]]:
    """The lines of each speaker without their names; those of unknown speakers under ``""``."""
    lines = list(lines)
    names = speakers(lines)
    parts: dict[str, list[Line]] = {}
    for line in lines:
        name, words = speaker(line.text)
        if name in names:
            parts.setdefault(name, []).append(Line(line.segment, words))
        else:
            parts.setdefault("", []).append(line)
    return parts


def renamed(text: str, names: Mapping[str, str]) -> str:
    """A line with the name that its speaker was given."""
    label, words = speaker(text) if names else ("", text)
    return f"{names[label]}: {words}" if label in names else text


def turns(cues: Sequence[str]) -> list[list[str]]:
    """What each speaker says in each cue of a subtitle file, as ``Anna: …``.

    A name in a voice tag (``<v Anna>``) is a speaker; a label in the text is one if two cues have
    it.
    """
    voices = {name.strip() for cue in cues for name in _VOICE.findall(cue)}
    split = [_VOICE.sub(r"\n\1: ", cue).splitlines() for cue in cues]
    labels = Counter(_label(row)[0] for rows in split for row in rows)
    names = voices | {name for name, n in labels.items() if n > 1 and _may_be_name(name)}
    return [_turns(rows, names) for rows in split]


def _turns(rows: Sequence[str], names: set[str]) -> list[str]:
    parts: list[str] = []
    for row in filter(str.strip, rows):
        label, words = _label(row)
        if label in names:
            parts.append(f"{label}: {words}")
        elif parts:
            parts[-1] = f"{parts[-1]} {row}"
        else:
            parts.append(row)
    return parts


def _label(row: str) -> tuple[str, str]:
    match = _LABEL.match(row.strip())
    if match is None or (match[2] and _SOUND.match(match[2])):
        return "", row
    return (match[1] or match[2]).strip(), row.strip()[match.end() :]


def _may_be_name(label: str) -> bool:
    return bool(label) and not _NO_NAME.match(label)


def numbered_voices(
    rows: NDArray[np.float32], seconds: Sequence[float], same: float = SAME_VOICE
) -> list[int | None]:
    """The voice of each line by number, in the order of their first lines; ``None`` if unsure.

    ``rows`` are voice embeddings; a row of zeros matches no voice. Starting from the longest, each
    line joins the closest voice found so far, or begins a new one if none is close. A voice needs
    at least two long lines.
    """
    sums: list[NDArray[np.float32]] = []
    members: Counter[int] = Counter()
    for line in sorted(range(len(rows)), key=lambda line: -seconds[line]):
        if seconds[line] < LONG_ENOUGH or not rows[line].any():
            continue
        voice = _closest(rows[line], sums, same)
        if voice is None:
            voice = len(sums)
            sums.append(np.zeros_like(rows[line]))
        sums[voice] += rows[line]
        members[voice] += 1
    repeated = [total for voice, total in enumerate(sums) if members[voice] > 1]
    heard = [_closest(row, repeated, same) for row in rows]
    sure = dict.fromkeys(voice for voice in heard if voice is not None)
    numbers = {voice: number for number, voice in enumerate(sure, start=1)}
    return [None if voice is None else numbers[voice] for voice in heard]


def _closest(
    row: NDArray[np.float32], sums: Sequence[NDArray[np.float32]], same: float
) -> int | None:
    cosines = [float(row @ total / np.linalg.norm(total)) for total in sums]
    best = max(range(len(cosines)), key=cosines.__getitem__, default=None)
    return best if best is not None and cosines[best] >= same else None
