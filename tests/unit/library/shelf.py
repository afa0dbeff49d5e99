"""Small films and settings for the tests of libraries."""

import dataclasses
import shutil
from pathlib import Path

from films import FILMS

from longtake.config import PerceptionSettings, Settings
from longtake.library import Library
from longtake.library.add import Adder

PLAIN = next(film for film in FILMS if film.name == "plain.mp4")
SUBTITLES = "1\n00:00:00,500 --> 00:00:02,000\n{}\n\n2\n00:00:02,500 --> 00:00:03,500\n{}\n"


SETTINGS = dataclasses.replace(
    Settings(), perception=PerceptionSettings(reader=False, listener="none")
)
"""Settings without the slow senses."""


def add(library: Library, *paths: Path, **options):
    return Adder(library, **options).add(paths)


def film(folder: Path, name: str, made_in: Path, *lines: str, frames: int = 40) -> Path:
    """A film of four seconds with subtitles beside it; other lengths are other films."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    recipe = dataclasses.replace(PLAIN, name=f"library-{frames}.mp4", count=frames)
    shutil.copy(recipe.make(made_in), path)
    if lines:
        path.with_suffix(".srt").write_text(SUBTITLES.format(*lines))
    return path
