"""``longtake ask``."""

from __future__ import annotations

import hashlib
import json
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any, get_args

import click
from click.shell_completion import CompletionItem

from longtake._util import visible
from longtake.cli import names_film
from longtake.cli.answers import FORMATS, AnsweredQuestion, AskOptions, ask_film, show_answered
from longtake.cli.clips import (
    check_clip_path,
    check_clips_folder,
    open_player,
    write_clips,
    write_reel,
)
from longtake.cli.indexing import files_at, is_unread, look_through, show_notes
from longtake.cli.options import (
    FILE,
    FOLDER,
    answering_options,
    check_models,
    check_offline,
    common,
    question_method_option,
    question_options,
    quiet_option,
    read_question,
    verbose_option,
)
from longtake.cli.output import TRACE, check_place, emit_line, faint, prints_json, read_text, say
from longtake.config import Settings, cache_folder
from longtake.errors import ConfigError, LongtakeError, MediaError, unknown
from longtake.index.film import Film
from longtake.index.search import covered
from longtake.index.store import private_folder
from longtake.index.tasks import SECONDS, glance
from longtake.methods.lookup.method import Lookup
from longtake.retrieval.question_kinds import asks_for_moments, asks_for_words
from longtake.runner.films import open_film
from longtake.runner.session import Session
from longtake.tracing.jsonl import JsonlSink
from longtake.types import Question, QuestionKind
from longtake.video.remote import film_path


def wants_first_look(options: AskOptions, film: Film, question: Question) -> bool:
    """Whether to answer before the whole film is indexed: it is long, and the method only reads."""
    if options.method != Lookup.name or options.session.settings.budget.seconds is not None:
        return False
    # a list of occurrences needs the whole film
    if asks_for_words(question) or asks_for_moments(question):
        return False
    return is_unread(film)


def ask_after_first_look(
    options: AskOptions, film: Film, question: Question
) -> AnsweredQuestion | None:
    """An answer from what is indexed so far, or from a first look; ``None`` without one."""
    answered = None
    # an earlier question may have indexed a part
    if any(film.known_lines()):
        answered = _hurried(options, film, question)
    if answered is None:
        with show_notes():
            glance(film)
        known = covered(film)["speech"]
        say(f"first look ({SECONDS:.0f} s): {known:.0%} of the speech is indexed")
        answered = _hurried(options, film, question)
    if answered is None:
        say("no answer yet; indexing the whole film (Ctrl-C keeps finished work)")
    return answered


def _hurried(options: AskOptions, film: Film, question: Question) -> AnsweredQuestion | None:
    """An answer with a citation from what is indexed so far; ``None`` if there is none."""
    film.words.hurried = True
    try:
        answered = ask_film(options, film, question)
    finally:
        film.words.hurried = False
    answer = answered.result.answer
    # an option chosen without a citation is a guess
    if answer.status != "answered" or not answer.evidence:
        return None
    command = f"longtake index {shlex.quote(str(film.path))}"
    say(f"the answer may improve once the whole film is indexed: {command}")
    return answered


def read_questions(place: str) -> list[Question]:
    """The questions in a file, or on standard input if the place is ``-``.

    A line is a question, or an object with ``question`` and optionally ``options`` and ``kind``.
    Empty lines and lines that begin with ``#`` are skipped.
    """
    questions = []
    for number, line in enumerate(read_text(Path(place)).splitlines(), start=1):
        line = line.strip()
        if line and not line.startswith("#"):
            questions.append(_question(line, f"{place}, line {number}"))
    if not questions:
        raise ConfigError(f"{place}: contains no question")
    return questions


def _question(line: str, where: str) -> Question:
    if not line.startswith("{"):
        return read_question(line, ())
    try:
        row: Any = json.loads(line)
    except ValueError as error:
        raise ConfigError(f"{where}: malformed JSON ({error})") from error
    text, options, asked_as = row.get("question"), row.get("options", []), row.get("kind")
    listed = isinstance(options, list) and all(isinstance(each, str) for each in options)
    if not isinstance(text, str) or not listed:
        raise ConfigError(f'{where}: write {{"question": "…", "options": ["…", "…"]}}')
    if asked_as not in (None, *get_args(QuestionKind)):
        raise unknown("kind of question", str(asked_as), get_args(QuestionKind), where=where)
    return read_question(text, tuple(options), asked_as)


RIGHTS = (
    "downloading {url} with yt-dlp: you are responsible for having the right to; many sites "
    "forbid it in their terms, and films are usually protected by copyright"
)
FORMAT = "bestvideo[height<=720]+bestaudio/best[height<=720]/best"
"""Enough for every model, since pictures are scaled down."""


def films_named(names: Sequence[str], settings: Settings, *, download: bool) -> list[Path]:
    """The films that are named, and those in named folders; web pages if ``download`` is set."""
    paths: list[Path] = []
    for name in names:
        if download and name.startswith(("http://", "https://")):
            paths.append(_downloaded(name, settings))
        else:
            paths += files_at(film_path(name))
    return paths


def _downloaded(url: str, settings: Settings) -> Path:
    """The film of a web page, downloaded once with the user's yt-dlp."""
    folder = private_folder(cache_folder(settings) / "downloads")
    name = hashlib.blake2b(url.encode(), digest_size=12).hexdigest()
    if existing := _complete(folder, name):
        return existing[0]
    program = shutil.which("yt-dlp")
    if program is None:
        raise ConfigError("--download needs yt-dlp: pipx install yt-dlp")
    say(RIGHTS.format(url=url))
    target = folder / f"{name}.%(ext)s"
    command = [program, "--no-playlist", "--format", FORMAT, "--output", str(target)]
    # "--" in case the address begins with a dash
    done = subprocess.run([*command, "--", url], stdin=subprocess.DEVNULL, check=False)
    made = _complete(folder, name)
    if done.returncode or not made:
        detail = f"yt-dlp could not download it (exit code {done.returncode})"
        raise MediaError(url, "not_found", detail)
    return made[0]


def _complete(folder: Path, name: str) -> list[Path]:
    return [path for path in folder.glob(f"{name}.*") if path.suffix not in (".part", ".ytdl")]


@click.command()
@click.argument(
    "words",
    nargs=-1,
    required=True,
    metavar="FILM... QUESTION",
    # the shell completes file names
    shell_complete=lambda context, argument, typed: [CompletionItem(typed, type="file")],  # noqa: ARG005
)
@question_method_option
@click.option(
    "--questions",
    metavar="FILE",
    help="Questions, one per line, instead of QUESTION; '-': standard input. Prints JSON Lines.",
)
@click.option(
    "--format",
    "kind",
    type=click.Choice(FORMATS),
    help="How the answer is printed.  [default: text]",
)
@click.option(
    "--download",
    is_flag=True,
    help="Download the film of a web page with your yt-dlp; you must have the right to.",
)
@click.option(
    "--trace", type=FILE, help="Record the run; the file holds the frames shown to models."
)
@click.option("--clips", type=FOLDER, help="Write a clip of each citation into a new folder.")
@click.option("--reel", type=FILE, help="Write all citations into one MP4 file.")
@click.option("--open", "play", is_flag=True, help="Start your player at the first citation.")
@quiet_option
@verbose_option
@common
@question_options
@answering_options
def ask(
    words: tuple[str, ...],
    method: str | None,
    questions: str | None,
    kind: str | None,
    download: bool,
    trace: Path | None,
    clips: Path | None,
    reel: Path | None,
    play: bool,
    quiet: bool,
    verbose: bool,
    options: tuple[str, ...],
    asked_as: QuestionKind | None,
    subtitles: Path | None,
    session: Session,
) -> int:
    """Ask a question about films; get answers with evidence.

    FILM is a file, a folder, or a URL (https://, s3://, gs:// and others), which is streamed.
    --download downloads the film of a web page first.

    Without --option the question is open-ended. Without --model, the model chosen with 'longtake
    setup' answers, or else small built-in models on this machine ('longtake models pull
    local/qwen2.5-coder-1.5b' downloads the language model once). Several films are asked one by
    one, and their answers are printed as JSON Lines with --json; 'longtake library ask' finds the
    relevant films among many.

    Exit code 0: answered; 1: answered, but the trace could not be written; 3: the budget ran out,
    or no reply could be read; 4: a model could not be reached.

    \b
    Example:
      longtake ask film.mp4 "What does the sign over the door say?"
      longtake ask film.mp4 "Who leaves first?" --option "the man" --option "the woman"
      longtake ask lectures/ "What is due on Friday?"
      longtake ask film.mp4 --questions questions.txt > answers.jsonl
    """
    names, parsed = _split(words, questions, options, asked_as)
    if prints_json() and kind not in (None, "json"):
        raise ConfigError(f"--json cannot be combined with --format {kind}")
    kind = kind or ("json" if prints_json() or questions is not None else "text")
    method = method or session.assignment.default_method
    ask_options = AskOptions(session, method, quiet, verbose, drafts=kind == "text")
    if session.assignment.offline and download:
        raise ConfigError("--offline forbids --download")
    paths = films_named(names, session.settings, download=download)
    check_offline(session.assignment.offline, *paths)
    outputs = Outputs(trace, clips, reel, play)
    several = len(paths) * len(parsed) > 1 or questions is not None
    if several:
        if outputs != Outputs() or subtitles is not None or kind in ("html", "srt"):
            raise ConfigError(
                "--trace, --clips, --reel, --open, --subtitles and"
                " --format html, srt are for one film and one question"
            )
    else:
        film = open_film(paths[0], session.settings, subtitles=subtitles)
        # before any work is done
        outputs.check((paths[0], film.subtitle_file, session.assignment.team))
    # finding words needs no model, so the weights of the built-in one may be missing
    built_in = method == Lookup.name and not session.assignment.models
    if not built_in or not all(map(asks_for_words, parsed)):
        check_models(session, ask_options.roles)
    if several:
        return ask_several(ask_options, paths, parsed, kind)
    if outputs.trace is None and wants_first_look(ask_options, film, parsed[0]):
        answered = ask_after_first_look(ask_options, film, parsed[0])
        if answered is not None:
            return _show_one(answered, ask_options, kind, outputs)
    _prepare(film, session)
    return _ask_one(ask_options, film, parsed[0], kind, outputs)


def _split(
    words: tuple[str, ...],
    questions: str | None,
    options: tuple[str, ...],
    asked_as: QuestionKind | None,
) -> tuple[tuple[str, ...], list[Question]]:
    """The films and the questions of a command line."""
    if questions is not None:
        if options or asked_as:
            raise ConfigError("with --questions, write options and kinds into the file")
        return words, read_questions(questions)
    if len(words) < 2:
        raise ConfigError('missing a film or a question: longtake ask FILM "QUESTION"')
    films = len(words) - 1
    # without quotation marks, the words that name no films are the question
    if " " not in words[-1]:
        films = max(1, sum(1 for _ in takewhile(names_film, words[:-1])))
    return words[:films], [read_question(" ".join(words[films:]), options, asked_as)]


def _prepare(film: Film, session: Session) -> None:
    # here with a progress bar, rather than during the method's first search; with a time limit, the
    # method may have an answer before it needs the index
    if session.settings.budget.seconds is None:
        look_through(film)


def _ask_one(
    ask_options: AskOptions, film: Film, question: Question, kind: str, outputs: Outputs
) -> int:
    recording = None if outputs.trace is None else JsonlSink(outputs.trace)
    if recording is not None:
        say(f"{outputs.trace} will contain the frames shown to models")
    answered = ask_film(ask_options, film, question, sinks=[recording] if recording else [])
    code = _show_one(answered, ask_options, kind, outputs)
    if recording is not None and recording.problem:
        say(f"{outputs.trace}: the trace is incomplete ({recording.problem})")
        return code or 1
    return code


def _show_one(
    answered: AnsweredQuestion, ask_options: AskOptions, kind: str, outputs: Outputs
) -> int:
    film = answered.film
    # first, since cutting clips may fail
    show_answered(answered, kind, ask_options)
    answer = answered.result.answer
    if outputs.clips is not None:
        write_clips(film, answer.evidence, outputs.clips)
    if outputs.reel is not None:
        write_reel(film, answer.evidence, outputs.reel)
    if outputs.play:
        open_player(film.path, answer.evidence)
    return answered.exit_code


def ask_several(
    ask_options: AskOptions, paths: Sequence[Path], questions: Sequence[Question], kind: str
) -> int:
    """Ask each film each question; print each answer or error at once. Return the worst code."""
    worst = 0

    def report(error: LongtakeError, path: Path, question: str = "") -> None:
        nonlocal worst
        worst = max(worst, error.exit_code)
        if kind == "json":
            row = {"film": str(path), "question": question, "status": "error", "error": str(error)}
            emit_line(row)
        else:
            say(str(error))

    for path in paths:
        try:
            film = open_film(path, ask_options.session.settings)
            _prepare(film, ask_options.session)
        except LongtakeError as error:
            report(error, path)
            continue
        for question in questions:
            try:
                answered = ask_film(ask_options, film, question)
            except LongtakeError as error:
                report(error, path, question.text)
                continue
            worst = max(worst, answered.exit_code)
            if kind == "json":
                emit_line(answered.data())
                continue
            if kind == "text":
                about = f": {question.text}" if len(questions) > 1 else ""
                click.echo(faint(visible(f"{path}{about}")))
            show_answered(answered, kind, ask_options)
    return worst


@dataclass(frozen=True)
class Outputs:
    """What is made of an answer besides printing it."""

    trace: Path | None = None
    clips: Path | None = None
    reel: Path | None = None
    play: bool = False

    def check(self, inputs: tuple[Path | None, ...]) -> None:
        """Raise if a file cannot be written."""
        if self.trace is not None:
            check_place(self.trace, TRACE, inputs=inputs)
        if self.clips is not None:
            check_clips_folder(self.clips)
        if self.reel is not None:
            check_clip_path(self.reel, inputs)
