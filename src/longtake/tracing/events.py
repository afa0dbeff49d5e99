"""Trace records: one stream of events feeds the console, the trace file, the meter and the page.

Code inside ``with stream.active():`` can call :func:`emit`, :func:`step` and :func:`note` without
a reference to the stream. It travels in a context variable, which ``fanout`` carries into its
threads. Without an active stream, emitting does nothing. A sink that fails is dropped with
a warning: displaying a run must never end it.
"""

from __future__ import annotations

import itertools
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

from longtake.types import Answer, QuestionKind, Segment, Usage


@dataclass(frozen=True, kw_only=True)
class _Base:
    id: int = 0
    parent: int | None = None
    """The id of the enclosing step."""
    time: float = 0.0
    """Seconds since the stream started."""


@dataclass(frozen=True, kw_only=True)
class RunStarted(_Base):
    """A method was asked a question."""

    kind: Literal["run_started"] = "run_started"
    method: str
    """Its registered name, or its import path."""
    question: str
    options: tuple[str, ...] = ()
    film: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)
    models: Mapping[str, str] = field(default_factory=dict)
    cards: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The card of each model; a replay needs it to recognise the model's requests."""
    seed: int = 0
    budget: Mapping[str, float] = field(default_factory=dict)
    """The limits that were set. Older traces lack this field and those below."""
    prompts: Mapping[str, str] = field(default_factory=dict)
    """Texts of the prompts that replaced the shipped ones."""
    subtitles: str = ""
    """The subtitle file that was given, or an empty string."""
    wording: str = ""
    """Hash of the shipped prompts; a rerun under other prompts matches its requests loosely."""
    verify: bool = False
    """Whether the answer was checked against the film."""
    asks_for: QuestionKind | None = None
    """The kind of the question, recognised or given."""


CAPTIONS_READ = "captions_read"
"""Label of the note that frames were read as captions instead of being shown."""


PASSAGES_FOUND = "passages_found"
"""Label of the note of passages that a model is about to read, with their times and words."""


SIGNALS, STAGE = "signals", "stage"
"""Labels of the notes that a calibration is fitted from: signals of an answer, and of a stage."""


@dataclass(frozen=True, kw_only=True)
class StepBegan(_Base):
    """A named part of the work began; events inside it have its id as their parent."""

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
    """A model was called and replied, or failed for good."""

    kind: Literal["chat_called"] = "chat_called"
    model: str
    prompt: str = ""
    """Name of the prompt, such as ``videoagent/predict``."""
    request: str = ""
    """Hash of the whole request including images; replays look up the reply by it."""
    messages: tuple[Mapping[str, Any], ...] = ()
    """The messages sent, with pictures replaced by their digests."""
    reply: str = ""
    thinking: str = ""
    tools: tuple[Mapping[str, Any], ...] = ()
    """Tool calls in the reply."""
    finish: Literal["stop", "length", "tool_calls", "other"] = "stop"
    """Why the reply ended; older traces do not record it."""
    usage: Usage = field(default_factory=Usage)
    cached: bool = False
    """True if the reply came from the reply cache, at no cost."""
    odds: Mapping[str, float] = field(default_factory=dict)
    """Probability of each letter, if letters were asked for; older traces lack this."""
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
    """A frame that was looked at: its time, and the digest under which the picture is stored."""

    time: float
    digest: str


@dataclass(frozen=True, kw_only=True)
class FramesSeen(_Base):
    """Frames of the film were looked at."""

    kind: Literal["frames_seen"] = "frames_seen"
    purpose: str = ""
    frames: tuple[Seen, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ScoresSet(_Base):
    """A number was set for each of some segments: similarity, share, relevance, belief."""

    kind: Literal["scores_set"] = "scores_set"
    label: str
    segments: tuple[Segment, ...] = ()
    values: tuple[float, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Noted(_Base):
    """Something worth knowing happened, such as a repaired reply or a default that was used."""

    kind: Literal["noted"] = "noted"
    label: str
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Drafted(_Base):
    """A model wrote more of an answer that is not checked yet.

    Only sinks that show drafts receive it, and without one of them nothing is drafted.
    """

    kind: Literal["drafted"] = "drafted"
    text: str
    """What it wrote since the last of these events."""
    anew: bool = False
    """Whether the text replaces all that was drafted before."""


@dataclass(frozen=True, kw_only=True)
class Answered(_Base):
    """The run ended with an answer, which may be an abstention."""

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
    | Drafted
    | Answered
    | Failed
)

E = TypeVar("E", bound=_Base)


class Sink(Protocol):
    """Receives events as they happen, from any thread but one at a time.

    A sink that inherits from this class ignores pictures and has nothing to close.
    """

    drafts: bool = False
    """Whether it shows answers while they are written."""

    def handle(self, event: Event) -> None:
        """Receive one event."""

    def picture(self, digest: str, jpeg: Callable[[], bytes]) -> None:  # noqa: ARG002
        """Receive a picture, once per digest; calling ``jpeg`` encodes it."""
        return

    def close(self) -> None:
        """Finish; no more events will come."""
        return


class Stream:
    """Stamps events with id, parent and time, and passes them to every sink in the same order."""

    def __init__(self, *sinks: Sink, clock: Callable[[], float] = time.monotonic) -> None:
        self._sinks = list(sinks)
        self.drafts = any(map(_drafts, sinks))
        """Whether a sink shows answers while they are written."""
        self._clock = clock
        self._began = clock()
        self._ids = itertools.count(1)
        # reentrant: a sink may itself emit while it handles an event
        self._lock = threading.RLock()
        self._pictures: set[str] = set()
        self._noted: set[str] = set()

    def emit(self, event: E) -> E:
        """Stamp an event, pass it to the sinks, and return the stamped event."""
        with self._lock:
            stamped = replace(
                event,
                id=next(self._ids),
                parent=_parent.get(),
                time=round(self._clock() - self._began, 4),
            )
            every = not isinstance(stamped, Drafted)
            self._each(lambda sink: sink.handle(stamped) if every or _drafts(sink) else None)  # type: ignore[arg-type]
        return stamped

    def picture(self, digest: str, jpeg: Callable[[], bytes]) -> None:
        """Pass a picture to the sinks, unless one with this digest was passed before."""
        with self._lock:
            if digest not in self._pictures:
                self._pictures.add(digest)
                self._each(lambda sink: sink.picture(digest, jpeg))

    def first(self, label: str, data: Mapping[str, Any]) -> bool:
        """Return whether this note is new to the stream, and remember it."""
        key = f"{label} {data}"
        with self._lock:
            new = key not in self._noted
            self._noted.add(key)
        return new

    def close(self) -> None:
        """Close every sink."""
        with self._lock:
            self._each(lambda sink: sink.close())
            self._sinks.clear()

    @contextmanager
    def active(self) -> Iterator[Stream]:
        """Make this the stream that :func:`emit` writes to."""
        stream_token, parent_token = _stream.set(self), _parent.set(None)
        try:
            yield self
        finally:
            _stream.reset(stream_token)
            _parent.reset(parent_token)

    def _each(self, act: Callable[[Sink], None]) -> None:
        for sink in list(self._sinks):  # a copy, because a failing sink is removed
            try:
                act(sink)
            except Exception as error:  # noqa: BLE001 - a sink must not end the run
                self._sinks.remove(sink)
                message = f"{type(sink).__name__} was dropped: {error}"
                warnings.warn(message, RuntimeWarning, stacklevel=4)


def _drafts(sink: Sink) -> bool:
    # sinks of other packages may lack the attribute
    return getattr(sink, "drafts", False)


_stream: ContextVar[Stream | None] = ContextVar("longtake_stream", default=None)
_parent: ContextVar[int | None] = ContextVar("longtake_step", default=None)


def emit(event: E) -> E:
    """Send an event to the active stream, if there is one."""
    stream = _stream.get()
    return stream.emit(event) if stream is not None else event


def shows_drafts() -> bool:
    """Whether a sink of the active stream shows answers while they are written."""
    stream = _stream.get()
    return stream is not None and stream.drafts


def picture(digest: str, jpeg: Callable[[], bytes]) -> None:
    """Send a picture to the active stream, if there is one."""
    stream = _stream.get()
    if stream is not None:
        stream.picture(digest, jpeg)


def note(label: str, **data: Any) -> None:
    """Emit a :class:`Noted` event."""
    emit(Noted(label=label, data=data))


def note_scores(label: str, segments: Iterable[Segment], values: Iterable[float]) -> None:
    """Emit a :class:`ScoresSet` event, with values rounded to four places."""
    rounded = tuple(round(float(value), 4) for value in values)
    emit(ScoresSet(label=label, segments=tuple(segments), values=rounded))


def note_once(label: str, **data: Any) -> None:
    """Emit a :class:`Noted` event unless the active stream already has the same one."""
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
    except BaseException as raised:  # KeyboardInterrupt ends a step too
        error = type(raised).__name__
        raise
    finally:
        _parent.reset(token)
        seconds = round(stream._clock() - stream._began - began.time, 4)
        stream.emit(StepEnded(step=began.id, seconds=seconds, error=error))
