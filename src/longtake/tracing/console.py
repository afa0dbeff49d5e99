"""Shows a run as it happens: one indented line per event."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, TextIO

from longtake._util import on_one_line
from longtake._util.timecode import clock
from longtake.tracing.events import (
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

LEVELS = " ▁▂▃▄▅▆▇█"
WIDTH = 110
"""Columns after which a line is truncated."""
MOST_TIMES = 8
"""Frame times listed in a line before the rest is only counted."""


def strip(values: tuple[float, ...], columns: int = 48) -> str:
    """Draw values over the film as one line of bars; the highest value is a full bar."""
    if not values:
        return ""
    low, high = min(values), max(values)
    columns = min(columns, len(values))
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
            return f"{event.method} · {', '.join(_pairs(event.models))}"
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
            return _frames(event)
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


def _frames(event: FramesSeen) -> str:
    times = " ".join(f"[{clock(seen.time)}]" for seen in event.frames[:MOST_TIMES])
    unlisted = len(event.frames) - MOST_TIMES
    more = f" and {unlisted} more" if unlisted > 0 else ""
    purpose = f" for {event.purpose}" if event.purpose else ""
    return f"· looked at {times}{more}{purpose}"


def _pairs(values: Mapping[str, Any]) -> list[str]:
    return [f"{key}={value}" for key, value in values.items()]
