"""``longtake frames``."""

from __future__ import annotations

from pathlib import Path

import click

from longtake._util.timecode import clock, parse_time
from longtake.cli.options import COUNT, FOLDER, common, film_path
from longtake.cli.output import PICTURE, check_place, emit_json
from longtake.config import Settings
from longtake.errors import ConfigError
from longtake.runner.films import open_film
from longtake.video.pictures import save_png


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
    metavar="DIR",
    help="Folder for the pictures; created if missing.  [default: current folder]",
)
@click.option("--width", type=COUNT, metavar="PIXELS", help="Scale down to this width.")
@common
def frames(
    path: Path, moments: str, out: Path, width: int | None, settings: Settings, as_json: bool
) -> None:
    """Save the frames at given times.

    Each frame is saved as a PNG, named by its number and time. The time in the name is when the
    frame appeared, which is at or before the requested time.

    \b
    Example:
      longtake frames holiday.mp4 --at 12.5,60 --out stills
    """
    times = [parse_time(moment) for moment in moments.split(",") if moment.strip()]
    if not times:
        raise ConfigError("--at: give one or more times, as in 12.5,60,00:12:31")
    film = open_film(path, settings)
    pictures = film.at(times, width=width)
    out.mkdir(parents=True, exist_ok=True)
    saved = []
    # numbered in the order asked for, since two times may give one frame
    for number, (asked, frame) in enumerate(zip(times, pictures, strict=True), start=1):
        # colons are not allowed in file names everywhere
        label = clock(frame.time, millis=True).replace(":", "-")
        file = out / f"{number:03d}_{label}.png"
        check_place(file, PICTURE, inputs=(path,))
        save_png(frame.pixels, file)
        saved.append({"asked": asked, "time": frame.time, "file": str(file)})
        if not as_json:
            click.echo(file)
    if as_json:
        emit_json({"film": str(path), "frames": saved})
