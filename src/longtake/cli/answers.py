"""Asking films and printing answers, as text or JSON; clips and players for citations."""

from __future__ import annotations

import dataclasses
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click

from longtake._util import on_one_line, visible
from longtake._util.cancellation import Stop
from longtake._util.timecode import clock
from longtake.agents.answer import claims
from longtake.algorithms.intervals import union
from longtake.cli.indexing import say_languages
from longtake.cli.output import (
    NEW,
    bold,
    check_place,
    faint,
    on_terminal,
    progress,
    say,
    with_quote,
    wrapped,
)
from longtake.errors import ConfigError, LongtakeError
from longtake.index.film import Film
from longtake.registry import methods
from longtake.retrieval.citing import LOOK
from longtake.runner.rendering import (
    CALIBRATED,
    RenderedAnswer,
    answer_text,
    as_html,
    as_markdown,
    as_srt,
    from_words,
    kind_of,
    lookalikes,
    outcome,
    plural,
    quoted,
    shown_stretch,
    sureness,
    times_of,
    unseen,
    with_footnotes,
)
from longtake.runner.session import Session
from longtake.tracing.events import (
    PASSAGES_FOUND,
    ChatCalled,
    Drafted,
    Event,
    FramesSeen,
    Noted,
    RunStarted,
    Sink,
    StepBegan,
)
from longtake.tracing.sinks import ConsoleSink, Meter, times_in_words
from longtake.types import GIVEN, Answer, Evidence, Question, Result, Segment, Usage
from longtake.video.clip import cut, join, write_subtitles
from longtake.video.pictures import encoded


def exit_code(answer: Answer) -> int:
    """0 for an answer, 3 if the run ended early or the method abstained."""
    return 0 if answer.status in GIVEN else 3


def show(
    answer: Answer,
    usage: Usage,
    *,
    looked_at: Sequence[float] = (),
    unseen: Sequence[str] = (),
    quiet: bool = False,
    meter: Meter | None = None,
    calibrated: bool = False,
) -> None:
    """Print the answer, its confidence, its citations, what was looked at, and the cost.

    ``quiet`` prints only the answer and its citations; a ``meter`` adds the usage of each model.
    """
    click.echo(bold(wrapped(with_footnotes(answer) or answer_text(answer))))
    meaning = outcome(answer, usage)
    if LOOK in meaning:
        meaning += HOW_TO_LOOK
    if meaning:
        click.echo(wrapped(meaning, indent="  "))
    sure = sureness(answer, calibrated=calibrated)
    if sure and not quiet:
        click.echo(f"  {sure}")
    if answer.reason and answer.status != "abstained" and not quiet:
        click.echo(wrapped(f"because {answer.reason}", indent="  "))
    for number, cited in enumerate(answer.evidence, start=1):
        click.echo(citation(number, cited, about=answer.text))
    if answer.context and not quiet:
        click.echo(faint(f"  from the talk at {_span(answer.context)}"))
    if answer.nearest:
        click.echo(wrapped(lookalikes(answer), indent="  "))
    if quiet:
        return
    if looked_at:
        click.echo(faint(wrapped(f"looked at: {times_in_words(looked_at)}", indent="  ")))
    if unseen:
        click.echo(faint(wrapped(f"not looked at: {'; '.join(unseen)}", indent="  ")))
    click.echo(faint(f"  {spent(usage)}"))
    for model, used in (meter.by_model if meter else {}).items():
        click.echo(faint(f"    {model}: {spent(used)}"))


HOW_TO_LOOK = " (--method videoagent --model NAME; 'longtake models pull vision' downloads one)"
"""Added to an answer that recommends looking at the pictures."""


def citation(number: int, cited: Evidence, where: str = "", *, about: str = "") -> str:
    """``[1] 00:12:31–00:12:34  said  “…”`` in one line; ``where`` replaces the times.

    Of a long quotation, the part with most words of ``about`` is shown.
    """
    start = visible(f"  [{number}] {where or times_of(cited)}  {kind_of(cited)}")
    return with_quote(start, from_words(quoted(cited), about))


def _span(segment: Segment) -> str:
    return f"{clock(segment.start)}–{clock(segment.end)}"


def spent(usage: Usage) -> str:
    """The usage in one line."""
    # many servers do not report cached tokens
    cached = f" ({usage.tokens_cached:,} cached)" if usage.tokens_cached else ""
    cost = "cost unknown" if usage.cost is None else f"${usage.cost:.4f}"
    return (
        f"{plural(usage.frames, 'frame')}, {plural(usage.calls, 'call')}, "
        f"{plural(usage.tokens_in, 'token')} in{cached}, "
        f"{usage.tokens_out:,} out, {cost}, {usage.seconds:.1f} s"
    )


@contextmanager
def report_spending(meter: Meter) -> Iterator[None]:
    """Print the usage if Ctrl-C or an error ends a question."""
    try:
        yield
    except KeyboardInterrupt:
        say(f"interrupted after {spent(meter.total)}; unfinished calls are not counted")
        raise
    except LongtakeError:
        # most errors occur before the first call
        if meter.total.calls:
            say(f"ended after {spent(meter.total)}")
        raise


def plain(result: Result) -> dict[str, Any]:
    """A result for ``--json``."""
    answer = result.answer
    return {
        "method": result.method,
        "models": dict(result.models),
        **plain_answer(answer),
        "evidence": [plain_evidence(cited) for cited in answer.evidence],
        "nearest": [plain_evidence(frame) for frame in answer.nearest],
        "claims": [
            {"text": each.text, "evidence": list(each.citations)} for each in claims(answer)
        ],
        "usage": dataclasses.asdict(result.usage),
    }


def plain_answer(answer: Answer) -> dict[str, Any]:
    """An answer for ``--json``, without its citations."""
    parts = ("status", "choice", "text", "reason", "confidence", "unchecked")
    context = answer.context and [answer.context.start, answer.context.end]
    return {**{part: getattr(answer, part) for part in parts}, "context": context}


def plain_evidence(cited: Evidence) -> dict[str, Any]:
    """A citation for ``--json``."""
    return {
        "start": cited.segment.start,
        "end": cited.segment.end,
        "source": cited.source,
        "text": cited.text,
        "score": cited.score,
    }


EXPLAINING = ("loading", "retry", "waiting")
"""Notes that explain why nothing seems to happen."""


@contextmanager
def watching(*, quiet: bool, verbose: bool, drafts: bool = False) -> Iterator[list[Sink]]:
    """Yield the sinks that show a run: every event, a status line, or nothing.

    With ``drafts``, the answer is shown while it is written, if it will be printed on the same
    terminal.
    """
    if verbose:
        yield [ConsoleSink(sys.stderr)]
        return
    if quiet or not on_terminal():
        yield []
        return
    # late: slow to import, and not needed without a terminal
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.table import Column

    # without its own column, text is cut instead of wrapped
    text = TextColumn("{task.description}", table_column=Column())
    columns = (SpinnerColumn(), text, TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task("starting", total=None)

        def show(line: str, *more: str) -> None:
            faint_lines = [f"[dim]{escape(each)}[/dim]" for each in more]
            bars.update(task, description="\n".join([escape(line), *faint_lines]))

        yield [StatusSink(show, drafts=drafts and sys.stdout.isatty())]


class StatusSink(Sink):
    """Shows the current step with its usage, the passages being read, and the draft."""

    def __init__(self, show: Callable[..., None], *, drafts: bool = False) -> None:
        self.drafts = drafts
        self._show = show
        self._reading = ""
        self._draft = ""
        self._checking = False
        self._doing = ""
        self._calls = 0
        self._frames = 0

    def handle(self, event: Event) -> None:
        """Update what is shown."""
        match event:
            case RunStarted():
                self._doing = event.method
            case StepBegan():
                number = event.data.get("round", event.data.get("number"))
                self._doing = f"{event.name} {number}" if isinstance(number, int) else event.name
            case ChatCalled():
                self._calls += 1
                self._checking = True
            case Drafted():
                self._draft = event.text if event.anew else self._draft + event.text
                self._checking = False
            case FramesSeen():
                self._frames += len(event.frames)
            case Noted() if event.label == PASSAGES_FOUND and self.drafts:
                self._reading = _places(event.data["passages"])
            case Noted() if event.label in EXPLAINING:
                self._doing = f"{event.label.replace('_', ' ')} {event.data.get('model', '')}"
            case _:
                return
        counted = f"{self._calls} calls, {self._frames} frames"
        state = "checking" if self._checking else "draft, not checked yet"
        draft = f"{state}: {on_one_line(self._draft)}" if self._draft else ""
        more = [line for line in (self._reading, draft) if line]
        self._show(f"{on_one_line(self._doing)[:60]} · {counted}", *more)


def _places(passages: Sequence[Mapping[str, Any]]) -> str:
    """``reading 00:10–01:20, 02:31–02:40 and 3 more``; adjacent passages are joined."""
    places = union(Segment(each["start"], each["end"]) for each in passages)
    times = [f"{clock(place.start)}–{clock(place.end)}" for place in places]
    more = f" and {len(times) - 4} more" if len(times) > 4 else ""
    return f"reading {', '.join(times[:4])}{more}" if times else ""


FORMATS = ("text", "md", "json", "html", "srt")


@dataclass(frozen=True)
class AskOptions:
    """How questions are asked and answers are shown."""

    session: Session
    method: str
    quiet: bool = False
    verbose: bool = False
    drafts: bool = True
    """Show answers while they are written."""

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles of the method."""
        return tuple(methods.get(self.method).roles)


@dataclass(frozen=True)
class AnsweredQuestion:
    """A question about a film with its result."""

    film: Film
    question: Question
    result: Result
    meter: Meter = field(default_factory=Meter)

    @property
    def rendered(self) -> RenderedAnswer:
        """The answer as it is printed and exported."""
        return RenderedAnswer(
            self.question.text,
            self.film.name,
            self.result.method,
            self.result.answer,
            self.result.usage,
            self.question.options,
            unseen(self.film, self.meter.moments),
            calibrated=CALIBRATED in self.meter.notes,
        )

    @property
    def row(self) -> dict[str, Any]:
        """The answer for ``--json``."""
        path, question = str(self.film.path), self.question.text
        looked_at = [round(time, 3) for time in self.meter.moments]
        return {"film": path, "question": question, **plain(self.result), "looked_at": looked_at}


def ask_film(
    options: AskOptions,
    film: Film,
    question: Question,
    *,
    sinks: Sequence[Sink] = (),
    stop: Stop | None = None,
) -> AnsweredQuestion:
    """Ask with progress."""
    session, meter = options.session, Meter()
    shown = watching(quiet=options.quiet, verbose=options.verbose, drafts=options.drafts)
    with report_spending(meter), shown as watchers:
        all_sinks = [meter, *watchers, *sinks]
        result = session.ask(film, question, options.method, sinks=all_sinks, stop=stop)
    answered = AnsweredQuestion(film, question, result, meter)
    # loading the tables of all languages takes seconds, which a time limit would not cover
    if session.settings.budget.seconds is None:
        say_languages(film, question.text)
    return answered


def show_answered(answered: AnsweredQuestion, kind: str, options: AskOptions) -> None:
    """Print an answer in one of the formats, except JSON."""
    film, rendered = answered.film, answered.rendered
    if kind == "md":
        address = quote(str(film.path))
        click.echo(as_markdown(rendered, lambda _, time: f"{address}#t={time:.2f}"))
    elif kind == "srt":
        click.echo(as_srt(rendered), nl=False)
    elif kind == "html":

        def picture(_: int, time: float) -> bytes:
            (frame,) = film.at([min(time, film.duration)], width=480)
            return encoded(frame.pixels, "jpeg")

        click.echo(as_html(rendered, picture))
    else:
        show(
            answered.result.answer,
            answered.result.usage,
            looked_at=answered.meter.moments,
            unseen=rendered.unseen,
            quiet=options.quiet,
            meter=answered.meter if options.verbose else None,
            calibrated=rendered.calibrated,
        )


AROUND = 1.0
"""Seconds added before and after a citation, so that a clip does not begin in mid-word."""
PLAYERS = {"mpv": "--start={seconds:.3f}", "vlc": "--start-time={seconds:.3f}"}
"""Players, and their option for the start time."""


def check_clips_folder(folder: Path) -> None:
    """Raise if the folder exists and is not empty."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"{folder}: --clips needs a new or empty folder")


def write_clips(film: Film, evidence: Sequence[Evidence], folder: Path) -> None:
    """Write a numbered clip for each citation."""
    if not evidence:
        say("--clips: the answer cites nothing, so no clips were written")
        return
    folder.mkdir(parents=True, exist_ok=True)
    for number, cited in enumerate(evidence, start=1):
        start = max(0.0, cited.segment.start - AROUND)
        stretch = Segment(start, min(film.duration, cited.segment.end + AROUND))
        made = write_clip(film, stretch, clip_path(folder, f"{number:02d}", stretch))
        say(f"clip: {made['file']}")


def check_clip_path(path: Path, inputs: Sequence[Path | None]) -> None:
    """Raise if a clip cannot be written there, or would overwrite something."""
    if path.suffix.lower() != ".mp4":
        raise ConfigError(f"{path}: clips are MP4 files; name it {path.stem}.mp4")
    check_place(path, NEW, inputs=inputs)


def write_reel(film: Film, evidence: Sequence[Evidence], path: Path) -> None:
    """Write all citations into one clip, in the order of the film."""
    if not evidence:
        say("--reel: the answer cites nothing, so no reel was written")
        return
    stretches = union(map(shown_stretch, evidence))
    with progress(f"writing {path.name}") as advance:
        join([(film.video, stretch) for stretch in stretches], path, advance=advance)
    say(f"reel: {path}")


def write_clip(film: Film, stretch: Segment, path: Path) -> dict[str, Any]:
    """Write a clip and its subtitles; return what was written, for ``--json``."""
    with progress(f"writing {path.name}") as advance:
        written = cut(film.video, stretch, path, advance)
    srt_file = path.with_suffix(".srt")
    spoken, _ = film.known_lines()
    subtitles = str(srt_file) if write_subtitles(spoken, written, srt_file) else None
    return {"file": str(path), "subtitles": subtitles, "start": written.start, "end": written.end}


def clip_path(folder: Path, name: str, stretch: Segment) -> Path:
    """``film_00-12-31.mp4``, with the start of the clip."""
    return folder / f"{name}_{file_clock(stretch.start)}.mp4"


def file_clock(seconds: float, *, millis: bool = False) -> str:
    """``00-12-31``: not all file systems allow colons."""
    return clock(seconds, millis=millis).replace(":", "-")


def open_player(path: Path, evidence: Sequence[Evidence]) -> None:
    """Start the user's player at the first citation."""
    if not evidence:
        say("--open: the answer cites nothing, so there is no moment to play")
        return
    seconds = evidence[0].segment.start
    for name, option in PLAYERS.items():
        program = shutil.which(name)
        if program is not None:
            # an absolute path cannot be mistaken for an option
            command = [program, option.format(seconds=seconds), str(path.resolve())]
            subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            return
    names = " or ".join(PLAYERS)
    say(f"--open: no player found; install {names}, or open {path} at {clock(seconds)}")
