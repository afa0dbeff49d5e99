"""``longtake clip``."""

from __future__ import annotations

from pathlib import Path

import click

from longtake._util.timecode import parse_time
from longtake.cli.answers import clip_path, write_clip
from longtake.cli.options import FILE, common, film_path
from longtake.cli.output import NEW, check_place, emit_json
from longtake.config import Settings
from longtake.errors import ConfigError
from longtake.runner.films import open_film
from longtake.types import Segment


@click.command()
@film_path
@click.argument("start", metavar="FROM")
@click.argument("end", metavar="TO")
@click.option(
    "--out", type=FILE, metavar="FILE", help="An MP4 file.  [default: named by film and time]"
)
@common
def clip(
    path: Path, start: str, end: str, out: Path | None, settings: Settings, as_json: bool
) -> None:
    """Cut a stretch out of a film.

    The clip begins and ends at exactly these times and has the film's sound. What is said in it,
    where that is known, is written beside it as subtitles. Existing files are not overwritten.

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
    if target.suffix.lower() != ".mp4":
        raise ConfigError(f"{target}: a clip is an MP4 file; name it {target.stem}.mp4")
    check_place(target, NEW, inputs=(path, film.subtitle_file))
    check_place(target.with_suffix(".srt"), NEW, inputs=(path, film.subtitle_file))
    made = write_clip(film, stretch, target)
    if as_json:
        emit_json({"film": str(path), "clip": made})
    else:
        click.echo(made["file"])
        if made["subtitles"]:
            click.echo(made["subtitles"])
