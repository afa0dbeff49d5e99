"""What a simulated model makes of what it was shown: its finding, its answer, and what it would look for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property

from longtake.lab import vocabulary as v
from longtake.lab.chance import pick, share
from longtake.lab.facts import Deed, Fact, Person, Saying, Sighting, Sign, Thing
from longtake.lab.grammar import sentence, values_of, wish, wished_in
from longtake.lab.profile import PROFILE
from longtake.lab.prompt import Shown
from longtake.lab.queries import RELATIONS, Query, clause, deed_in, doing, scope_segment
from longtake.lab.solving import Finding, option_of, solve
from longtake.timecode import clock
from longtake.types import LETTERS

IDLE = (
    "The picture is clear and well lit.",
    "There is nothing else that stands out.",
    "The scene is calm on the whole.",
    "It is hard to say what comes before or after.",
)
UNKNOWN = "Nothing that was shown settles this, so it is a guess."


@dataclass(frozen=True)
class Mind:
    """One call's worth of thinking; nothing is kept between calls."""

    shown: Shown
    seed: int
    verbosity: float = 0.0

    @property
    def query(self) -> Query | None:
        """What is asked."""
        return self.shown.query

    @cached_property
    def finding(self) -> Finding:
        """What follows from everything that is known."""
        return self.find(self.shown.sightings)

    def find(self, sightings: Sequence[Sighting]) -> Finding:
        """What follows from some sightings."""
        if self.query is None:
            return Finding(1)
        return solve(
            self.query,
            sightings,
            options=self.shown.options,
            duration=self.shown.duration,
            looks=self.shown.looks,
        )

    @cached_property
    def option(self) -> int | None:
        """The number of the option that is chosen; a guess where nothing speaks for one."""
        options = self.shown.options
        if not options:
            return None
        known = option_of(self.finding, options)
        return self._guess(options) if known is None else known

    @property
    def letter(self) -> str | None:
        """The letter of the chosen option."""
        return None if self.option is None else LETTERS[self.option]

    @property
    def answer(self) -> str:
        """The answer in words."""
        if self.option is not None:
            return self.shown.options[self.option]
        return self.finding.value or self._guess_in_words()

    @property
    def reason(self) -> str:
        """What speaks for the answer, with times."""
        support = [s for s in self.finding.support if self.finding.level > 1][:4]
        if not support:
            return UNKNOWN
        return " ".join(timed(s) for s in support)

    @cached_property
    def needs(self) -> list[Fact]:
        """What would have to be seen, most wanted first."""
        if self.query is None:
            wanted = wished_in(self.shown.own) or wished_in(self.shown.text)
            return [wanted] if wanted else []
        missing = [need for need in self.finding.missing if need != Deed()]
        return missing or self.query.needs()

    @property
    def retrieval(self) -> str:
        """A text to search with, at most fifty words."""
        wishes = [wish(need) for need in self.needs]
        if not wishes:
            return (
                self.query.text
                if self.query
                else self.shown.own.strip()[:200] or "anything that happens"
            )
        first = share(
            self.seed, "which wish", *wishes
        )  # members of a team begin with different ones
        turned = int(first * len(wishes))
        words = "; ".join([*wishes[turned:], *wishes[:turned]]).split()
        return " ".join(words[:50])

    def relevance(self, sightings: Sequence[Sighting]) -> float:
        """How much of the most wanted thing the best of some sightings has, 0 to 1."""
        wanted = [*self.needs, *(self.query.needs() if self.query else [])]
        if self.query and self.query.form == "topic":
            return 0.7 if any(isinstance(s.fact, Deed) for s in sightings) else 0.0
        return max((resemblance(need, s.fact) for need in wanted for s in sightings), default=0.0)

    def describe(self) -> str:
        """The pictures in words; times stand before what was seen where there are several pictures."""
        several = len(self.shown.moments) > 1
        facts: dict[Fact, Sighting] = {}
        for sighting in self.shown.seen:
            facts.setdefault(sighting.fact, sighting)
        telling = [s for s in facts.values() if isinstance(s.fact, Deed | Sign)]
        rest = [s for s in facts.values() if s not in telling]
        kept = sorted([*telling, *(rest if not several else rest[:4])], key=lambda s: s.time or 0.0)
        said = [timed(s) if several else sentence(s.fact) for s in kept]
        return self.padded(" ".join(said) or "Nothing can be made out.")

    def option_need(self, option: str) -> Fact | None:
        """What would have to be seen if an option were right."""
        query = self.query
        if query is None or not isinstance(query.first, Deed):
            if query is not None and isinstance(query.first, Sign):
                return replace(query.first, text=option)
            return (
                replace(query.first, value=option)
                if query and isinstance(query.first, Saying)
                else None
            )
        if query.form in ("before", "after"):
            return deed_in(option)
        part = wished_in(option)
        if query.form in ("what", "scope") and isinstance(part, Deed):
            return replace(query.first, thing=part.thing)
        if query.form == "who" and isinstance(part, Deed):
            return replace(query.first, person=part.person)
        if query.form == "where" and isinstance(part, Deed):
            return replace(query.first, place=part.place)
        if query.form in ("deed", "next", "previous") and isinstance(part, Deed):
            return replace(part, person=query.first.person, place=part.place or query.first.place)
        return query.second if query.second is not None else query.first

    def entities(self) -> list[str]:
        """The things, people and places that the question names."""
        words: list[str] = []
        for need in [*(self.query.needs() if self.query else []), *self.needs]:
            for part in fields(need):
                value = getattr(need, part.name)
                if value is not None and part.name != "relation":
                    words.append(
                        f"{value} sign"
                        if isinstance(need, Sign) and part.name == "colour"
                        else str(value)
                    )
        return list(dict.fromkeys(words))[:8]

    def padded(self, text: str) -> str:
        """A text with idle sentences, as the model's verbosity has it."""
        whole, rest = divmod(self.verbosity, 1.0)
        extra = int(whole) + (share(self.seed, "idle", text) < rest)
        return " ".join([text, *(pick(IDLE, self.seed, text, number) for number in range(extra))])

    def _guess(self, options: Sequence[str]) -> int:
        """An option that sounds familiar, else any; options that are known to be wrong are left out."""
        open_ = [n for n in range(len(options)) if n not in self.finding.excluded] or list(
            range(len(options))
        )
        familiar = {word.lower() for s in self.shown.sightings for word in _words(s.fact)}
        tempting = [n for n in open_ if options[n].lower() in familiar]
        text = self.query.text if self.query else ""
        tempted = (
            tempting and share(self.seed, "tempted", text, *options) < PROFILE.model.temptation
        )
        return pick(tempting if tempted else open_, self.seed, "guess", text, *options)

    def _guess_in_words(self) -> str:
        form = self.query.form if self.query else ""
        seen = [value for s in self.shown.sightings if (value := _plausible(form, s.fact))]
        asked = self.query.text if self.query else self.shown.own
        return pick(sorted(set(seen)) or _any_value(form), self.seed, "guess", asked)


def resemblance(pattern: Fact, fact: Fact) -> float:
    """Share of what a pattern names that a fact has."""
    named = [
        (part.name, value)
        for part in fields(pattern)
        if (value := getattr(pattern, part.name)) is not None
    ]
    if not named or type(pattern) is not type(fact):
        place = getattr(pattern, "place", None)
        return (
            0.34 if named and place is not None and place == getattr(fact, "place", None) else 0.0
        )
    return float(sum(getattr(fact, name) == value for name, value in named)) / len(named)


def scope_of(mind: Mind) -> tuple[float, float]:
    """The part of the film that the question is about, all of it where it does not say."""
    if mind.query is None or mind.query.scope is None:
        return 0.0, mind.shown.duration
    part = scope_segment(mind.query.scope, mind.shown.duration)
    return part.start, part.end


def timed(sighting: Sighting) -> str:
    """A sighting as a sentence after its time."""
    text = sentence(sighting.fact)
    return text if sighting.time is None else f"[{clock(sighting.time)}] {text}"


def _words(fact: Fact) -> list[str]:
    """Every option that a fact could make look familiar."""
    match fact:
        case Deed(person, verb, thing, place):
            assert thing is not None
            return [
                str(person),
                str(thing),
                f"at the {place}",
                f"{v.VERBS[str(verb)]} it",
                thing.colour,
                v.THEME_OF[thing.kind],
                doing(fact),
                clause(fact),
            ]
        case Sign(_, text, _):
            return [text] if text else []
        case Saying(_, _, value):
            return [str(value)]
        case _:
            return [str(fact.person), f"at the {fact.place}"]


def _plausible(form: str, fact: Fact) -> str | None:
    """What of a fact could answer a question of this form in words."""
    match fact:
        case Deed(person, verb, thing, place):
            values: dict[str, object] = {
                "what": thing,
                "scope": thing,
                "hop_person": thing,
                "who": person,
                "hop_place": person,
                "where": f"at the {place}",
                "deed": f"{v.VERBS[str(verb)]} it",
                "colour": thing.colour if thing else "",
            }
            return str(values[form]) if form in values else None
        case Sign(_, text, _):
            return text if form == "sign" else None
        case Saying(_, relation, value):
            return value if form == relation else None
    return None


def _any_value(form: str) -> list[str]:
    things = [str(Thing(colour, kind)) for colour in v.COLOURS for kind in v.THINGS]
    if form in ("who", "hop_place"):
        return [str(Person(coat, hat)) for coat in v.COLOURS for hat in v.HATS]
    if form == "where":
        return [f"at the {place}" for place in v.PLACES]
    if form == "sign":
        return [
            f"{first} {second} {number}"
            for first in v.SIGN_FIRST
            for second in v.SIGN_SECOND
            for number in (17, 52)
        ]
    return values_of(form) if form in RELATIONS else things
