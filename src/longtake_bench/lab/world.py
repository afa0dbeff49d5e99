"""What happens in a film, second by second.

Questions are generated from a script, and simulated models look it up to see a picture.
"""

from __future__ import annotations

import bisect
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from typing import Any

from longtake.errors import ConfigError
from longtake.types import Line, Segment
from longtake_bench.lab import vocabulary as v
from longtake_bench.lab.facts import (
    SAYINGS,
    Deed,
    Fact,
    Happening,
    Person,
    Presence,
    Saying,
    Sign,
    Thing,
    sentence,
    values_of,
)
from longtake_bench.lab.profile import PROFILE, generator


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
    """A part of the film at one place."""

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

    def scene_at(self, second: float) -> Scene:
        """The scene on screen at a given second."""
        number = bisect.bisect_right(self.scenes, second, key=lambda scene: scene.start) - 1
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


MOTIONS = ("still", "rain", "clouds", "leaves", "lights")
PALETTES = 6
MOST_SEED = 2**14 - 1
"""The largest seed that fits into the frame code."""
MOST_MINUTES = 255


@lru_cache(maxsize=32)
def make_script(seed: int, minutes: int) -> Script:
    """The script for a seed and a length in minutes."""
    if not 0 <= seed <= MOST_SEED:
        raise ConfigError(f"seed must be between 0 and {MOST_SEED}, not {seed}", key="seed")
    if not 1 <= minutes <= MOST_MINUTES:
        raise ConfigError(
            f"minutes must be between 1 and {MOST_MINUTES}, not {minutes}", key="minutes"
        )
    return _Writer(seed, minutes).write()


class _Writer:
    """Writes one script and remembers what must not occur twice.

    The order of draws from ``rng`` is part of the profile: reordering them changes every world.
    """

    def __init__(self, seed: int, minutes: int) -> None:
        self.seed, self.minutes = seed, minutes
        self.rng = generator("world", PROFILE.name, seed, minutes)
        coats = self.rng.sample(list(v.COLOURS), PROFILE.world.cast_coats)
        self.cast = tuple(Person(coat, hat) for coat in coats for hat in self.rng.sample(v.HATS, 2))
        self.theme = self.rng.choice(sorted(v.THEMES))
        self.deeds: list[Deed] = []
        self.sign_keys: set[tuple[str, str]] = set()
        self.sign_texts: set[str] = set()
        self.subjects = [f"{first} {second}" for first in v.SAID_FIRST for second in v.SAID_SECOND]
        self.rng.shuffle(self.subjects)

    def write(self) -> Script:
        scenes: list[Scene] = []
        episode, left = -1, 0
        places: list[str] = []
        people: list[Person] = []
        palette = 0
        for start, end in self._lengths():
            if left == 0:
                episode += 1
                left = self.rng.randint(*PROFILE.world.scenes_per_episode)
                if self.minutes < 10:  # short films should have several episodes, too
                    left = min(left, 3)
                places = self.rng.sample(v.PLACES, 4)
                people = self.rng.sample(self.cast, min(len(self.cast), 5))
                palette = (palette + self.rng.randint(1, PALETTES - 1)) % PALETTES
            left -= 1
            # two scenes in a row at one place would look like a single scene
            last_place = scenes[-1].place if scenes else None
            place = self.rng.choice([place for place in places if place != last_place])
            scenes.append(self._scene(start, end, episode, palette, place, people))
        spoken = self._spoken(self.minutes * 60)
        return Script(self.seed, self.minutes, self.theme, self.cast, tuple(scenes), spoken)

    def _lengths(self) -> list[tuple[int, int]]:
        total = self.minutes * 60
        shortest, longest = PROFILE.world.scene
        # at least about six scenes, however short the film
        longest = min(longest, max(shortest + 10, total // 6))
        bounds, start = [], 0
        while start < total:
            length = self.rng.randint(shortest, longest)
            rest = total - start - length
            if rest < shortest:  # avoid a last scene too short to show anything
                remaining = total - start
                length = remaining if remaining <= longest else remaining // 2
            bounds.append((start, start + length))
            start += length
        return bounds

    def _scene(
        self, start: int, end: int, episode: int, palette: int, place: str, people: Sequence[Person]
    ) -> Scene:
        look = Appearance(palette, self.rng.choice(MOTIONS), self.rng.randrange(1000))
        count = self.rng.randint(*PROFILE.world.people_per_scene)
        present = tuple(self.rng.sample(list(people), count))
        deeds = self._deeds(start, end, place, present)
        signs = self._signs(start, end, place)
        return Scene(start, end, episode, place, look, present, deeds, signs)

    def _deeds(
        self, start: int, end: int, place: str, people: Sequence[Person]
    ) -> tuple[Happening, ...]:
        happenings: list[Happening] = []
        person = self.rng.choice(people)
        time = start + self.rng.randint(1, 6)
        while time + 1 < end:
            if self.rng.random() >= PROFILE.world.same_person:
                person = self.rng.choice(people)
            finish = min(time + self.rng.choice(PROFILE.world.event), end - 1)
            deed = self._deed(person, place)
            self.deeds.append(deed)
            happenings.append(Happening(*self._made_out(time, finish), deed))
            time = finish + self.rng.choice(PROFILE.world.deed_gap)
        return tuple(happenings)

    def _made_out(self, start: int, end: int) -> tuple[int, int]:
        """The seconds in which an event can be made out: a single one if it is small."""
        if self.rng.random() >= PROFILE.world.small:
            return start, end
        close = self.rng.randrange(start, end)
        return close, close + 1

    def _deed(self, person: Person, place: str) -> Deed:
        """A deed that has not occurred before; questions rely on deeds being unique."""
        known = set(self.deeds)
        earlier = [deed for deed in self.deeds if deed.person == person]
        while True:
            if earlier and self.rng.random() < PROFILE.world.twin:
                deed = self._twin(self.rng.choice(earlier), place)
            else:
                deed = Deed(person, self.rng.choice(list(v.VERBS)), self._thing(), place)
            if deed not in known:
                return deed

    def _twin(self, of: Deed, place: str) -> Deed:
        """The same deed at another place, or at the same place with one other respect changed."""
        thing = of.thing or self._thing()
        if of.place != place:
            return Deed(of.person, of.verb, thing, place)
        respect = self.rng.choice(("verb", "colour", "kind"))
        if respect == "verb":
            return Deed(of.person, self.rng.choice(list(v.VERBS)), thing, place)
        if respect == "colour":
            colour = self.rng.choice(list(v.COLOURS))
            return Deed(of.person, of.verb, Thing(colour, thing.kind), place)
        return Deed(of.person, of.verb, Thing(thing.colour, self._thing().kind), place)

    def _thing(self) -> Thing:
        themed = self.rng.random() < PROFILE.world.on_theme
        kinds = v.THEMES[self.theme] if themed else v.THINGS
        kind = self.rng.choice(kinds)
        return Thing(self.rng.choice(list(v.COLOURS)), kind)

    def _signs(self, start: int, end: int, place: str) -> tuple[Happening, ...]:
        # colour and place together identify a sign, so no pair is used twice
        colours = [colour for colour in v.COLOURS if (colour, place) not in self.sign_keys]
        if not colours or self.rng.random() >= PROFILE.world.sign:
            return ()
        colour, text = self.rng.choice(colours), self._sign_text()
        self.sign_keys.add((colour, place))
        length = min(self.rng.choice(PROFILE.world.event), end - start - 2)
        begin = self.rng.randint(start + 1, end - 1 - length)
        return (Happening(*self._made_out(begin, begin + length), Sign(colour, text, place)),)

    def _sign_text(self) -> str:
        while True:
            first, second = self.rng.choice(v.SIGN_FIRST), self.rng.choice(v.SIGN_SECOND)
            text = f"{first} {second} {self.rng.randint(11, 99)}"
            if text not in self.sign_texts:
                self.sign_texts.add(text)
                return text

    def _spoken(self, total: int) -> tuple[Spoken, ...]:
        lines: list[Spoken] = []
        time = self.rng.randint(2, 10)
        while (finish := time + self.rng.choice(PROFILE.world.line)) < total:
            if self.rng.random() < PROFILE.world.small_talk or not self.subjects:
                lines.append(Spoken(time, finish, self.rng.choice(v.SMALL_TALK), None))
            else:
                relation = self.rng.choice(list(SAYINGS))
                saying = Saying(self.subjects.pop(), relation, self.rng.choice(values_of(relation)))
                lines.append(Spoken(time, finish, sentence(saying), saying))
            time = finish + self.rng.choice(PROFILE.world.line_gap)
        return tuple(lines)
