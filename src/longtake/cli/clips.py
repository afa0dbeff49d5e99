"""Clips of films and citations, and the player that shows them."""

from __future__ import annotations

import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from longtake._util.timecode import clock
from longtake.algorithms.intervals import union
from longtake.cli.output import NEW, check_place, progress, say
from longtake.errors import ConfigError
from longtake.index.film import Film
from longtake.runner.rendering import shown_stretch
from longtake.types import Evidence, Segment
from longtake.video.clip import cut, join, write_subtitles

AROUND = 1.0
"""Seconds added before and after a citation, so that a clip does not begin in mid-word."""
PLAYERS = {"mpv": "--start={seconds:.3f}", "vlc": "--start-time={seconds:.3f}"}
"""Players, and their option for the start time."""


def check_clips_folder(folder: Path) -> None:
    """Raise if the folder exists and is not empty."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"{folder}: --clips needs a new or empty folder")


def write_clips(film: Film, evidence: Sequence[Evidence], folder: Path) -> None:
    """Write a numbered clip for each citation."""
    if not evidence:
        say("--clips: the answer cites nothing, so no clips were written")
        return
    folder.mkdir(parents=True, exist_ok=True)
    for number, cited in enumerate(evidence, start=1):
        start = max(0.0, cited.segment.start - AROUND)
        stretch = Segment(start, min(film.duration, cited.segment.end + AROUND))
        made = write_clip(film, stretch, clip_path(folder, f"{number:02d}", stretch))
        say(f"clip: {made.file}")


def check_clip_path(path: Path, inputs: Sequence[Path | None]) -> None:
    """Raise if a clip cannot be written there, or would overwrite something."""
    if path.suffix.lower() != ".mp4":
        raise ConfigError(f"{path}: clips are MP4 files; name it {path.stem}.mp4")
    check_place(path, NEW, inputs=inputs)


def write_reel(film: Film, evidence: Sequence[Evidence], path: Path) -> None:
    """Write all citations into one clip, in the order of the film."""
    if not evidence:
        say("--reel: the answer cites nothing, so no reel was written")
        return
    stretches = union(map(shown_stretch, evidence))
    with unwound_by_sigterm(), progress(f"writing {path.name}") as advance:
        join([(film.video, stretch) for stretch in stretches], path, advance=advance)
    say(f"reel: {path}")


@dataclass(frozen=True)
class WrittenClip:
    """A clip with its subtitles, if anything is said, and the stretch that it shows."""

    file: Path
    subtitles: Path | None
    start: float
    end: float


def write_clip(film: Film, stretch: Segment, path: Path) -> WrittenClip:
    """Write a clip and its subtitles."""
    srt_file = path.with_suffix(".srt")
    with unwound_by_sigterm(), progress(f"writing {path.name}") as advance:
        written = cut(film.video, stretch, path, advance)
        spoken, _ = film.known_lines()
        lines = write_subtitles(spoken, written, srt_file)
    return WrittenClip(path, srt_file if lines else None, written.start, written.end)


@contextmanager
def unwound_by_sigterm() -> Iterator[None]:
    """Inside the block, SIGTERM interrupts like Ctrl-C, so that half a file is removed."""

    def interrupt(signum: int, frame: object) -> None:  # noqa: ARG001 - as signal calls it
        raise KeyboardInterrupt

    before = signal.getsignal(signal.SIGTERM)
    # whoever ignores the signal goes on doing so
    if before is not signal.SIG_IGN:
        signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before or signal.SIG_DFL)


def clip_path(folder: Path, name: str, stretch: Segment) -> Path:
    """``film_00-12-31.mp4``, with the start of the clip."""
    return folder / f"{name}_{file_clock(stretch.start)}.mp4"


def file_clock(seconds: float, *, millis: bool = False) -> str:
    """``00-12-31``: not all file systems allow colons."""
    return clock(seconds, millis=millis).replace(":", "-")


def open_player(path: Path, evidence: Sequence[Evidence]) -> None:
    """Start the user's player at the first citation."""
    if not evidence:
        say("--open: the answer cites nothing, so there is no moment to play")
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
    say(f"--open: no player found; install {names}, or open {path} at {clock(seconds)}")
