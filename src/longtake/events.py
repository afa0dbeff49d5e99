"""One stream of events feeds console, trace file, meter and plots.

Whatever happens inside ``with stream.active():`` may call :func:`emit`, :func:`step` and :func:`note`
without being handed the stream; it travels in a context variable, which ``agents.fanout`` carries into
its threads. With no stream active, emitting does nothing. A sink that fails is dropped with a warning:
showing a run must never end it.
"""

from __future__ import annotations

import itertools
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

from longtake.types import Answer, Segment, Usage


@dataclass(frozen=True, kw_only=True)
class _Base:
    id: int = 0
    parent: int | None = None
    """The step inside which this happened."""
    time: float = 0.0
    """Seconds since the stream began."""


@dataclass(frozen=True, kw_only=True)
class RunStarted(_Base):
    """A question was put to a method."""

    kind: Literal["run_started"] = "run_started"
    method: str
    """The name that finds it again, or its address."""
    question: str
    options: tuple[str, ...] = ()
    film: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)
    models: Mapping[str, str] = field(default_factory=dict)
    cards: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What is known of each model, so that its requests can be recognised when the run is repeated."""
    seed: int = 0
    budget: Mapping[str, float] = field(default_factory=dict)
    """The limits that were set; this and what follows traces from before do not hold."""
    prompts: Mapping[str, str] = field(default_factory=dict)
    """Texts of the prompts that stood in for ours."""
    subtitles: str = ""
    """The subtitle file that was given; empty: none was."""
    wording: str = ""
    """Hash of the shipped prompts; a rerun under other prompts matches its requests loosely."""


@dataclass(frozen=True, kw_only=True)
class StepBegan(_Base):
    """A named part of the work began; events inside carry its id as their parent."""

    kind: Literal["step_began"] = "step_began"
    name: str
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class StepEnded(_Base):
    """The step with id ``step`` ended."""

    kind: Literal["step_ended"] = "step_ended"
    step: int
    seconds: float
    error: str | None = None


@dataclass(frozen=True, kw_only=True)
class ChatCalled(_Base):
    """A model was asked and answered, or failed for good."""

    kind: Literal["chat_called"] = "chat_called"
    model: str
    prompt: str = ""
    """Name of the prompt, ``videoagent/predict``."""
    request: str = ""
    """Hash of the whole request, images included; replays find their reply by it."""
    messages: tuple[Mapping[str, Any], ...] = ()
    """What was sent, pictures by digest."""
    reply: str = ""
    thinking: str = ""
    tools: tuple[Mapping[str, Any], ...] = ()
    """Tool calls in the reply."""
    finish: Literal["stop", "length", "tool_calls", "other"] = "stop"
    """Why the reply ended; older traces do not record it."""
    usage: Usage = field(default_factory=Usage)
    cached: bool = False
    """Served from the reply cache, at no cost."""
    error: str | None = None


@dataclass(frozen=True, kw_only=True)
class ToolCalled(_Base):
    """An agent used a tool."""

    kind: Literal["tool_called"] = "tool_called"
    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    result: str = ""
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Seen:
    """A picture that was looked at: its moment, and the digest under which it is stored once."""

    time: float
    digest: str


@dataclass(frozen=True, kw_only=True)
class FramesSeen(_Base):
    """Frames were taken out of the film for a purpose."""

    kind: Literal["frames_seen"] = "frames_seen"
    purpose: str = ""
    frames: tuple[Seen, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ScoresSet(_Base):
    """A number per stretch of film: similarity, share, relevance, belief."""

    kind: Literal["scores_set"] = "scores_set"
    label: str
    segments: tuple[Segment, ...] = ()
    values: tuple[float, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Noted(_Base):
    """Something worth knowing, a repaired reply or a default taken among it."""

    kind: Literal["noted"] = "noted"
    label: str
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Answered(_Base):
    """The run ended with an answer, an abstention being one."""

    kind: Literal["answered"] = "answered"
    answer: Answer
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, kw_only=True)
class Failed(_Base):
    """The run ended without an answer."""

    kind: Literal["failed"] = "failed"
    error: str
    message: str


Event: TypeAlias = (
    RunStarted
    | StepBegan
    | StepEnded
    | ChatCalled
    | ToolCalled
    | FramesSeen
    | ScoresSet
    | Noted
    | Answered
    | Failed
)

E = TypeVar("E", bound=_Base)


class Sink(Protocol):
    """Takes events as they come, from any thread but one at a time."""

    def handle(self, event: Event) -> None:
        """Take one event."""

    def picture(self, digest: str, jpeg: Callable[[], bytes]) -> None:
        """Be offered a picture, once per digest; calling ``jpeg`` encodes it."""

    def close(self) -> None:
        """Finish: no more events come."""


class Stream:
    """Stamps events with id, parent and time, and hands them to its sinks in one order."""

    def __init__(self, *sinks: Sink, clock: Callable[[], float] = time.monotonic) -> None:
        self._sinks = list(sinks)
        self._clock = clock
        self._began = clock()
        self._ids = itertools.count(1)
        self._lock = threading.RLock()
        self._pictures: set[str] = set()
        self._noted: set[str] = set()

    def emit(self, event: E) -> E:
        """Stamp an event and pass it on; gives back the stamped one."""
        with self._lock:
            stamped = replace(
                event,
                id=next(self._ids),
                parent=_parent.get(),
                time=round(self._clock() - self._began, 4),
            )
            self._each(lambda sink: sink.handle(stamped))  # type: ignore[arg-type]
        return stamped

    def picture(self, digest: str, jpeg: Callable[[], bytes]) -> None:
        """Offer a picture to the sinks that keep pictures; the second time it is not offered again."""
        with self._lock:
            if digest not in self._pictures:
                self._pictures.add(digest)
                self._each(lambda sink: sink.picture(digest, jpeg))

    def first(self, label: str, data: Mapping[str, Any]) -> bool:
        """Whether this is asked for the first time."""
        said = f"{label} {data}"
        with self._lock:
            new = said not in self._noted
            self._noted.add(said)
        return new

    def close(self) -> None:
        """Close every sink."""
        with self._lock:
            self._each(lambda sink: sink.close())
            self._sinks.clear()

    @contextmanager
    def active(self) -> Iterator[Stream]:
        """Make this the stream that :func:`emit` reaches."""
        token, root = _stream.set(self), _parent.set(None)
        try:
            yield self
        finally:
            _stream.reset(token)
            _parent.reset(root)

    def _each(self, act: Callable[[Sink], None]) -> None:
        for sink in list(self._sinks):
            try:
                act(sink)
            except Exception as error:  # noqa: BLE001 - whatever a sink does must not end the run
                self._sinks.remove(sink)
                warnings.warn(
                    f"{type(sink).__name__} was dropped: {error}", RuntimeWarning, stacklevel=4
                )


_stream: ContextVar[Stream | None] = ContextVar("longtake_stream", default=None)
_parent: ContextVar[int | None] = ContextVar("longtake_step", default=None)


def emit(event: E) -> E:
    """Send an event to the active stream, if there is one."""
    stream = _stream.get()
    return event if stream is None else stream.emit(event)


def picture(digest: str, jpeg: Callable[[], bytes]) -> None:
    """Offer a picture to the active stream, if there is one."""
    stream = _stream.get()
    if stream is not None:
        stream.picture(digest, jpeg)


def note(label: str, **data: Any) -> None:
    """Emit :class:`Noted`."""
    emit(Noted(label=label, data=data))


def note_once(label: str, **data: Any) -> None:
    """Emit :class:`Noted` the first time that it says this in the active stream."""
    stream = _stream.get()
    if stream is not None and stream.first(label, data):
        note(label, **data)


@contextmanager
def step(name: str, **data: Any) -> Iterator[None]:
    """Group the events of the ``with`` block under one step."""
    stream = _stream.get()
    if stream is None:
        yield
        return
    began = stream.emit(StepBegan(name=name, data=data))
    token = _parent.set(began.id)
    error: str | None = None
    try:
        yield
    except BaseException as raised:
        error = type(raised).__name__
        raise
    finally:
        _parent.reset(token)
        seconds = round(stream._clock() - stream._began - began.time, 4)
        stream.emit(StepEnded(step=began.id, seconds=seconds, error=error))
