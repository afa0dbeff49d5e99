"""A film's name, date, place and tags, from its metadata, its file name and its folders.

Nothing is guessed: what neither the file nor its name says stays empty.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from pathlib import Path

from longtake.config import MediaSettings
from longtake.library.entries import Facts
from longtake.media.container import open_container

_DAY = re.compile(r"(?<!\d)((?:19|20)\d\d)[-_.]?(0[1-9]|1[0-2])[-_.]?(0[1-9]|[12]\d|3[01])(?!\d)")
_MONTH = re.compile(r"(?<!\d)((?:19|20)\d\d)[-_.](0[1-9]|1[0-2])(?![-_.]?\d)")
_YEAR = re.compile(r"(?<![\dp])((?:19|20)\d\d)(?![\dp])")
_HASHTAG = re.compile(r"#(\w[\w-]*)")
_BRACKETS = re.compile(r"\[([^\]\[]{1,40})\]")
_POSITION = re.compile(r"([+-]\d+(?:\.\d+)?)([+-]\d+(?:\.\d+)?)")
_DATES = ("date", "creation_time", "com.apple.quicktime.creationdate", "year")
_PLACES = ("location", "com.apple.quicktime.location.iso6709", "location-eng")
_TAGS = ("genre", "keywords")
EPOCHS = ("1904-01-01", "1970-01-01")
"""Days that recorders write if they do not know the date."""
LONGEST = 200
"""Letters of a title."""


def read_facts(
    path: Path, duration: float, root: Path | None = None, limits: MediaSettings | None = None
) -> Facts:
    """What is known about a film; folders below ``root`` become tags."""
    with open_container(path, limits) as container:
        metadata = {key.casefold(): value for key, value in container.metadata.items()}
    return facts_from(path, metadata, duration, root)


def facts_from(
    path: Path, metadata: Mapping[str, str], duration: float, root: Path | None = None
) -> Facts:
    """The same from metadata that were read before; their keys are in lower case."""
    title = " ".join(metadata.get("title", "").split())[:LONGEST]
    named = date_in_name(path.stem)
    recorded = next((day for key in _DATES if (day := _date(metadata.get(key, "")))), "")
    place = next((metadata[key].strip() for key in _PLACES if metadata.get(key)), "")
    tags = [*tags_in_name(path.stem), *_folder_tags(path, root)]
    for key in _TAGS:
        tags += re.split(r"[;,/]", metadata.get(key, ""))
    clean = dict.fromkeys(tag.strip().casefold() for tag in tags if tag.strip())
    # people who put a date into a name mean it; a container's date may be that of a conversion
    return Facts(title or path.stem, duration, named or recorded, _position(place), tuple(clean))


def date_in_name(name: str) -> str:
    """``2025-03-14`` in ``VID_20250314_101112``; a month or a year if that is all there is."""
    if match := _DAY.search(name):
        year, month, day = map(int, match.groups())
        try:
            return date(year, month, day).isoformat()
        except ValueError:
            return ""  # 2025-02-31 is no date
    if match := _MONTH.search(name):
        return f"{match[1]}-{match[2]}"
    match = _YEAR.search(name)
    return match[1] if match else ""


def tags_in_name(name: str) -> list[str]:
    """``#talk`` and ``[raw]`` in a file name."""
    return [*_HASHTAG.findall(name), *_BRACKETS.findall(name)]


def _folder_tags(path: Path, root: Path | None) -> list[str]:
    """The names of the folder that was added and of those between it and the film."""
    if root is None:
        return []
    below = path.parent.relative_to(root).parts
    names = [root.name, *below]
    # a folder that is only a date is no subject
    return [name for name in names if name and not re.fullmatch(r"[\d\W_]+", name)]


def _date(text: str) -> str:
    day = date_in_name(text[:10])
    return "" if day in EPOCHS else day


def _position(place: str) -> str:
    """``+48.8577+002.295/`` as ``48.8577, 2.295``; names of places stay as they are."""
    match = _POSITION.match(place)
    if match is None:
        return place
    return f"{float(match[1]):g}, {float(match[2]):g}"
