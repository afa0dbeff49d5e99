"""``longtake lab``: worlds with known truth, and simulated models."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import click

from longtake._util import visible
from longtake.cli.jobs import on
from longtake.cli.options import (
    FOLDER,
    PATH,
    check_models,
    common,
    debug,
    json_option,
    method_option,
    session_options,
)
from longtake.cli.output import Output, prints_json, progress, say
from longtake.cluster.backends import BackendAddress
from longtake.errors import MissingExtra
from longtake.runner.assignment import roles_of
from longtake.runner.session import Session
from longtake.types import GIVEN
from longtake_bench import experiment
from longtake_bench.benchmarks.lab import lab as lab_experiment
from longtake_bench.cli.jobs import asking_on
from longtake_bench.cli.options import number, workers
from longtake_bench.experiment import BASELINE, MethodResult
from longtake_bench.lab.film import check_folder, make_world, read_script, summary, write_world
from longtake_bench.lab.profile import parse
from longtake_bench.runner import Solver
from longtake_bench.runs import format_mean, list_errors

MINUTES = click.IntRange(1, 255)
"""Lengths that fit into the code that each frame shows."""


@click.command("run")
@method_option
@number("--minutes", kind=MINUTES, default=30, help="Length of each world.")
@number("--worlds", default=3, help="Number of worlds, one per seed.")
@number("--questions", default=40, help="Questions about each world.")
@number(
    "--first-seed",
    kind=click.IntRange(0),
    default=0,
    help="Seed of the first world; 0 to 99 for development, 1000 and up to publish.",
)
@click.option(
    "--noise",
    type=float,
    metavar="X",
    help="Noise of the simulated encoder.  [default: the profile's]",
)
@click.option("--encoded", type=PATH, hidden=True)
@workers(2)
@on
@common
@session_options
def run_command(
    method: str,
    minutes: int,
    worlds: int,
    questions: int,
    first_seed: int,
    noise: float | None,
    encoded: Path | None,
    workers: int,
    where: BackendAddress | None,
    session: Session,
) -> Output:
    """Measure a method on worlds with known truth, against uniform sampling of as many frames.

    Without --model the profile's simulated model fills all roles; with --model ROLE=NAME it fills
    the others. If the model sleeps (lab/…,latency=0.5,sleep=1), the seconds per question are those
    of the critical path.

    Exit code 4: every question failed.

    \b
    Example:
      longtake lab run --method videoagent --minutes 60 --worlds 3 --questions 40
      longtake lab run --method videoagent --model lab/acuity=0.6 --noise 2 --json
    """
    assignment = experiment.with_profile_model(session.assignment, method)
    session = replace(session, assignment=assignment)
    solver = Solver(method, session)
    seeds = range(first_seed, first_seed + worlds)
    made = lab_experiment(
        seeds, minutes, questions, noise=noise, films=encoded, opened_with=session.settings
    )
    # rejects unknown names and missing films before anything runs
    experiment.check(solver, made, all_films=encoded is not None)
    check_models(session, roles_of((method, BASELINE)), here=where is None)
    with asking_on(where) as ask_all:
        measured = experiment.measure(solver, made, workers, ask_all)
    return Output(measured.plain(), _lines(measured))


def _lines(measured: MethodResult) -> Iterator[str]:
    scored = measured.scored
    yield f"{measured.method} with {', '.join(measured.models)} ({measured.profile})"
    yield f"accuracy  {scored.accuracy}"
    yield (
        f"a question: {scored.mean('frames'):.1f} frames "
        f"({format_mean(scored.count('seen'))} distinct), "
        f"{format_mean(scored.count('rounds'))} rounds, {scored.mean('calls'):.1f} calls, "
        f"{scored.tokens:,.0f} tokens, {scored.mean('seconds'):.2f} s"
    )
    for kind, rate in measured.types().items():
        yield f"  {kind:<14}{rate}"
    yield f"uniform with {measured.uniform_frames} frames  {measured.uniform.accuracy}"
    yield f"lead      {measured.lead}"
    citations = scored.citations
    if citations is not None:
        for name, value in citations.figures().items():
            yield f"  {name:<40}{value:.2f}"
    failed = sorted(item for item in scored.counts.items() if item[0] not in GIVEN)
    if failed:
        yield "not answered: " + ", ".join(f"{count} {status}" for status, count in failed)
    for line in list_errors(scored.errors):
        yield visible(f"  {line}")


@click.group()
def lab() -> None:
    """Make films with known truth, and simulate models of known acuity.

    \b
    Example:
      longtake lab make --minutes 60 --seed 7 --out world
      longtake lab serve --world world --model acuity=0.8
    """


@lab.command()
@number("--minutes", kind=MINUTES, default=60, help="Length of the film.")
@number(
    "--seed",
    kind=click.IntRange(0, 16383),
    default=0,
    help="0 to 99 are for development, 1000 and up for published figures.",
)
@click.option(
    "--out",
    type=FOLDER,
    required=True,
    help="Folder for film.mp4, film.srt, script.json, questions.json.",
)
@number("--questions", "count", default=60, help="Maximum number of questions.")
@click.option("--no-code", is_flag=True, hidden=True)
@json_option
@debug
def make(minutes: int, seed: int, out: Path, count: int, no_code: bool) -> Output:
    """Make a film with its subtitles, script and questions.

    The same seed and length always give the same world; the video file also depends on the version
    of the encoder.

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
    scenes, questions = len(world.script.scenes), len(world.questions)
    say(f"{out}: {minutes} minutes, {scenes} scenes, {questions} questions, {seconds} s")
    return Output({**json.loads(summary(world)), "folder": out, "seconds": seconds})


@lab.command()
@click.option(
    "--world",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="DIR",
    help="Answer only about this world; only its script.json is read.  [default: every world]",
)
@click.option(
    "--model",
    "name",
    default="",
    show_default=False,
    metavar="NAME",
    help="As in acuity=0.8,seed=3,onscreen=0.2.",
)
@number("--port", kind=click.IntRange(0, 65535), default=8765, help="0 picks a free port.")
@click.option("--latency", type=click.FloatRange(0), default=0.0, hidden=True)
@click.option("--fail-rate", type=click.FloatRange(0, 1), default=0.0, hidden=True)
@json_option
@debug
def serve(world: Path | None, name: str, port: int, latency: float, fail_rate: float) -> None:
    """Serve a simulated model on 127.0.0.1, through an OpenAI-compatible API.

    If the model name in a request begins with lab/, that model is served instead of --model.
    Needs the extra 'serve'.

    \b
    Example:
      longtake lab serve --world world --model acuity=0.8 --port 8765
      longtake ask world/film.mp4 "…" --model http://127.0.0.1:8765/v1#lab/acuity=0.8
    """
    try:
        from longtake.server.app import serving
        from longtake_bench.simulated_server import SimulatedService
    except ImportError as error:
        raise MissingExtra("serve", "longtake lab serve") from error
    model = parse(name)
    if world is not None:
        script = read_script(world)
        model = replace(model, world=(script.seed, script.minutes))
    with serving(SimulatedService(model, latency, fail_rate).app(), port) as url:
        # the first line of output is the value for --model
        address = f"{url}#{model.name}"
        Output({"url": url, "model": address}, [address]).show(as_json=prints_json())
        say("serving; press Ctrl-C to stop")
        # the server runs in other threads
        threading.Event().wait()


lab.add_command(run_command)
