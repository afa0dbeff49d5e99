"""``longtake lab``: worlds with known truth, and simulated models."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import replace
from pathlib import Path

import click

from longtake.cli.lab_run import run_command
from longtake.cli.options import COUNT, FOLDER, as_json, debug
from longtake.cli.output import emit_json, progress, say
from longtake.errors import MissingExtra
from longtake.lab.acuity import parse
from longtake.lab.film import check_folder, make_world, read_script, summary, write_world


@click.group()
def lab() -> None:
    """Make films with known truth, and simulate models of known acuity.

    \b
    Example:
      longtake lab make --minutes 60 --seed 7 --out world
      longtake lab serve --world world --model acuity=0.8
    """


@lab.command()
@click.option(
    "--minutes",
    type=click.IntRange(1, 255),
    default=60,
    show_default=True,
    help="Length of the film.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, 16383),
    default=0,
    show_default=True,
    help="0 to 99 are for development, 1000 and up for published figures.",
)
@click.option(
    "--out",
    type=FOLDER,
    required=True,
    metavar="DIR",
    help="Folder for film.mp4, film.srt, script.json, questions.json.",
)
@click.option(
    "--questions", "count", type=COUNT, default=60, show_default=True, help="Most questions."
)
@click.option(
    "--no-code", is_flag=True, help="Leave the frame code out; simulated models then see nothing."
)
@as_json
@debug
def make(minutes: int, seed: int, out: Path, count: int, no_code: bool, as_json: bool) -> None:
    """Make a film with its subtitles, script and questions.

    The same seed and length give the same world, byte for byte except for the video encoder's
    version.

    \b
    Example:
      longtake lab make --minutes 60 --seed 7 --out world
    """
    check_folder(out)
    began = time.perf_counter()
    world = make_world(seed, minutes, count)
    with progress(world.script.name) as advance:
        write_world(world, out, code=not no_code, advance=advance)
    seconds = round(time.perf_counter() - began, 1)
    if as_json:
        emit_json({**json.loads(summary(world)), "folder": str(out), "seconds": seconds})
    else:
        scenes, questions = len(world.script.scenes), len(world.questions)
        say(f"{out}: {minutes} minutes, {scenes} scenes, {questions} questions, {seconds} s")


@lab.command()
@click.option(
    "--world",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="DIR",
    help="Know this world only (only its script.json is read).  [default: every world]",
)
@click.option(
    "--model", "name", default="", metavar="NAME", help="As in acuity=0.8,seed=3,onscreen=0.2."
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8765,
    show_default=True,
    help="0 picks a free port.",
)
@click.option(
    "--latency", type=click.FloatRange(0), default=0.0, metavar="SECONDS", help="Delay each reply."
)
@click.option(
    "--fail-rate",
    type=click.FloatRange(0, 1),
    default=0.0,
    metavar="SHARE",
    help="Answer this share of requests with 429 or 503.",
)
@as_json
@debug
def serve(
    world: Path | None, name: str, port: int, latency: float, fail_rate: float, as_json: bool
) -> None:
    """Serve a simulated model on 127.0.0.1, through an OpenAI-compatible API.

    If the model name in a request begins with lab/, that model is served instead of --model.
    Needs the extra 'serve'.

    \b
    Example:
      longtake lab serve --world world --model acuity=0.8 --port 8765
      longtake ask world/film.mp4 "…" --model http://127.0.0.1:8765/v1#lab/acuity=0.8
    """
    try:
        from longtake.server.openai.simulated import SimulatedService
        from longtake.server.running import serving
    except ImportError as error:
        raise MissingExtra("serve", "longtake lab serve") from error
    model = parse(name)
    if world is not None:
        script = read_script(world)
        model = replace(model, world=(script.seed, script.minutes))
    with serving(SimulatedService(model, latency, fail_rate).app(), port) as url:
        # the first line of output is what --model takes
        address = f"{url}#{model.name}"
        if as_json:
            emit_json({"url": url, "model": address})
        else:
            click.echo(address)
        say("serving; press Ctrl-C to stop")
        # the server runs in threads; this one waits for Ctrl-C
        threading.Event().wait()


lab.add_command(run_command)
