"""``longtake replay``."""

from __future__ import annotations

import dataclasses
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from longtake import prompts
from longtake.agents.run import Agent, Run, settle
from longtake.cli.answers import answer_lines, exit_code
from longtake.cli.options import FILM, PATH, common
from longtake.cli.output import Output, say
from longtake.config import BudgetSettings, Settings
from longtake.errors import BudgetSpent, ConfigError, ModelError, RunError, unknown
from longtake.index.film import Film
from longtake.llm.backends.scripted import RecordedChat, Recording, card_from
from longtake.methods.base import FULL
from longtake.prompts import prompts_digest
from longtake.registry import methods
from longtake.runner.films import open_film
from longtake.runner.results import result_data
from longtake.runner.session import Session, solve, with_option_text
from longtake.tracing import trace as traces
from longtake.tracing.events import Answered, ChatCalled, Failed, RunStarted, Stream
from longtake.tracing.sinks import ConsoleSink
from longtake.tracing.trace import Trace
from longtake.types import Question, Result

TEAM_MEMBER = "team."
"""Prefix of the names of team members in a trace."""


@click.command()
@click.argument("trace", type=PATH)
@click.option(
    "--rerun",
    type=FILM,
    metavar="FILM",
    help="Run the method again on this film with the recorded replies, and compare.",
)
@click.option(
    "--subtitles",
    type=PATH,
    metavar="FILE",
    help="With --rerun: the subtitles of the run.  [default: their recorded path]",
)
@click.option(
    "--method",
    metavar="MODULE:CLASS",
    help="With --rerun: allow this method, which is not part of longtake.",
)
@common
def replay(
    trace: Path, rerun: Path | None, subtitles: Path | None, method: str | None, settings: Settings
) -> Output:
    """Show a recorded run offline, or repeat it with its recorded replies.

    The trace contains the method's fields, the prompts and the budget of the run.

    Exit code 1: the answer differs from the recorded one.

    \b
    Example:
      longtake replay run.jsonl
      longtake replay run.jsonl --rerun film.mp4
    """
    recorded = traces.read(trace)
    started = _started(trace, recorded)
    console = ConsoleSink(sys.stderr)
    if rerun is None:
        if subtitles is not None or method is not None:
            raise ConfigError("--subtitles and --method need --rerun FILM")
        for event in recorded.events:
            console.handle(event)
        ended = _answered(trace, recorded)
        return _output(Result(ended.answer, ended.usage, started.method, started.models))
    if started.method not in methods and started.method != method:
        # a trace may come from a stranger, and importing a module runs its code
        raise ConfigError(
            f"{trace}: the run used {started.method}, which is not part of longtake; "
            f"pass --method {started.method} to allow it",
            key="method",
        )
    # fails early if there is no answer to compare with
    before = _answered(trace, recorded).answer
    film = open_film(rerun, settings, subtitles=_subtitles(started, subtitles))
    result = _rerun(recorded, started, film, settings, console)
    # confidence and status may differ
    parts = ("choice", "text", "reason", "evidence")
    same = all(getattr(before, part) == getattr(result.answer, part) for part in parts)
    say("the same answer and evidence as recorded" if same else "NOT the recorded answer")
    output = _output(result, as_recorded=same)
    return output if same else replace(output, exit_code=1)


def _output(result: Result, **more: bool) -> Output:
    lines = answer_lines(result.answer, result.usage)
    return Output({**result_data(result), **more}, lines, exit_code(result.answer))


def _started(path: Path, recorded: Trace) -> RunStarted:
    for event in recorded.events:
        if isinstance(event, RunStarted):
            return event
    raise RunError(f"{path}: contains no run")


def _answered(path: Path, recorded: Trace) -> Answered:
    """The answer of the run."""
    answered = [event for event in recorded.events if isinstance(event, Answered)]
    if answered:
        return answered[-1]
    failed = [event.message for event in recorded.events if isinstance(event, Failed)]
    reason = f" ({failed[-1]})" if failed else ""
    raise RunError(f"{path}: the run ended without an answer{reason}")


def _subtitles(started: RunStarted, given: Path | None) -> Path | None:
    """The given subtitles, or else those at the recorded path."""
    if given is not None or not started.subtitles:
        return given
    path = Path(started.subtitles)
    if not path.is_file():
        raise RunError(f"the subtitles of the run are gone ({path}); pass --subtitles FILE")
    return path


def _rerun(
    recorded: Trace, started: RunStarted, film: Film, settings: Settings, console: ConsoleSink
) -> Result:
    # fields that the trace lacks had their defaults, whatever the default model is now
    fields = {"preset": FULL, **_known_fields(methods.get(started.method)(), started.fields)}
    session = Session(settings).with_fields(started.method, fields)
    method = session.method(started.method)
    run = _recorded_run(recorded, started)
    question = Question(started.question, started.options, started.asks_for)
    with Stream(console).active(), _prompts(started.prompts):
        try:
            return solve(method, film, question, run, check=started.verify)
        except ModelError:
            ends = [event.answer for event in recorded.events if isinstance(event, Answered)]
            if not any(answer.status in ("budget_spent", "cancelled") for answer in ends):
                raise
            # the recorded run ended here, since its budget was spent
            best, complete = run.ledger.best, run.ledger.complete
            ended = "the recording ends here"
            spent = settle(BudgetSpent("as recorded", ended, best, complete=complete))
            return Result(with_option_text(spent, question), run.usage, started.method, run.names)


def _known_fields(method: Any, recorded: Mapping[str, Any]) -> dict[str, Any]:
    """The recorded fields that this version of the method still has."""
    known = {}
    for name, value in recorded.items():
        if not hasattr(method, name):
            say(f"the setting {name} = {value} of the recorded run no longer exists")
            continue
        part = getattr(method, name)
        known[name] = _known_fields(part, value) if dataclasses.is_dataclass(part) else value
    return known


def _recorded_run(recorded: Trace, started: RunStarted) -> Run:
    """A run whose models give the recorded replies."""
    calls = [event for event in recorded.events if isinstance(event, ChatCalled)]
    # if prompts were reworded since, requests are matched by their content
    recording = Recording(calls, reworded=started.wording != prompts_digest())
    roles: dict[str, RecordedChat] = {}
    team = []
    for name, card in started.cards.items():
        chat = RecordedChat(card_from(card), recording)
        if name.startswith(TEAM_MEMBER):
            team.append(Agent(name.removeprefix(TEAM_MEMBER), chat))
        else:
            roles[name] = chat
    # recorded replies take no time, tokens or money, so only these limits apply
    counted = ("calls", "frames")
    limits = {name: int(limit) for name, limit in started.budget.items() if name in counted}
    return Run(roles, team=team, seed=started.seed, budget=BudgetSettings(**limits))


@contextmanager
def _prompts(texts: Mapping[str, str]) -> Iterator[None]:
    """Inside the block, these prompts replace the shipped ones.

    Unknown names are rejected, since a name becomes a path and the trace may be hostile.
    """
    for name in texts:
        if name not in prompts.names():
            raise unknown("prompt", name, prompts.names(), where="the trace")
    with tempfile.TemporaryDirectory(prefix="longtake-prompts-") as folder:
        for name, text in texts.items():
            path = Path(folder, f"{name}.md")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        with prompts.override(Path(folder) if texts else None):
            yield
