"""``longtake replay``."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import click

from longtake import prompts
from longtake import trace as traces
from longtake.cli.answers import exit_code, plain, show
from longtake.cli.options import common
from longtake.cli.output import emit_json, say
from longtake.config import BudgetSettings, Settings
from longtake.errors import BudgetSpent, ConfigError, ModelError, RunError, unknown
from longtake.events import Answered, ChatCalled, Failed, RunStarted, Stream
from longtake.index.film import Film
from longtake.models.backends.recorded import RecordedChat, Recording, card_from
from longtake.registry import methods
from longtake.session.asking import Session, solve, with_option_text
from longtake.session.films import open_film
from longtake.sinks.console import ConsoleSink
from longtake.steps.run import Agent, Run, settle
from longtake.steps.wording import wording
from longtake.trace import Trace
from longtake.types import Answer, Question, Result


@click.command()
@click.argument("trace", type=click.Path(path_type=Path))
@click.option(
    "--rerun",
    type=click.Path(path_type=Path),
    metavar="FILM",
    help="Run the method again on this film with the recorded replies, and compare.",
)
@click.option(
    "--subtitles",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="With --rerun: the subtitles that the run was given.  [default: where they lay]",
)
@click.option(
    "--method",
    metavar="MODULE:CLASS",
    help="With --rerun: leave to run a method that is not longtake's own.",
)
@common
def replay(
    trace: Path,
    rerun: Path | None,
    subtitles: Path | None,
    method: str | None,
    settings: Settings,
    as_json: bool,
) -> int:
    """Show a recorded run again, offline; or repeat it on its recorded replies.

    Fields, prompts and budget of the run are in the trace. Exit code 1: the answer is not the one that was recorded.

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
            raise ConfigError("--subtitles and --method are for --rerun FILM; give it too")
        for event in recorded.events:
            console.handle(event)
        answered = _answered(trace, recorded)
        return _end(
            Result(answered.answer, answered.usage, started.method, started.models), as_json
        )
    if started.method not in methods and started.method != method:
        # a trace may come from a stranger, and importing a module runs it
        raise ConfigError(
            f"{trace}: the run used {started.method}, which is not longtake's own; pass --method {started.method}",
            key="method",
        )
    before = _answered(trace, recorded).answer
    film = open_film(rerun, settings, subtitles=_subtitles(started, subtitles))
    result = _again(recorded, film, settings, console)
    same = _same(before, result.answer)
    say("the same answer and evidence as recorded" if same else "NOT the answer that was recorded")
    code = _end(result, as_json, as_recorded=same)
    return code if same else 1


def _end(result: Result, as_json: bool, **more: bool) -> int:
    if as_json:
        emit_json({**plain(result), **more})
    else:
        show(result.answer, result.usage)
    return exit_code(result.answer)


def _started(path: Path, recorded: Trace) -> RunStarted:
    started = next((event for event in recorded.events if isinstance(event, RunStarted)), None)
    if started is None:
        raise RunError(f"{path}: holds no run")
    return started


def _answered(path: Path, recorded: Trace) -> Answered:
    """How the run ended."""
    answered = [event for event in recorded.events if isinstance(event, Answered)]
    if answered:
        return answered[-1]
    failed = [event.message for event in recorded.events if isinstance(event, Failed)]
    why = f" ({failed[-1]})" if failed else ""
    raise RunError(f"{path}: the run ended without an answer{why}")


def _subtitles(started: RunStarted, given: Path | None) -> Path | None:
    """The subtitles of the run: as given now, else where they lay then."""
    if given is not None or not started.subtitles:
        return given
    if not Path(started.subtitles).is_file():
        raise RunError(
            f"the run was given the subtitles {started.subtitles}, which are not there; pass --subtitles FILE"
        )
    return Path(started.subtitles)


def _again(recorded: Trace, film: Film, settings: Settings, console: ConsoleSink) -> Result:
    started = next(event for event in recorded.events if isinstance(event, RunStarted))
    session = Session(settings).with_fields(started.method, started.fields)
    method = session.method(started.method)
    calls = [event for event in recorded.events if isinstance(event, ChatCalled)]
    recording = Recording(calls, reworded=started.wording != wording())
    chats = {name: RecordedChat(card_from(card), recording) for name, card in started.cards.items()}
    team = [
        Agent(name.removeprefix("team."), chat)
        for name, chat in chats.items()
        if name.startswith("team.")
    ]
    roles = {name: chat for name, chat in chats.items() if not name.startswith("team.")}
    # seconds, tokens and cost are other ones on recorded replies; where they ended the run, a reply is missing
    limits = {
        key: int(value) for key, value in started.budget.items() if key in ("calls", "frames")
    }
    run = Run(roles, team=team, seed=started.seed, budget=BudgetSettings(**limits))
    question = Question(started.question, started.options)
    with Stream(console).active(), _prompts(started.prompts):
        try:
            return solve(method, film, question, run)
        except ModelError:
            if not _budget_ended(recorded):
                raise
            spent = settle(BudgetSpent("as recorded", "the recording ends here", run.ledger.best))
            return Result(with_option_text(spent, question), run.usage, started.method, run.names)


def _budget_ended(recorded: Trace) -> bool:
    return any(
        isinstance(event, Answered) and event.answer.status == "budget_spent"
        for event in recorded.events
    )


@contextmanager
def _prompts(texts: Mapping[str, str]) -> Iterator[None]:
    """Inside the block, these prompts stand in for ours; a name that is none of ours is no file to be written."""
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


def _same(one: Answer, two: Answer) -> bool:
    return (one.choice, one.text, one.reason, one.evidence) == (
        two.choice,
        two.text,
        two.reason,
        two.evidence,
    )
