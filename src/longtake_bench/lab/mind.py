"""How a simulated model reasons in one call: what it knows, what is missing, how it guesses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TypeVar

from longtake._util.timecode import clock
from longtake.types import LETTERS, Segment
from longtake_bench.lab import vocabulary as v
from longtake_bench.lab.facts import (
    Deed,
    Fact,
    Person,
    Saying,
    Sighting,
    Sign,
    Thing,
    sentence,
    values_of,
    wish,
    wished_in,
)
from longtake_bench.lab.profile import PROFILE, LabModel, pick, share
from longtake_bench.lab.prompt import Shown
from longtake_bench.lab.queries import (
    RELATIONS,
    Finding,
    LabQuery,
    option_of,
    scope_segment,
    solve,
    stated_deed,
    value_of,
)

T = TypeVar("T")
IDLE = (
    "The picture is clear and well lit.",
    "There is nothing else that stands out.",
    "The scene is calm on the whole.",
    "It is hard to say what comes before or after.",
)
"""Filler sentences of verbose models."""
UNKNOWN = "Nothing that was shown settles this, so it is a guess."


@dataclass(frozen=True)
class Mind:
    """The reasoning of a single call; nothing is kept between calls."""

    shown: Shown

    @property
    def model(self) -> LabModel:
        """The model that reasons."""
        return self.shown.eyes.model

    @property
    def query(self) -> LabQuery | None:
        """The question."""
        return self.shown.query

    @cached_property
    def finding(self) -> Finding:
        """What everything known establishes."""
        return self.find(self.shown.sightings)

    def find(self, sightings: Sequence[Sighting]) -> Finding:
        """What the given sightings establish."""
        if self.query is None:
            return Finding(1)
        return solve(
            self.query,
            sightings,
            options=self.shown.options,
            duration=self.shown.duration,
            looked_at=self.shown.looked_at,
        )

    @cached_property
    def grade(self) -> int:
        """How far the model believes that it knows enough, 1 to 3: the level found, or noise."""
        if self._is_sound(self.model.grading, "grading"):
            return self.finding.level
        return 1 + int(share(self.model.seed, "grade", *self._input) * 3)

    def judged(self, verdict: T, anything: Sequence[T], *about: object) -> T:
        """The verdict on somebody's answer or, where judging fails, any of the possible ones."""
        if self._is_sound(self.model.judging, "judging", *about):
            return verdict
        return pick(anything, self.model.seed, "verdict", *self._input, *about)

    def _is_sound(self, share_sound: float, *words: object) -> bool:
        # the input is long; it is hashed only where the outcome depends on it
        return share_sound >= 1.0 or share(self.model.seed, *words, *self._input) < share_sound

    @cached_property
    def _input(self) -> tuple[object, ...]:
        """What distinguishes this call from others."""
        return self.shown.text, *self.shown.moments

    @cached_property
    def option(self) -> int | None:
        """The index of the chosen option; a guess if nothing supports one."""
        options = self.shown.options
        if not options:
            return None
        question_text = self.query.text if self.query else ""
        if share(self.model.seed, "position", question_text, *options) < self.model.position_bias:
            return 0
        known = option_of(self.finding, options)
        if known is not None:
            return known
        return guess_option(self.shown, self.finding.excluded)

    @property
    def letter(self) -> str | None:
        """The letter of the chosen option."""
        return None if self.option is None else LETTERS[self.option]

    @property
    def answer(self) -> str:
        """The answer in words."""
        if self.option is not None:
            return self.shown.options[self.option]
        return self.finding.value or guess_in_words(self.shown)

    @property
    def reason(self) -> str:
        """The sightings that support the answer, with times."""
        if self.finding.level == 1 or not self.finding.support:
            return UNKNOWN
        return " ".join(timed(sighting) for sighting in self.finding.support[:4])

    @cached_property
    def needs(self) -> list[Fact]:
        """Patterns of what would have to be seen, most wanted first."""
        if self.query is None:
            wanted = wished_in(self.shown.instructions) or wished_in(self.shown.text)
            return [wanted] if wanted else []
        # a pattern without any field cannot be searched for
        missing = [need for need in self.finding.missing if need != Deed()]
        return missing or self.query.needs()

    @property
    def retrieval(self) -> str:
        """A search text of at most fifty words."""
        wishes = [wish(need) for need in self.needs]
        if not wishes:
            if self.query:
                return self.query.text
            return self.shown.instructions.strip()[:200] or "anything that happens"
        # members of a team, which differ by seed, start with different wishes
        first = int(share(self.model.seed, "which wish", *wishes) * len(wishes))
        words = "; ".join([*wishes[first:], *wishes[:first]]).split()
        return " ".join(words[:50])

    def relevance(self, sightings: Sequence[Sighting]) -> float:
        """How closely the best sighting matches something wanted, 0 to 1."""
        wanted = [*self.needs, *(self.query.needs() if self.query else [])]
        if self.query and self.query.form == "topic":
            # every deed says something about the theme
            return 0.7 if any(isinstance(s.fact, Deed) for s in sightings) else 0.0
        matches = [resemblance(need, s.fact) for need in wanted for s in sightings]
        return max(matches, default=0.0)

    def describe(self) -> str:
        """The pictures in words; with several pictures, each fact follows its time."""
        several = len(self.shown.moments) > 1
        first_sightings: dict[Fact, Sighting] = {}
        for sighting in self.shown.seen:
            first_sightings.setdefault(sighting.fact, sighting)
        seen = list(first_sightings.values())
        telling = [sighting for sighting in seen if isinstance(sighting.fact, Deed | Sign)]
        rest = [sighting for sighting in seen if not isinstance(sighting.fact, Deed | Sign)]
        if several:
            rest = rest[:4]  # people standing still would drown what happens
        kept = sorted([*telling, *rest], key=lambda s: s.time or 0.0)
        sentences = [timed(s) if several else sentence(s.fact) for s in kept]
        return self.padded(" ".join(sentences) or "Nothing can be made out.")

    def option_need(self, option: str) -> Fact | None:
        """What would have to be seen if an option were right."""
        query = self.query
        if query is None:
            return None
        if isinstance(query.first, Sign):
            return replace(query.first, text=option)
        if isinstance(query.first, Saying):
            return replace(query.first, value=option)
        if not isinstance(query.first, Deed):
            return None
        if query.form in ("before", "after"):
            return stated_deed(option)
        part = wished_in(option)
        if isinstance(part, Deed):
            anchor = query.first
            if query.form in ("what", "scope"):
                return replace(anchor, thing=part.thing)
            if query.form == "who":
                return replace(anchor, person=part.person)
            if query.form == "where":
                return replace(anchor, place=part.place)
            if query.form in ("deed", "next", "previous"):
                return replace(part, person=anchor.person, place=part.place or anchor.place)
        # the option says nothing searchable: look for what the question names
        return query.second if query.second is not None else query.first

    def entities(self) -> list[str]:
        """The things, people and places that the question names."""
        words: list[str] = []
        for need in [*(self.query.needs() if self.query else []), *self.needs]:
            for part in fields(need):
                value = getattr(need, part.name)
                if value is None or part.name == "relation":
                    continue
                # a colour alone says nothing, "red sign" does
                is_sign_colour = isinstance(need, Sign) and part.name == "colour"
                words.append(f"{value} sign" if is_sign_colour else str(value))
        return list(dict.fromkeys(words))[:8]

    def padded(self, text: str) -> str:
        """A text followed by filler sentences, according to the model's verbosity."""
        whole, rest = divmod(self.model.verbosity, 1.0)
        extra = int(whole) + (share(self.model.seed, "idle", text) < rest)
        fillers = [pick(IDLE, self.model.seed, text, number) for number in range(extra)]
        return " ".join([text, *fillers])


def resemblance(pattern: Fact, fact: Fact) -> float:
    """The share of a pattern's fields that a fact matches."""
    wanted = {part.name: getattr(pattern, part.name) for part in fields(pattern)}
    wanted = {name: value for name, value in wanted.items() if value is not None}
    if not wanted:
        return 0.0
    if type(pattern) is not type(fact):
        # a different kind of fact still helps if it is at the same place
        place = wanted.get("place")
        return 0.34 if place is not None and place == getattr(fact, "place", None) else 0.0
    matches = sum(getattr(fact, name) == value for name, value in wanted.items())
    return float(matches) / len(wanted)


def scope_of(mind: Mind) -> Segment:
    """The part of the film that the question is about; all of it by default."""
    if mind.query is None or mind.query.scope is None:
        return Segment(0.0, mind.shown.duration)
    return scope_segment(mind.query.scope, mind.shown.duration)


def timed(sighting: Sighting) -> str:
    """A sighting as a sentence, preceded by its time."""
    text = sentence(sighting.fact)
    return text if sighting.time is None else f"[{clock(sighting.time)}] {text}"


def guess_option(shown: Shown, excluded: Sequence[int]) -> int:
    """The index of an option that is not excluded, sometimes one that sounds familiar.

    Familiar options are true of other moments and therefore mostly wrong here, as with real models.
    """
    options, seed = shown.options, shown.eyes.model.seed
    possible = [number for number in range(len(options)) if number not in excluded]
    possible = possible or list(range(len(options)))
    familiar = {word.lower() for s in shown.sightings for word in _options_from(s.fact)}
    tempting = [number for number in possible if options[number].lower() in familiar]
    text = shown.query.text if shown.query else ""
    tempted = share(seed, "tempted", text, *options) < PROFILE.model.temptation
    candidates = tempting if tempting and tempted else possible
    return pick(candidates, seed, "guess", text, *options)


def guess_in_words(shown: Shown) -> str:
    """A guess for an open question, preferably something that was seen."""
    form = shown.query.form if shown.query else ""
    guessed = form if form in (*OPEN_FORMS, *RELATIONS) else ""
    seen = {value_of(guessed, s.fact) for s in shown.sightings}
    candidates = sorted(value for value in seen if value) or _any_value(form)
    question_text = shown.query.text if shown.query else shown.instructions
    return pick(candidates, shown.eyes.model.seed, "guess", question_text)


def _options_from(fact: Fact) -> list[str]:
    """Every option that a fact could make sound familiar."""
    match fact:
        case Deed():
            forms = ("who", "what", "where", "deed", "colour", "topic", "next", "before")
            return [value_of(form, fact) for form in forms]
        case Sign(_, text, _):
            return [text] if text else []
        case Saying(_, _, value):
            return [str(value)]
        case _:
            return [str(fact.person), f"at the {fact.place}"]


OPEN_FORMS = {"what", "scope", "hop_person", "who", "hop_place", "where", "deed", "colour", "sign"}
"""Forms whose questions a guess answers with something that was seen, beside those of sayings."""


def _any_value(form: str) -> list[str]:
    """Every value that could answer a question of the given form in any film."""
    if form in RELATIONS:
        return values_of(form)
    if form in ("who", "hop_place"):
        return [str(Person(coat, hat)) for coat in v.COLOURS for hat in v.HATS]
    if form == "where":
        return [f"at the {place}" for place in v.PLACES]
    if form == "sign":
        names = [f"{first} {second}" for first in v.SIGN_FIRST for second in v.SIGN_SECOND]
        return [f"{name} {number}" for name in names for number in (17, 52)]
    return [str(Thing(colour, kind)) for colour in v.COLOURS for kind in v.THINGS]
