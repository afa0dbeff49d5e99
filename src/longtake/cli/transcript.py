"""``longtake transcript``."""

from __future__ import annotations

from pathlib import Path

import click

from longtake._util import visible
from longtake._util.timecode import clock
from longtake.algorithms import speakers as voices
from longtake.cli.indexing import show_notes
from longtake.cli.options import FILE, common, film_path, within_option
from longtake.cli.output import Kind, Output, check_place, progress, say, write_text
from longtake.config import Settings
from longtake.errors import ConfigError
from longtake.index.film import Film
from longtake.runner.films import open_film, rename_speaker
from longtake.types import Segment
from longtake.video.subtitles import TimedText, srt, vtt

FORMATS = ("txt", "srt", "vtt")
TRANSCRIPT = Kind("a transcript", (b"[", b"1\n", b"WEBVTT"))


@click.command()
@film_path
@click.option(
    "--format",
    "kind",
    type=click.Choice(FORMATS),
    help="txt, srt or vtt.  [default: by the suffix of --out, else txt]",
)
@within_option
@click.option("--out", type=FILE, help="Write to a file instead.")
@common
def transcript(
    path: Path, kind: str | None, within: Segment | None, out: Path | None, settings: Settings
) -> Output | None:
    """Show what is said in a film, with times, or save it as subtitles.

    Subtitles beside or in the film are used if there are any; otherwise its speech is recognised,
    once.

    \b
    Example:
      longtake transcript lecture.mp4 --within 00:10:00-00:12:00
      longtake transcript lecture.mp4 --out lecture.srt
    """
    film = open_film(path, settings)
    if out is not None:
        check_place(out, TRANSCRIPT, inputs=(path, film.subtitle_file))
    lines = spoken(film, within)
    if film.words.speech_note:
        say(film.words.speech_note)
    elif not lines:
        say("no speech in this part of the film" if within else "no speech in this film")
    suffix = "" if out is None else out.suffix[1:].lower()
    text = written(lines, kind or (suffix if suffix in FORMATS else "txt"))
    if out is not None:
        write_text(out, text)
        return None
    known = voices.speakers(film.words.known()[0])
    rows = []
    for start, end, line in lines:
        label = voices.speaker(line)[0]
        name = label if label in known else None
        rows.append({"start": start, "end": end, "text": line, "speaker": name})
    shown = text.removesuffix("\n").split("\n") if text else ()
    return Output({"film": path, "lines": rows}, shown)


def spoken(film: Film, within: Segment | None) -> list[TimedText]:
    """The lines of a film; its speech is recognised first where necessary."""
    heard = film.words.recognised
    if heard is not None and film.words.subtitles.key() is None:
        with show_notes(), progress("recognising speech") as advance:
            heard.build(within, advance)
    with show_notes():
        lines = film.words.speech(within)
    return [(line.segment.start, line.segment.end, line.text) for line in lines]


def written(lines: list[TimedText], kind: str) -> str:
    """Format the lines."""
    if kind == "srt":
        return srt(lines)
    if kind == "vtt":
        return vtt(lines)
    return "".join(f"[{clock(start)}] {visible(text)}\n" for start, _, text in lines)


@click.command()
@film_path
@click.option(
    "--name",
    "names",
    multiple=True,
    metavar="SPEAKER=NAME",
    help="Rename a speaker, given by number or name; repeatable.",
)
@common
def speakers(path: Path, names: tuple[str, ...], settings: Settings) -> Output:
    """List who speaks in a film, or rename speakers.

    Speakers are named by the subtitles. In a film without subtitles, voices are distinguished by
    their sound and numbered; lines of uncertain voices have no speaker. Names that you give are
    kept with the film's index and used wherever its words are shown.

    \b
    Example:
      longtake speakers meeting.mp4
      longtake speakers meeting.mp4 --name 2="Dr Lee"
    """
    film = open_film(path, settings)
    spoken(film, None)
    if film.words.recognised is not None:
        with progress("distinguishing voices") as advance:
            film.words.recognised.tell_voices_apart(film.senses.voices, advance)
    if film.words.speech_note:
        say(film.words.speech_note)
    for assignment in names:
        known = list(voices.speakers(film.words.speech()))
        label, equals, name = assignment.partition("=")
        if label.isdigit() and 1 <= int(label) <= len(known):
            label = known[int(label) - 1]
        if not equals:
            raise ConfigError(f'--name {assignment}: write SPEAKER=NAME, such as 2="Dr Lee"')
        rename_speaker(film, label, name)
    lines = film.words.speech()
    counts = voices.speakers(lines)
    seconds = dict.fromkeys(counts, 0.0)
    for line in lines:
        name = voices.speaker(line.text)[0]
        if name in counts:
            seconds[name] += line.segment.duration
    unknown = len(lines) - counts.total()
    rows, shown = [], []
    for number, (name, count) in enumerate(counts.items(), start=1):
        rows.append({"name": name, "lines": count, "seconds": round(seconds[name], 3)})
        shown.append(visible(f"{number:>3}  {name}  ({count} lines, {clock(seconds[name])})"))
    if unknown:
        shown.append(f"     unknown  ({unknown} lines)")
    return Output({"film": path, "speakers": rows, "unknown_lines": unknown}, shown)
