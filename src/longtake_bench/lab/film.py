"""Worlds, in memory or in a folder: film, subtitles, script and questions."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from longtake.errors import ConfigError
from longtake.types import Pixels
from longtake.video.audio import RATE
from longtake.video.clip import Encoding, write_film
from longtake.video.subtitles import srt
from longtake_bench.lab.drawing import Painter
from longtake_bench.lab.profile import PROFILE, numbers
from longtake_bench.lab.questions import LabQuestion, make_questions, questions_json
from longtake_bench.lab.world import Script, dump, make_script

FILM, SUBTITLES, SCRIPT, QUESTIONS = "film.mp4", "film.srt", "script.json", "questions.json"

Advance = Callable[[float], None]


@dataclass(frozen=True)
class World:
    """A script and the questions about it."""

    script: Script
    questions: tuple[LabQuestion, ...]


def make_world(seed: int, minutes: int, questions: int = 60) -> World:
    """Generate a world in memory."""
    script = make_script(seed, minutes)
    return World(script, make_questions(script, questions))


def write_world(
    world: World, folder: Path, *, code: bool = True, advance: Advance | None = None
) -> None:
    """Write ``film.mp4``, ``film.srt``, ``script.json`` and ``questions.json``."""
    folder.mkdir(parents=True, exist_ok=True)
    script = world.script
    (folder / SCRIPT).write_text(script.to_json(), encoding="utf-8")
    (folder / QUESTIONS).write_text(questions_json(world.questions), encoding="utf-8")
    lines = [(line.segment.start, line.segment.end, line.text) for line in script.subtitles()]
    (folder / SUBTITLES).write_text(srt(lines), encoding="utf-8")
    picture = PROFILE.picture
    encoding = Encoding(fps=Fraction(picture.fps), gop=picture.gop, audio_rate=RATE)
    # encoding an hour takes minutes; an interrupted one must not look finished
    unfinished = folder / f".{FILM}.part.mp4"
    try:
        write_film(unfinished, _pictures(script, code, advance), encoding, sound=sound(script))
        unfinished.replace(folder / FILM)  # film.mp4 only ever exists complete
    finally:
        unfinished.unlink(missing_ok=True)


def check_folder(folder: Path) -> None:
    """Raise if writing a world would destroy files of any other origin."""
    files = [folder / name for name in (FILM, SUBTITLES, SCRIPT, QUESTIONS)]
    for file in files:
        if file.is_symlink():
            raise ConfigError(f"{file}: is a link; choose another folder", key=str(folder))
    there = [file for file in files if file.exists()]
    # a script is written first, so a folder without one was not made here
    if there and not _is_script(folder / SCRIPT):
        raise ConfigError(
            f"{there[0]}: exists, and {folder} holds no world that may be written again; "
            "choose another folder",
            key=str(folder),
        )


def _is_script(path: Path) -> bool:
    """Whether a file is the script of a world, made by any version."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(data, dict) and {"seed", "minutes", "scenes"} <= data.keys()


def read_script(folder: Path) -> Script:
    """Regenerate the script of a world's folder.

    Raises ConfigError if the stored script differs: another version of the laboratory wrote it.
    """
    path = folder / SCRIPT
    try:
        text = path.read_text(encoding="utf-8")
        data = json.loads(text)
        script = make_script(int(data["seed"]), int(data["minutes"]))
    except OSError as error:
        reason = error.strerror or error
        raise ConfigError(f"{path}: cannot be read ({reason})", key=str(folder)) from error
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise ConfigError(f"{path}: not the script of a world", key=str(folder)) from error
    if script.to_json() != text:
        raise ConfigError(
            f"{path}: made by another version of the laboratory; make the world again with "
            f"longtake lab make --seed {script.seed} --minutes {script.minutes} --out {folder}",
            key=str(folder),
        )
    return script


def sound(script: Script) -> NDArray[np.float32]:
    """The sound track: a murmur while the narrator speaks.

    It lets speech be detected but not transcribed; the words are in the subtitles.
    """
    samples = np.zeros(int(script.duration * RATE), np.float32)
    for line in script.spoken:
        length = (line.end - line.start) * RATE
        moments = np.arange(length) / RATE
        # the pitch differs from line to line and says nothing about the words
        pitch = 110 + 40 * numbers("voice", line.text).random()
        syllables = np.clip(np.sin(2 * np.pi * 3.5 * moments), 0, 1)
        voice = np.sin(2 * np.pi * pitch * moments) + 0.5 * np.sin(4 * np.pi * pitch * moments)
        samples[line.start * RATE : line.start * RATE + length] = 0.15 * voice * syllables
    return samples


def _pictures(script: Script, code: bool, advance: Advance | None) -> Iterator[Pixels]:
    painter, fps = Painter(script, code=code), PROFILE.picture.fps
    count = int(script.duration * fps)
    for number in range(count):
        if advance is not None and number % 100 == 0:  # every ten seconds of film
            advance(number / count)
        yield painter.frame(number / fps)


def summary(world: World) -> str:
    """Counts for a world, as ``longtake lab make --json`` prints them."""
    script = world.script
    return dump(
        {
            "seed": script.seed,
            "minutes": script.minutes,
            "profile": PROFILE.hash,
            "episodes": len(script.episodes),
            "scenes": len(script.scenes),
            "deeds": len(script.deeds),
            "signs": len(script.signs),
            "lines": len(script.spoken),
            "questions": len(world.questions),
        }
    )
