"""What a method does, as it does it: one indented line per event."""

from __future__ import annotations

from collections.abc import Callable
from typing import TextIO

from longtake.display import on_one_line
from longtake.events import (
    ChatCalled,
    Event,
    Failed,
    FramesSeen,
    Noted,
    RunStarted,
    ScoresSet,
    StepBegan,
    StepEnded,
    ToolCalled,
)
from longtake.timecode import clock

BLOCKS = " ▁▂▃▄▅▆▇█"
STRIP = 48
"""Columns of a strip of scores."""
WIDTH = 110
"""Columns after which a line is cut."""


def strip(values: tuple[float, ...], columns: int = STRIP) -> str:
    """Numbers over the film as a line of blocks, the highest full."""
    if not values:
        return ""
    low, high = min(values), max(values)
    columns = min(columns, len(values))
    peaks = [
        max(values[i * len(values) // columns : (i + 1) * len(values) // columns])
        for i in range(columns)
    ]
    scale = (len(BLOCKS) - 1) / (high - low) if high > low else 0.0
    return "".join(BLOCKS[round((peak - low) * scale)] for peak in peaks)


class ConsoleSink:
    """Writes the tree of a run to a stream, line by line."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._depth: dict[int | None, int] = {None: 0}

    def handle(self, event: Event) -> None:
        """Show one event, if it is worth a line."""
        if isinstance(event, StepBegan):
            self._depth[event.id] = self._depth.get(event.parent, 0) + 1
        line = _line(event)
        if line:
            indent = "│ " * self._depth.get(event.parent, 0)
            text = f"{indent}{on_one_line(line)}"
            self._out.write((text if len(text) <= WIDTH else text[: WIDTH - 1] + "…") + "\n")
            self._out.flush()

    def picture(self, digest: str, jpeg: Callable[[], bytes]) -> None:
        """Show none."""

    def close(self) -> None:
        """Nothing to finish."""


def _line(event: Event) -> str:
    match event:
        case RunStarted():
            return f"{event.method} · " + ", ".join(
                f"{role}={model}" for role, model in event.models.items()
            )
        case StepBegan():
            return f"┌ {event.name}" + "".join(
                f" {key}={value}" for key, value in event.data.items()
            )
        case StepEnded():
            return f"└ {event.seconds:.1f} s" + (f" ({event.error})" if event.error else "")
        case ChatCalled():
            return _call(event)
        case ToolCalled():
            arguments = ", ".join(f"{key}={value}" for key, value in event.arguments.items())
            return f"· {event.name}({arguments}) → {event.error or event.result}"
        case FramesSeen():
            times = " ".join(f"[{clock(seen.time)}]" for seen in event.frames[:8])
            more = f" and {len(event.frames) - 8} more" if len(event.frames) > 8 else ""
            return f"· looked at {times}{more}" + (f" for {event.purpose}" if event.purpose else "")
        case ScoresSet():
            return f"· ▕{strip(event.values)}▏ {event.label}"
        case Noted():
            return f"· {event.label.replace('_', ' ')}" + "".join(
                f" {k}={v}" for k, v in event.data.items()
            )
        case Failed():
            return f"failed: {event.error}: {event.message}"
        case _:
            return ""


def _call(event: ChatCalled) -> str:
    if event.error:
        return f"· {event.prompt or event.model} failed: {event.error}"
    used = event.usage
    cost = (
        "from the reply cache"
        if event.cached
        else f"{used.tokens_in}+{used.tokens_out} tokens, {used.seconds:.1f} s"
    )
    return f"· {event.prompt or event.model} ({cost}) → {event.reply}"
