"""Sinks: pass events to a function, record them, count usage, or print them as lines of text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, TextIO

from longtake._util import on_one_line
from longtake._util.timecode import clock
from longtake.tracing.events import (
    CAPTIONS_READ,
    SIGNALS,
    STAGE,
    ChatCalled,
    Event,
    Failed,
    FramesSeen,
    Noted,
    RunStarted,
    ScoresSet,
    Sink,
    StepBegan,
    StepEnded,
    ToolCalled,
)
from longtake.tracing.trace import Trace
from longtake.types import Usage


class CallbackSink(Sink):
    """Calls a function with every event."""

    drafts = True

    def __init__(self, act: Callable[[Event], None]) -> None:
        self._act = act

    def handle(self, event: Event) -> None:
        """Pass the event to the function."""
        self._act(event)


class NoteSink(Sink):
    """Passes each note to a callback as one line of text."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say

    def handle(self, event: Event) -> None:
        """Pass on a note; other events are ignored."""
        if isinstance(event, Noted):
            label = event.label.replace("_", " ")
            data = ", ".join(f"{key} {value}" for key, value in event.data.items())
            self._say(f"{label}: {data}")


class Recorder(Sink):
    """Keeps every event, and optionally pictures, as a :class:`~longtake.tracing.trace.Trace`."""

    def __init__(self, *, pictures: bool = False) -> None:
        self._keep = pictures
        self._events: list[Event] = []
        self._pictures: dict[str, bytes] = {}

    @property
    def trace(self) -> Trace:
        """Everything recorded so far."""
        return Trace(tuple(self._events), dict(self._pictures))

    def handle(self, event: Event) -> None:
        """Keep one event."""
        self._events.append(event)

    def picture(self, digest: str, jpeg: Callable[[], bytes]) -> None:
        """Keep the picture, if pictures are kept."""
        if self._keep:
            self._pictures[digest] = jpeg()


class Meter(Sink):
    """Sums usage in total, by model and by prompt, and counts notes, moments and rounds."""

    def __init__(self) -> None:
        self.total = Usage()
        self.by_model: dict[str, Usage] = {}
        self.by_prompt: dict[str, Usage] = {}
        self.cached = 0
        """Number of replies that came from the reply cache."""
        self.notes: dict[str, int] = {}
        """Number of notes by label: ``retry``, ``asked_again``, ``default_taken``, …"""
        self.rounds = 1
        """Rounds of the method: the largest number that one of its steps has."""
        self.signals: Mapping[str, float] = {}
        """The signals of the answer, from which its probability is calculated."""
        self.stages: list[Mapping[str, Any]] = []
        """The votes and the usage of the stages of a composed method."""
        self._moments: set[float] = set()

    @property
    def moments(self) -> list[float]:
        """The times of the film that a model was shown, or whose captions it read."""
        return sorted(self._moments)

    @property
    def seen(self) -> int:
        """Distinct moments of the film that a model was shown, or whose captions it read."""
        return len(self._moments)

    def handle(self, event: Event) -> None:
        """Count one event."""
        # a failed call reports no usage
        if isinstance(event, ChatCalled) and event.error is None:
            model, prompt, usage = event.model, event.prompt, event.usage
            self.total += usage
            self.by_model[model] = self.by_model.get(model, Usage()) + usage
            self.by_prompt[prompt] = self.by_prompt.get(prompt, Usage()) + usage
            self.cached += event.cached
        elif isinstance(event, FramesSeen):
            self._moments.update(frame.time for frame in event.frames)
        elif isinstance(event, StepBegan):
            number = event.data.get("round", event.data.get("number", 0))
            self.rounds = max(self.rounds, number if isinstance(number, int) else 0)
        elif isinstance(event, Noted) and event.label == CAPTIONS_READ:
            self._moments.update(event.data["times"])
        elif isinstance(event, Noted):
            if event.label == SIGNALS:
                self.signals = event.data
            elif event.label == STAGE:
                self.stages.append(event.data)
            self.notes[event.label] = self.notes.get(event.label, 0) + 1


LEVELS = " ▁▂▃▄▅▆▇█"
COLUMNS = 48
"""Columns of a strip of bars."""
WIDTH = 110
"""Columns after which a line is truncated."""
MAX_TIMES = 8
"""Frame times listed in a line before the rest is only counted."""


def strip(values: tuple[float, ...]) -> str:
    """Draw values over the film as one line of bars; the highest value is a full bar."""
    if not values:
        return ""
    low, high = min(values), max(values)
    columns = min(COLUMNS, len(values))
    scale = (len(LEVELS) - 1) / (high - low) if high > low else 0.0
    edges = [i * len(values) // columns for i in range(columns + 1)]
    # a column shows its highest value, so that a short peak stays visible
    peaks = [max(values[begin:end]) for begin, end in pairwise(edges)]
    return "".join(LEVELS[round((peak - low) * scale)] for peak in peaks)


class ConsoleSink(Sink):
    """Writes a run to a text stream as an indented tree."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._depth: dict[int | None, int] = {None: 0}

    def handle(self, event: Event) -> None:
        """Write a line for one event, if it has one."""
        # the events inside a step are one level deeper than its own line
        if isinstance(event, StepBegan):
            self._depth[event.id] = self._depth.get(event.parent, 0) + 1
        line = _line(event)
        if line:
            indent = "│ " * self._depth.get(event.parent, 0)
            text = f"{indent}{on_one_line(line)}"
            if len(text) > WIDTH:
                text = text[: WIDTH - 1] + "…"
            self._out.write(text + "\n")
            self._out.flush()


def _line(event: Event) -> str:
    """Return the line for an event; an empty string if it is not shown."""
    match event:
        case RunStarted():
            asked = f" · asks for: {event.asks_for}" if event.asks_for else ""
            return f"{event.method} · {', '.join(_pairs(event.models))}{asked}"
        case StepBegan():
            return " ".join([f"┌ {event.name}", *_pairs(event.data)])
        case StepEnded():
            error = f" ({event.error})" if event.error else ""
            return f"└ {event.seconds:.1f} s{error}"
        case ChatCalled():
            return _call(event)
        case ToolCalled():
            arguments = ", ".join(_pairs(event.arguments))
            return f"· {event.name}({arguments}) → {event.error or event.result}"
        case FramesSeen():
            purpose = f" for {event.purpose}" if event.purpose else ""
            times = times_in_words([seen.time for seen in event.frames])
            return f"· looked at {times}{purpose}"
        case ScoresSet():
            return f"· ▕{strip(event.values)}▏ {event.label}"
        case Noted():
            return " ".join([f"· {event.label.replace('_', ' ')}", *_pairs(event.data)])
        case Failed():
            return f"failed: {event.error}: {event.message}"
        case _:
            return ""


def _call(event: ChatCalled) -> str:
    if event.error:
        return f"· {event.prompt or event.model} failed: {event.error}"
    if event.cached:
        cost = "from the reply cache"
    else:
        used = event.usage
        cost = f"{used.tokens_in}+{used.tokens_out} tokens, {used.seconds:.1f} s"
    return f"· {event.prompt or event.model} ({cost}) → {event.reply}"


def times_in_words(times: Sequence[float]) -> str:
    """The first times, and how many more there are."""
    shown = " ".join(f"[{clock(time)}]" for time in times[:MAX_TIMES])
    unlisted = len(times) - MAX_TIMES
    return f"{shown} and {unlisted} more" if unlisted > 0 else shown


def _pairs(values: Mapping[str, Any]) -> list[str]:
    return [f"{key}={value}" for key, value in values.items()]
