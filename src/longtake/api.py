"""longtake from Python::

import longtake

film = longtake.open("film.mp4")
result = film.ask("Why does the man hold up the cup?", method="videoagent")
print(result.answer.text, result.answer.evidence)

for event in film.stream("Who leaves first?"):   # the last item is the result
    print(event)

result = await film.aio.ask("Who leaves first?")  # does not block the loop
"""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Concatenate, Literal, ParamSpec, TypeAlias, TypeVar

from longtake import config, registry
from longtake.config import BudgetSettings, Settings
from longtake.errors import unknown
from longtake.events import Event, Sink
from longtake.index.film import Film
from longtake.index.search import Search, search, stretch_of
from longtake.index.tasks import TASKS, tasks
from longtake.media.clip import clip_bytes
from longtake.media.images import encoded
from longtake.session.asking import Session
from longtake.session.casting import Casting
from longtake.session.films import open_film
from longtake.session.streaming import in_thread, in_thread_each, nested, stream
from longtake.sinks.calling import CallingSink
from longtake.stopping import Stop, check_stop, stopping
from longtake.types import Question, Result, Segment

P = ParamSpec("P")
R = TypeVar("R")
OnEvent: TypeAlias = Callable[[Event], None]
OnProgress: TypeAlias = Callable[[str, float], None]
"""Called with the part that is being indexed and the fraction of it that is done, 0 to 1."""


@dataclass(frozen=True)
class Still:
    """A frame as a file: the time at which it appears, and its bytes."""

    time: float
    data: bytes
    media_type: str


def _result_of(
    stream: Callable[Concatenate[OpenFilm, P], Iterator[Event | Result]],
) -> Callable[Concatenate[OpenFilm, P], Result]:
    """The method ``ask``: it takes what ``stream`` takes, and returns its last item."""

    # help() shows the parameters of the wrapped method
    @functools.wraps(stream, assigned=("__module__",))
    def ask(self: OpenFilm, /, *args: P.args, **kwargs: P.kwargs) -> Result:
        """Ask a question; returns the result. Arguments are those of :meth:`stream`."""
        *_, result = stream(self, *args, **kwargs)
        assert isinstance(result, Result)
        return result

    return ask


class OpenFilm:
    """A film to ask questions about. Everything derived from it is kept in the user's cache.

    Its methods may be called from several threads at once. With ``stop``, another thread can end
    the work: after ``stop.set()``, a question returns its best answer so far with the status
    ``cancelled``, and everything else raises :class:`longtake.Cancelled`.
    """

    def __init__(self, film: Film, settings: Settings) -> None:
        self.film = film
        self.settings = settings

    @property
    def aio(self) -> AsyncFilm:
        """The same methods as coroutines."""
        return AsyncFilm(self)

    @property
    def duration(self) -> float:
        """Length in seconds."""
        return self.film.duration

    def stream(
        self,
        /,
        question: str,
        options: Sequence[str] = (),
        *,
        method: str | None = None,
        model: str | Sequence[str] = (),
        team: Path | str | None = None,
        budget: BudgetSettings | None = None,
        seed: int = 0,
        prompts: Path | str | None = None,
        offline: bool = False,
        cache: bool = True,
        verify: bool | None = None,
        pictures: bool = False,
        sinks: Sequence[Sink] = (),
        on_event: OnEvent | None = None,
        stop: Stop | None = None,
        **fields: Any,
    ) -> Iterator[Event | Result]:
        """Ask a question; iterate over the events as they happen. The last item is the result.

        Leaving the loop ends the run. Further keywords set fields of the method, as in
        ``max_rounds=2``.

        Parameters
        ----------
        question, options
            Without options the question is open-ended.
        model, team
            As ``--model`` and ``--team``; without them, everything runs on this machine.
        budget
            Limits for this question instead of those in the settings.
        prompts
            A folder of prompts that replace ours.
        offline
            Refuse models that are not on this machine.
        cache
            Keep replies and use them again.
        verify
            Check the answer against the film; ``None``: as in the settings.
        pictures
            Keep the frames shown to models in the result's trace.
        sinks, on_event
            Objects, or one function, that receive every event.
        stop
            Ends the run within a second when set, with the best answer so far.
        """
        settings = _with(self.settings, budget=budget, verify=verify)
        # a string is a sequence too, of single characters
        models = (model,) if isinstance(model, str) else tuple(model)
        casting = Casting(models, _path(team), offline, replies=cache)
        casting = casting.or_else(settings.answers.model)
        method = method or casting.default_method
        session = Session(settings, casting, seed, _path(prompts)).with_fields(method, fields)
        asked = Question(question, tuple(options))
        own = [*sinks, CallingSink(on_event)] if on_event is not None else list(sinks)

        def ask(passing: Sink) -> Result:
            sinks = (*own, passing)
            return session.ask(self.film, asked, method, sinks=sinks, pictures=pictures)

        return stream(ask, stop=stop)

    ask = _result_of(stream)

    def search(
        self,
        /,
        text: str,
        *,
        within: Segment | None = None,
        top: int = 10,
        on_progress: OnProgress | None = None,
        stop: Stop | None = None,
    ) -> Search:
        """Find the moments that match a text best; a new film has its pictures indexed first."""
        with _stoppable(stop):
            pictures = self.film.pictures
            pictures.build(pictures.layers(), _advance("frames", on_progress))
            return search(self.film, text, within=within, top=top)

    def index(
        self,
        /,
        only: Sequence[str] = TASKS,
        *,
        on_progress: OnProgress | None = None,
        stop: Stop | None = None,
    ) -> None:
        """Index pictures, speech and on-screen text now, rather than on the first question."""
        for name in only:
            if name not in TASKS:
                raise unknown("part of an index", name, TASKS)
        with _stoppable(stop) as flag:
            for task in tasks(self.film):
                if task.name in only and not task.done():
                    flag.check()
                    task.build(_advance(task.name, on_progress))

    def frames(
        self,
        /,
        times: Sequence[float],
        *,
        width: int | None = None,
        kind: Literal["jpeg", "png"] = "jpeg",
    ) -> list[Still]:
        """The frames on screen at the given times, as JPEG or PNG files."""
        stills = []
        for frame in self.film.at(times, width=width):
            stills.append(Still(frame.time, encoded(frame.pixels, kind), f"image/{kind}"))
        return stills

    def clip(self, start: float, end: float, /, *, stop: Stop | None = None) -> bytes:
        """The film between two times as an MP4 file, cut at the frame, with its sound."""
        with _stoppable(stop):
            return clip_bytes(self.film.video, stretch_of(self.film, Segment(start, end)))

    def __repr__(self) -> str:
        return f"OpenFilm({str(self.film.path)!r})"


def _twin(
    method: Callable[Concatenate[OpenFilm, P], R],
) -> Callable[Concatenate[AsyncFilm, P], Coroutine[Any, Any, R]]:
    """The coroutine that runs a method of a film on a thread."""

    @functools.wraps(method)
    async def call(self: AsyncFilm, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await in_thread(lambda: method(self.film, *args, **kwargs))

    return call


def _stream_twin(
    method: Callable[Concatenate[OpenFilm, P], Iterator[R]],
) -> Callable[Concatenate[AsyncFilm, P], AsyncIterator[R]]:
    @functools.wraps(method)
    def call(self: AsyncFilm, /, *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[R]:
        return in_thread_each(lambda: method(self.film, *args, **kwargs))

    return call


class AsyncFilm:
    """The methods of :class:`OpenFilm` as coroutines; cancelling a task ends its work."""

    def __init__(self, film: OpenFilm) -> None:
        self.film = film

    ask = _twin(OpenFilm.ask)
    stream = _stream_twin(OpenFilm.stream)
    search = _twin(OpenFilm.search)
    index = _twin(OpenFilm.index)
    frames = _twin(OpenFilm.frames)
    clip = _twin(OpenFilm.clip)


def open(  # noqa: A001
    path: Path | str,
    *,
    subtitles: Path | str | None = None,
    settings: Settings | None = None,
    full_hash: bool = False,
) -> OpenFilm:
    """Open a film with the given settings, or else with the user's own."""
    settings = settings or config.load(method_names=registry.methods.names())
    film = open_film(Path(path), settings, subtitles=_path(subtitles), full_hash=full_hash)
    return OpenFilm(film, settings)


def _path(place: Path | str | None) -> Path | None:
    return Path(place) if place else None


def _with(settings: Settings, *, budget: BudgetSettings | None, verify: bool | None) -> Settings:
    if budget is not None:
        settings = replace(settings, budget=budget)
    if verify is not None:
        settings = replace(settings, answers=replace(settings.answers, verify=verify))
    return settings


def _advance(part: str, on_progress: OnProgress | None) -> Callable[[float], None]:
    """Report the progress of a part, and notice there whether the work was ended."""

    def advance(share: float) -> None:
        check_stop()
        if on_progress is not None:
            on_progress(part, share)

    return advance


@contextmanager
def _stoppable(stop: Stop | None) -> Iterator[Stop]:
    """Inside the block, ``stop`` ends the work."""
    with nested(stop) as flag:
        token = stopping.set(flag)
        try:
            flag.check()
            yield flag
        finally:
            stopping.reset(token)
