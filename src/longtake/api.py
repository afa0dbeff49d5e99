"""The Python API: films to ask, as functions, streams of events and coroutines.

Streams and coroutines work in another thread. Leaving the loop early, cancelling the task, or
setting a :class:`~longtake._util.cancellation.Stop` ends the work, including calls in flight.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import queue
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Concatenate, Literal, ParamSpec, TypeAlias, TypeVar

from pydantic import BaseModel

from longtake import config, registry
from longtake._util.cancellation import Ended, Stop, check_stop, in_background, stopping
from longtake.config import BudgetSettings, Settings
from longtake.errors import unknown
from longtake.index.film import Film
from longtake.index.search import SearchResult, search, stretch_of
from longtake.index.tasks import TASKS, speech_task, tasks
from longtake.runner.assignment import ModelAssignment
from longtake.runner.extraction import FilmTable, extract
from longtake.runner.films import open_film
from longtake.runner.session import Session
from longtake.runner.table_schema import read_schema
from longtake.tracing.events import Event, Sink
from longtake.tracing.sinks import CallbackSink
from longtake.types import Line, Question, QuestionKind, Result, Segment
from longtake.video.clip import clip_bytes
from longtake.video.pictures import encoded
from longtake.video.remote import film_path

R = TypeVar("R")


def stream(ask: Callable[[Sink], Result], *, stop: Stop | None = None) -> Iterator[Event | Result]:
    """Yield the events of ``ask`` as they happen, then its result.

    ``ask`` gets the sink that receives the events. Closing the iterator ends the work.
    """
    items: queue.SimpleQueue[Event | Ended] = queue.SimpleQueue()
    with nested(stop) as inner:
        worker = in_background(lambda: ask(CallbackSink(items.put)), inner, items.put)
        try:
            while True:
                item = items.get()
                if isinstance(item, Ended):
                    yield item.value()
                    return
                yield item
        finally:
            # also when the caller leaves the loop, or presses Ctrl-C while waiting
            inner.set()
            # the work usually ends within a second; do not wait for longer than two
            worker.join(2.0)


async def in_thread(act: Callable[[], R]) -> R:
    """Await the result of ``act``; cancelling the task ends the work."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Ended] = loop.create_future()

    def settle(ended: Ended) -> None:
        if not future.done():
            future.set_result(ended)

    with nested(None) as stop:
        in_background(act, stop, _across(loop, settle))
        try:
            return (await future).value()  # type: ignore[no-any-return]
        finally:
            stop.set()


async def in_thread_each(items: Callable[[], Iterator[R]]) -> AsyncIterator[R]:
    """Iterate in a thread; leaving the loop or cancelling the task ends the work."""
    arrived: asyncio.Queue[R | Ended] = asyncio.Queue()
    put = _across(asyncio.get_running_loop(), arrived.put_nowait)

    def pump() -> None:
        for item in items():
            put(item)

    with nested(None) as stop:
        in_background(pump, stop, put)
        try:
            while True:
                item = await arrived.get()
                if isinstance(item, Ended):
                    item.value()
                    return
                yield item
        finally:
            stop.set()


@contextmanager
def nested(stop: Stop | None) -> Iterator[Stop]:
    """A flag for nested work, which the surrounding work's flag and ``stop`` set as well."""
    flag = Stop(stopping.get(), stop)
    try:
        yield flag
    finally:
        flag.release()


def _across(loop: asyncio.AbstractEventLoop, act: Callable[[Any], None]) -> Callable[[Any], None]:
    """Call ``act`` in the loop's thread, unless the loop has been closed meanwhile."""

    def call(item: Any) -> None:
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(act, item)

    return call


P = ParamSpec("P")
F = TypeVar("F", bound=Callable[..., Any])
OnEvent: TypeAlias = Callable[[Event], None]
OnProgress: TypeAlias = Callable[[str, float], None]
"""Called with the part that is being indexed and the fraction of it that is done, 0 to 1."""


@dataclass(frozen=True)
class Still:
    """A frame as an image file, with the time at which it appears."""

    time: float
    data: bytes
    media_type: str


def _result_of(
    stream: Callable[Concatenate[OpenFilm, P], Iterator[Event | Result]],
) -> Callable[Concatenate[OpenFilm, P], Result]:
    """The method ``ask``: it takes the parameters of ``stream`` and returns its last item."""

    def ask(self: OpenFilm, /, *args: P.args, **kwargs: P.kwargs) -> Result:
        """Ask a question; returns the result. Arguments are those of :meth:`stream`."""
        *_, result = stream(self, *args, **kwargs)
        assert isinstance(result, Result)
        return result

    return _shown_as(ask, stream, "Result")


def _shown_as(function: F, like: Callable[..., Any], returns: str) -> F:
    """Let help() and inspect show the parameters of another function, and another result."""
    signature = inspect.signature(like).replace(return_annotation=returns)
    function.__signature__ = signature  # type: ignore[attr-defined]
    return function


class OpenFilm:
    """A film to ask questions about. Data derived from it are kept in the user's cache.

    Methods may be called from several threads at once. With ``stop``, another thread can end the
    work: after ``stop.set()``, a question returns its best answer so far with the status
    ``cancelled``, and other methods raise :class:`longtake.Cancelled`.
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
        kind: QuestionKind | None = None,
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

        Leaving the loop ends the run. ``Drafted`` events show the answer while it is written,
        before it is checked; they are not part of the result's trace. Further keywords set fields
        of the method, such as ``max_rounds=2``.

        Parameters
        ----------
        question, options
            Without options the question is open-ended.
        kind
            The kind of question, as for ``--as``; by default, it depends on the words.
        model, team
            As for ``--model`` and ``--team``; by default, the configured or the built-in models.
        budget
            Limits for this question instead of those in the settings.
        prompts
            A folder of prompts that replace shipped ones.
        offline
            Refuse models that are not on this machine.
        cache
            Reuse earlier replies.
        verify
            Check the answer against the film; ``None``: as in the settings.
        pictures
            Keep the frames shown to models in the result's trace.
        sinks, on_event
            Objects, or a function, that receive every event.
        stop
            Ends the run within a second when set, with the best answer so far.
        """
        session = _session(self.settings, budget, model, offline, cache, verify, team)
        session = replace(session, seed=seed, prompts=_path(prompts))
        method = method or session.assignment.default_method
        session = session.with_fields(method, fields)
        wanted = Question(question, tuple(options), kind)
        all_sinks = [*sinks, CallbackSink(on_event)] if on_event is not None else list(sinks)

        def ask(passing: Sink) -> Result:
            sinks = (*all_sinks, passing)
            return session.ask(self.film, wanted, method, sinks=sinks, pictures=pictures)

        return stream(ask, stop=stop)

    ask = _result_of(stream)

    def extract(
        self,
        /,
        schema: Mapping[str, Any] | type[BaseModel],
        *,
        method: str | None = None,
        model: str | Sequence[str] = (),
        budget: BudgetSettings | None = None,
        offline: bool = False,
        cache: bool = True,
        stop: Stop | None = None,
    ) -> FilmTable:
        """Extract a table: every cell is a value with its citation, or null.

        ``schema`` is a JSON Schema or a class of pydantic that describes an object, or a list of
        objects. The budget is for all cells; the other parameters are those of :meth:`stream`.
        """
        session = _session(self.settings, budget, model, offline, cache)
        with _stoppable(stop) as flag, session.under_way():
            return extract(self.film, read_schema(schema), session, method, stop=flag)

    def search(
        self,
        /,
        text: str,
        *,
        within: Segment | None = None,
        top: int = 10,
        by: str = "",
        on_progress: OnProgress | None = None,
        stop: Stop | None = None,
    ) -> SearchResult:
        """Find the moments that match a text best; the film is indexed first if necessary.

        The result is a sequence of hits, best first. With ``by``, only lines of that speaker are
        searched.
        """
        with _stoppable(stop):
            pictures = self.film.pictures
            pictures.build(pictures.layers(), _advance("frames", on_progress))
            speech_task(self.film, within).build(_advance("speech", on_progress))
            return search(self.film, text, within=within, top=top, by=by)

    def transcript(
        self,
        /,
        *,
        within: Segment | None = None,
        on_progress: OnProgress | None = None,
        stop: Stop | None = None,
    ) -> list[Line]:
        """What is said, from subtitles if there are any; else speech is recognised first."""
        with _stoppable(stop):
            speech_task(self.film, within).build(_advance("speech", on_progress))
            return self.film.speech(within)

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
            return clip_bytes([(self.film.video, stretch_of(self.film, Segment(start, end)))])

    def __repr__(self) -> str:
        return f"OpenFilm({str(self.film.path)!r})"


def _twin(
    method: Callable[Concatenate[OpenFilm, P], R],
) -> Callable[Concatenate[AsyncFilm, P], Coroutine[Any, Any, R]]:
    """The coroutine that runs a method of a film in a thread."""

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

    return _shown_as(call, method, "AsyncIterator[Event | Result]")


class AsyncFilm:
    """The methods of :class:`OpenFilm` as coroutines; cancelling a task ends its work."""

    def __init__(self, film: OpenFilm) -> None:
        self.film = film

    ask = _twin(OpenFilm.ask)
    stream = _stream_twin(OpenFilm.stream)
    extract = _twin(OpenFilm.extract)
    search = _twin(OpenFilm.search)
    transcript = _twin(OpenFilm.transcript)
    index = _twin(OpenFilm.index)
    frames = _twin(OpenFilm.frames)
    clip = _twin(OpenFilm.clip)


def open(  # noqa: A001
    path: Path | str, *, subtitles: Path | str | None = None, settings: Settings | None = None
) -> OpenFilm:
    """Open a film with the given settings, or else with the user's own."""
    settings = settings or config.load(method_names=registry.methods.names())
    film = open_film(film_path(path), settings, subtitles=_path(subtitles))
    return OpenFilm(film, settings)


def _path(place: Path | str | None) -> Path | None:
    return Path(place) if place else None


def _session(
    settings: Settings,
    budget: BudgetSettings | None,
    model: str | Sequence[str],
    offline: bool,
    cache: bool,
    verify: bool | None = None,
    team: Path | str | None = None,
) -> Session:
    settings = replace(settings, budget=budget or settings.budget)
    if verify is not None:
        settings = replace(settings, answers=replace(settings.answers, verify=verify))
    # a string is a sequence as well
    models = (model,) if isinstance(model, str) else tuple(model)
    assignment = ModelAssignment(models, _path(team), offline, replies=cache)
    return Session(settings, assignment.by_default(settings))


def _advance(part: str, on_progress: OnProgress | None) -> Callable[[float], None]:
    """Report the progress of a part; raise there if the work was ended."""

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
