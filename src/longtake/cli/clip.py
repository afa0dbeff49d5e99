"""``longtake clip`` and ``longtake frames``."""

from __future__ import annotations

from pathlib import Path

import click

from longtake._util.timecode import parse_time
from longtake.cli.clips import check_clip_path, clip_path, file_clock, write_clip
from longtake.cli.options import COUNT, FILE, FOLDER, common, film_path
from longtake.cli.output import NEW, PICTURE, Output, check_place
from longtake.config import Settings
from longtake.errors import ConfigError, MediaError
from longtake.runner.films import open_film
from longtake.types import Segment
from longtake.video.pictures import save_png


@click.command()
@film_path
@click.argument("start", metavar="FROM")
@click.argument("end", metavar="TO")
@click.option("--out", type=FILE, help="An MP4 file.  [default: named by film and time]")
@common
def clip(path: Path, start: str, end: str, out: Path | None, settings: Settings) -> Output:
    """Cut a clip out of a film.

    The clip begins and ends at exactly these times and has the film's sound. Subtitles are written
    beside it if the film has any, or if its speech was recognised before. Existing files are not
    overwritten.

    \b
    Example:
      longtake clip film.mp4 00:12:31 00:12:40
      longtake clip film.mp4 61 75.5 --out proof.mp4
    """
    first, last = parse_time(start), parse_time(end)
    if last <= first:
        raise ConfigError(f"{start} to {end}: the end must come after the start")
    film = open_film(path, settings)
    stretch = Segment(first, last)
    target = out or clip_path(Path(), path.stem, stretch)
    check_clip_path(target, (path, film.subtitle_file))
    check_place(target.with_suffix(".srt"), NEW, inputs=(path, film.subtitle_file))
    made = write_clip(film, stretch, target)
    files = [str(file) for file in (made.file, made.subtitles) if file is not None]
    return Output({"film": path, "clip": made}, files)


@click.command()
@film_path
@click.option(
    "--at",
    "moments",
    required=True,
    metavar="TIMES",
    help="Comma-separated times: 12.5,60,00:12:31.",
)
@click.option(
    "--out",
    type=FOLDER,
    default=Path(),
    show_default=False,
    metavar="DIR",
    help="Folder for the pictures; created if missing.  [default: current folder]",
)
@click.option("--width", type=COUNT, metavar="PIXELS", help="Scale down to this width.")
@common
def frames(path: Path, moments: str, out: Path, width: int | None, settings: Settings) -> Output:
    """Save the frames at given times.

    Each frame is saved as a PNG, named by its number and time. The time in the name is when the
    frame appeared, which is at or before the requested time.

    \b
    Example:
      longtake frames holiday.mp4 --at 12.5,60 --out stills
    """
    times = [parse_time(moment) for moment in moments.split(",") if moment.strip()]
    if not times:
        raise ConfigError("--at: give one or more times, such as 12.5,60,00:12:31")
    film = open_film(path, settings)
    if not film.has:
        raise MediaError(path, "no_video", "has sound only, no pictures")
    pictures = film.at(times, width=width)
    out.mkdir(parents=True, exist_ok=True)
    saved = []
    # numbered, since two times may give the same frame
    for number, (asked, frame) in enumerate(zip(times, pictures, strict=True), start=1):
        file = out / f"{number:03d}_{file_clock(frame.time, millis=True)}.png"
        check_place(file, PICTURE, inputs=(path,))
        save_png(frame.pixels, file)
        saved.append({"asked": asked, "time": frame.time, "file": file})
    return Output({"film": path, "frames": saved}, (str(each["file"]) for each in saved))
