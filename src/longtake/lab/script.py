"""What happens in a film, second by second.

Questions are generated from a script, and simulated models look it up to see a picture.
"""

from __future__ import annotations

import bisect
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from longtake.lab.facts import Deed, Fact, Happening, Person, Presence, Saying, Sign
from longtake.types import Line, Segment


@dataclass(frozen=True)
class Appearance:
    """How a scene is drawn; none of it is a fact that can be asked about."""

    palette: int
    """Index of the tint of the light, shared by an episode."""
    motion: str
    variant: int
    """Seed of background details that carry no information."""


@dataclass(frozen=True)
class Scene:
    """A stretch of the film at one place."""

    start: int
    end: int
    episode: int
    place: str
    look: Appearance
    people: tuple[Person, ...]
    deeds: tuple[Happening, ...]
    signs: tuple[Happening, ...]


@dataclass(frozen=True)
class Spoken:
    """A line of the narrator; ``fact`` is ``None`` for small talk."""

    start: int
    end: int
    text: str
    fact: Saying | None


@dataclass(frozen=True)
class Script:
    """The full content of a film. The same seed and length give the same script, byte for byte."""

    seed: int
    minutes: int
    theme: str
    cast: tuple[Person, ...]
    scenes: tuple[Scene, ...]
    spoken: tuple[Spoken, ...]

    @property
    def name(self) -> str:
        """The name of the world."""
        return f"world-{self.seed}-{self.minutes}"

    @property
    def duration(self) -> float:
        """Length in seconds."""
        return float(self.minutes * 60)

    @cached_property
    def deeds(self) -> tuple[Happening, ...]:
        """All deeds in order; no two overlap."""
        return tuple(deed for scene in self.scenes for deed in scene.deeds)

    @cached_property
    def signs(self) -> tuple[Happening, ...]:
        """All signs in order."""
        return tuple(sign for scene in self.scenes for sign in scene.signs)

    @cached_property
    def sayings(self) -> tuple[Happening, ...]:
        """All spoken lines that state a fact."""
        return tuple(
            Happening(line.start, line.end, line.fact) for line in self.spoken if line.fact
        )

    @cached_property
    def episodes(self) -> tuple[Segment, ...]:
        """The episodes as segments of the film."""
        bounds: dict[int, tuple[int, int]] = {}
        for scene in self.scenes:
            start, _ = bounds.get(scene.episode, (scene.start, 0))
            bounds[scene.episode] = (start, scene.end)
        return tuple(Segment(float(start), float(end)) for start, end in bounds.values())

    @cached_property
    def _starts(self) -> list[int]:
        return [scene.start for scene in self.scenes]

    def scene_at(self, second: float) -> Scene:
        """The scene on screen at a given second."""
        number = bisect.bisect_right(self._starts, second) - 1
        return self.scenes[max(0, number)]

    def visible(self, second: int) -> list[Fact]:
        """Everything visible at a second: deeds, signs, idle people, and the place."""
        scene = self.scene_at(second)
        deeds = [deed.fact for deed in scene.deeds if deed.start <= second < deed.end]
        busy = {fact.person for fact in deeds if isinstance(fact, Deed)}
        idle = [Presence(person, scene.place) for person in scene.people if person not in busy]
        signs = [sign.fact for sign in scene.signs if sign.start <= second < sign.end]
        return [*deeds, *signs, *idle, Presence(None, scene.place)]

    def subtitles(self) -> list[Line]:
        """The spoken lines, as a subtitle file holds them."""
        return [Line(_segment(line), line.text) for line in self.spoken]

    def readings(self) -> list[Line]:
        """The text on signs, with its times."""
        lines = []
        for sign in self.signs:
            if isinstance(sign.fact, Sign) and sign.fact.text:
                lines.append(Line(_segment(sign), sign.fact.text))
        return lines

    def to_json(self) -> str:
        """The script as the text of ``script.json``."""
        return dump({"schema": 1, "duration": self.duration, **asdict(self)})


def _segment(timed: Spoken | Happening) -> Segment:
    return Segment(float(timed.start), float(timed.end))


def dump(data: Mapping[str, Any] | list[Any]) -> str:
    """JSON text that is byte-identical for equal data."""
    return json.dumps(data, sort_keys=True, indent=1, ensure_ascii=False) + "\n"
