"""What perception tells of a picture, for models that read instead of seeing."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from longtake.errors import unknown
from longtake.models.chat import Unavailable
from longtake.stopping import check_stop
from longtake.types import Frame

CHANNELS = ("tags", "onscreen", "speech")
"""Things in the picture, text in the picture, words spoken around it."""
LIMITS = (80, 160, 160)
"""Characters per channel, so that 32 described pictures fit into a context of 8192 tokens."""


@dataclass(frozen=True, slots=True)
class Description:
    """What perception recognises at one moment."""

    tags: tuple[str, ...] = ()
    onscreen: tuple[str, ...] = ()
    speech: tuple[str, ...] = ()

    def texts(self) -> dict[str, str]:
        """Each channel as one line."""
        return {
            "tags": ", ".join(self.tags),
            "onscreen": " | ".join(self.onscreen),
            "speech": " ".join(self.speech),
        }


class Witness(Protocol):
    """Perceives moments of a film. The film's store keeps results, so asking twice is cheap."""

    @property
    def revision(self) -> str:
        """Changes whenever a picture would be described differently; part of the cache key."""

    def describe(self, frame: Frame, channels: Sequence[str]) -> Description:
        """Return what these channels hold at the frame's time."""


class TimeLeft:
    """The rest of a call's time, checked before each picture because describing one is slow."""

    def __init__(self, model: str, deadline: float | None) -> None:
        self._model = model
        self._end = None if deadline is None else time.monotonic() + deadline

    def check(self) -> float | None:
        """Return the seconds left, or ``None`` without a deadline; raise when the time is up."""
        check_stop()
        if self._end is None:
            return None
        left = self._end - time.monotonic()
        if left <= 0:
            raise Unavailable(
                self._model, "the time was up while pictures were being described", out_of_time=True
            )
        return left


def check_channels(channels: Sequence[str]) -> tuple[str, ...]:
    """Return the channels to perceive, all of them by default; unknown names are rejected."""
    for channel in channels:
        if channel not in CHANNELS:
            raise unknown("channel", channel, CHANNELS)
    return tuple(channels) or CHANNELS


def shorten(text: str, limit: int) -> str:
    """Cut the middle out of a text longer than ``limit`` characters; line breaks become spaces."""
    flat = " ".join(text.split())
    if len(flat) <= limit:
        return flat
    # the beginning and the end of a text say more than its middle
    half = (limit - 3) // 2
    return f"{flat[:half]} … {flat[-half:]}"
