"""What happens in a film, second by second: the truth that questions are made from and models see through."""

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
class Look:
    """How a scene is drawn."""

    palette: int
    """Number of the tint of the light, shared by an episode."""
    motion: str
    variant: int
    """Chance for details that mean nothing."""


@dataclass(frozen=True)
class Scene:
    """One place for a while."""

    start: int
    end: int
    episode: int
    place: str
    look: Look
    people: tuple[Person, ...]
    deeds: tuple[Happening, ...]
    signs: tuple[Happening, ...]


@dataclass(frozen=True)
class Spoken:
    """A line of the narrator; small talk states nothing."""

    start: int
    end: int
    text: str
    fact: Saying | None


@dataclass(frozen=True)
class Script:
    """A whole film. The same seed and length give the same script, byte for byte."""

    seed: int
    minutes: int
    theme: str
    cast: tuple[Person, ...]
    scenes: tuple[Scene, ...]
    spoken: tuple[Spoken, ...]

    @property
    def name(self) -> str:
        """What the world is called."""
        return f"world-{self.seed}-{self.minutes}"

    @property
    def duration(self) -> float:
        """Seconds."""
        return float(self.minutes * 60)

    @cached_property
    def deeds(self) -> tuple[Happening, ...]:
        """All deeds in order; no two are ever under way at once."""
        return tuple(deed for scene in self.scenes for deed in scene.deeds)

    @cached_property
    def signs(self) -> tuple[Happening, ...]:
        """All signs in order."""
        return tuple(sign for scene in self.scenes for sign in scene.signs)

    @cached_property
    def sayings(self) -> tuple[Happening, ...]:
        """All spoken lines that state something."""
        return tuple(
            Happening(line.start, line.end, line.fact) for line in self.spoken if line.fact
        )

    @cached_property
    def episodes(self) -> tuple[Segment, ...]:
        """The episodes as stretches of film."""
        bounds: dict[int, tuple[int, int]] = {}
        for scene in self.scenes:
            start, _ = bounds.get(scene.episode, (scene.start, 0))
            bounds[scene.episode] = (start, scene.end)
        return tuple(Segment(float(a), float(b)) for a, b in bounds.values())

    @cached_property
    def _starts(self) -> list[int]:
        return [scene.start for scene in self.scenes]

    def scene_at(self, second: float) -> Scene:
        """The scene on screen."""
        return self.scenes[max(0, bisect.bisect_right(self._starts, second) - 1)]

    def visible(self, second: int) -> list[Fact]:
        """What a perfect eye sees: deeds, signs, the people who do nothing, and the place."""
        scene = self.scene_at(second)
        deeds = [h.fact for h in scene.deeds if h.start <= second < h.end]
        busy = {fact.person for fact in deeds if isinstance(fact, Deed)}
        idle: list[Fact] = [
            Presence(person, scene.place) for person in scene.people if person not in busy
        ]
        signs = [h.fact for h in scene.signs if h.start <= second < h.end]
        return [*deeds, *signs, *idle, Presence(None, scene.place)]

    def subtitles(self) -> list[Line]:
        """What is said, as a side-car file has it."""
        return [
            Line(Segment(float(line.start), float(line.end)), line.text) for line in self.spoken
        ]

    def readings(self) -> list[Line]:
        """What can be read on screen, with its times."""
        return [
            Line(Segment(float(sign.start), float(sign.end)), sign.fact.text)
            for sign in self.signs
            if isinstance(sign.fact, Sign) and sign.fact.text
        ]

    def to_json(self) -> str:
        """The script as a file."""
        return dump({"schema": 1, "duration": self.duration, **asdict(self)})


def dump(data: Mapping[str, Any] | list[Any]) -> str:
    """JSON that is the same byte for byte for the same data."""
    return json.dumps(data, sort_keys=True, indent=1, ensure_ascii=False) + "\n"
