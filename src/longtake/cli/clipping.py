"""Clips of cited moments, and the player that shows them."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from longtake.cli.output import say
from longtake.errors import ConfigError
from longtake.index.film import Film
from longtake.media.clip import cut, write_subtitles
from longtake.timecode import clock
from longtake.types import Evidence, Segment

AROUND = 1.0
"""Seconds before and after a cited stretch, so that a clip does not begin in mid-word."""
PLAYERS = {"mpv": "--start={seconds:.3f}", "vlc": "--start-time={seconds:.3f}"}
"""Players, each with its option for the time at which to start."""


def check_clips_folder(folder: Path) -> None:
    """Raise unless clips can be written without touching anything that is there."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"{folder}: clips go into a new or empty folder")


def write_clips(film: Film, evidence: Sequence[Evidence], folder: Path) -> None:
    """Write one clip for each citation, numbered in their order, and name them."""
    if not evidence:
        say("--clips: nothing is cited, so there is nothing to cut")
        return
    folder.mkdir(parents=True, exist_ok=True)
    for number, cited in enumerate(evidence, start=1):
        start = max(0.0, cited.segment.start - AROUND)
        stretch = Segment(start, min(film.duration, cited.segment.end + AROUND))
        made = write_clip(film, stretch, clip_path(folder, f"{number:02d}", stretch))
        say(f"clip: {made['file']}")


def write_clip(film: Film, stretch: Segment, path: Path) -> dict[str, Any]:
    """Write a clip and its subtitles; return what was written."""
    written = cut(film.video, stretch, path)
    beside = path.with_suffix(".srt")
    spoken, _ = film.known_lines()
    has_lines = write_subtitles(spoken, written, beside) > 0
    subtitles = str(beside) if has_lines else None
    return {"file": str(path), "subtitles": subtitles, "start": written.start, "end": written.end}


def clip_path(folder: Path, name: str, stretch: Segment) -> Path:
    """``film_00-12-31.mp4``: the time at which the clip begins."""
    # colons are not allowed in file names everywhere
    return folder / f"{name}_{clock(stretch.start).replace(':', '-')}.mp4"


def open_player(path: Path, evidence: Sequence[Evidence]) -> None:
    """Start the user's player at the first citation; say what to do where there is none."""
    if not evidence:
        say("--open: nothing is cited, so there is no moment to open")
        return
    seconds = evidence[0].segment.start
    for name, option in PLAYERS.items():
        program = shutil.which(name)
        if program is not None:
            # an absolute path cannot be mistaken for an option
            command = [program, option.format(seconds=seconds), str(path.resolve())]
            subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            return
    names = " or ".join(PLAYERS)
    say(f"--open: no player found (install {names}); open {path} at {clock(seconds)}")
