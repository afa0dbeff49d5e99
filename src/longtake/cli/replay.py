"""``longtake replay``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from longtake import trace as traces
from longtake.agents.run import Agent, Run
from longtake.build import open_method, with_fields
from longtake.cli.answers import exit_code, plain, show
from longtake.cli.options import common
from longtake.cli.output import emit_json, say
from longtake.config import Settings
from longtake.errors import RunError
from longtake.events import Answered, ChatCalled, RunStarted, Stream
from longtake.methods.base import solve
from longtake.models.recorded import RecordedChat, Recording, card_from
from longtake.opening import open_film
from longtake.sinks.console import ConsoleSink
from longtake.trace import Trace
from longtake.types import Answer, Question, Result


@click.command()
@click.argument("trace", type=click.Path(path_type=Path))
@click.option("--rerun", type=click.Path(path_type=Path), metavar="FILM",
              help="Run the method again on this film with the recorded replies, and compare.")  # fmt: skip
@common
def replay(trace: Path, rerun: Path | None, settings: Settings, as_json: bool) -> int:
    """Show a recorded run again, offline; or repeat it on its recorded replies.

    \b
    Example:
      longtake replay run.jsonl
      longtake replay run.jsonl --rerun film.mp4
    """
    recorded = traces.read(trace)
    started = _started(trace, recorded)
    console = ConsoleSink(sys.stderr)
    if rerun is None:
        for event in recorded.events:
            console.handle(event)
        answered = [event for event in recorded.events if isinstance(event, Answered)]
        if not answered:
            raise RunError(f"{trace}: the run ended without an answer")
        result = Result(answered[-1].answer, answered[-1].usage, started.method, started.models)
    else:
        result = _again(recorded, started, rerun, settings, console)
        before = [event.answer for event in recorded.events if isinstance(event, Answered)]
        same = bool(before) and _same(before[-1], result.answer)
        say("the same answer and evidence as recorded" if same else "NOT the answer that was recorded")
        if not same:
            return 1
    if as_json:
        emit_json(plain(result))
    else:
        show(result.answer, result.usage)
    return exit_code(result.answer)


def _started(path: Path, recorded: Trace) -> RunStarted:
    started = next((event for event in recorded.events if isinstance(event, RunStarted)), None)
    if started is None:
        raise RunError(f"{path}: holds no run")
    return started


def _again(recorded: Trace, started: RunStarted, film: Path, settings: Settings, console: ConsoleSink) -> Result:
    method = open_method(started.method, with_fields(settings, started.method, started.fields))
    recording = Recording([event for event in recorded.events if isinstance(event, ChatCalled)])
    chats = {name: RecordedChat(card_from(card), recording) for name, card in started.cards.items()}
    team = [Agent(name.removeprefix("team."), chat) for name, chat in chats.items() if name.startswith("team.")]
    run = Run({n: c for n, c in chats.items() if not n.startswith("team.")}, team=team, seed=started.seed)
    with Stream(console).active():
        return solve(method, open_film(film, settings), Question(started.question, started.options), run)


def _same(one: Answer, two: Answer) -> bool:
    return (one.choice, one.text, one.reason, one.evidence) == (two.choice, two.text, two.reason, two.evidence)
