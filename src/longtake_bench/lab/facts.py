"""Facts of a world: deeds, people, signs and spoken statements.

The same records serve as patterns, in which ``None`` matches anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import TypeAlias

from longtake_bench.lab import vocabulary as v


@dataclass(frozen=True, slots=True, order=True)
class Person:
    """A person, identified by coat and hat together."""

    coat: str
    hat: str

    def __str__(self) -> str:
        return f"the person in the {self.coat} coat and the {self.hat}"


@dataclass(frozen=True, slots=True, order=True)
class Thing:
    """An object that a person can hold."""

    colour: str
    kind: str

    def __str__(self) -> str:
        return f"the {self.colour} {self.kind}"


@dataclass(frozen=True, slots=True)
class Deed:
    """A person does something with a thing at a place; ``verb`` is in its base form."""

    person: Person | None = None
    verb: str | None = None
    thing: Thing | None = None
    place: str | None = None


@dataclass(frozen=True, slots=True)
class Presence:
    """A person is at a place; without a person, it states the place alone."""

    person: Person | None = None
    place: str | None = None


@dataclass(frozen=True, slots=True)
class Sign:
    """A sign at a place; ``text`` is ``None`` if it was seen but not read."""

    colour: str | None = None
    text: str | None = None
    place: str | None = None


@dataclass(frozen=True, slots=True)
class Saying:
    """A statement by the narrator: what a subject costs or weighs, when it leaves, who owns it."""

    subject: str | None = None
    relation: str | None = None
    value: str | None = None


Fact: TypeAlias = Deed | Presence | Sign | Saying
"""Something that is true at a moment."""

KINDS: dict[type, str] = {Deed: "action", Presence: "people", Sign: "onscreen", Saying: "spoken"}
"""The kinds of fact whose acuity can be set separately."""


def fits(pattern: Fact, fact: Fact) -> bool:
    """Whether a fact matches a pattern in every field that the pattern sets."""
    if type(pattern) is not type(fact):
        return False
    for field in fields(pattern):
        wanted = getattr(pattern, field.name)
        if wanted is not None and wanted != getattr(fact, field.name):
            return False
    return True


@dataclass(frozen=True, slots=True)
class Sighting:
    """A fact that somebody observed, and when; ``time`` is ``None`` if unknown."""

    fact: Fact
    time: float | None = None


@dataclass(frozen=True, slots=True)
class Happening:
    """A fact that is true from second ``start`` until, but not including, second ``end``."""

    start: int
    end: int
    fact: Fact


BASE_OF: Mapping[str, str] = {third: base for base, third in v.VERBS.items()}
_VALUE_WORDS = {"cost": v.AMOUNTS, "weigh": v.AMOUNTS, "leave": v.HOURS, "own": v.OWNERS}

SAYINGS: Mapping[str, str] = {
    "cost": "The {subject} costs {value}.",
    "weigh": "The {subject} weighs {value}.",
    "leave": "The {subject} leaves {value}.",
    "own": "The {subject} belongs to {value}.",
}
"""Relation to the narrator's sentence."""


def values_of(relation: str) -> list[str]:
    """Every value the narrator can state for a relation: ``forty coins``, ``at noon``."""
    form = {"cost": "{} coins", "weigh": "{} stones", "leave": "at {}", "own": "{}"}[relation]
    return [form.format(word) for word in _VALUE_WORDS[relation]]


def _one_of(words: Mapping[str, object] | tuple[str, ...] | list[str]) -> str:
    # longest first: an alternation takes the first branch that matches
    ordered = sorted(words, key=lambda word: (-len(word), word))
    return "|".join(re.escape(word) for word in ordered)


def slot(name: str) -> str:
    """The regular expression for a slot; a trailing digit distinguishes two slots of one kind."""
    kind, number = re.fullmatch(r"([a-z]+)(\d?)", name).groups()  # type: ignore[union-attr]
    group = {
        "colour": _one_of(v.COLOURS),
        "kind": _one_of(v.THINGS),
        "verb": _one_of(v.VERBS),
        "verbs": _one_of(BASE_OF),
        "place": _one_of(v.PLACES),
        "subject": rf"(?:{_one_of(v.SAID_FIRST)}) (?:{_one_of(v.SAID_SECOND)})",
        "text": sign_text(),
    }
    if kind == "person":
        coat = rf"(?P<coat{number}>{_one_of(v.COLOURS)})"
        hat = rf"(?P<hat{number}>{_one_of(v.HATS)})"
        return f"the person in the {coat} coat and the {hat}"
    if kind == "thing":
        return rf"the (?P<colour{number}>{group['colour']}) (?P<kind{number}>{group['kind']})"
    return f"(?P<{name}>{group[kind]})"


def sign_text() -> str:
    """The regular expression for the text of a sign."""
    return rf"(?:{_one_of(v.SIGN_FIRST)}) (?:{_one_of(v.SIGN_SECOND)}) \d\d"


def expression(template: str) -> str:
    """A template with ``{slots}`` as a regular expression; spaces match any white space."""
    # odd pieces are slots, even ones literal text
    pieces = re.split(r"\{([a-z]+\d?)\}", template)
    built = [slot(piece) if number % 2 else re.escape(piece) for number, piece in enumerate(pieces)]
    return "".join(built).replace(r"\ ", r"\s+").replace(" ", r"\s+")


def person_in(groups: Mapping[str, str], number: str = "") -> Person:
    """The person named in the groups of a match."""
    return Person(groups[f"coat{number}"].lower(), " ".join(groups[f"hat{number}"].lower().split()))


def thing_in(groups: Mapping[str, str], number: str = "") -> Thing:
    """The thing named in the groups of a match."""
    return Thing(groups[f"colour{number}"].lower(), groups[f"kind{number}"].lower())


def deed_in(groups: Mapping[str, str], number: str = "") -> Deed:
    """The deed that the groups of a match describe; missing parts stay open."""
    third, verb = groups.get(f"verbs{number}"), groups.get(f"verb{number}")
    place = groups.get(f"place{number}")
    return Deed(
        person_in(groups, number) if f"coat{number}" in groups else None,
        BASE_OF[third.lower()] if third else verb and verb.lower(),
        thing_in(groups, number) if f"colour{number}" in groups else None,
        place and place.lower(),
    )


def slots_of(fact: Fact | None, number: str = "") -> dict[str, str]:
    """What a fact puts into the slots of a template."""
    match fact:
        case Deed(person, verb, thing, place):
            words = {"person": person, "verb": verb, "thing": thing, "place": place}
            words["verbs"] = v.VERBS.get(str(verb), "")
            return {f"{name}{number}": str(word) for name, word in words.items()}
        case Presence() | Sign() | Saying():
            return {part.name: str(getattr(fact, part.name)) for part in fields(fact)}
    return {}


SENTENCES: Mapping[str, str] = {
    "deed": "At the {place}, {person} {verbs} {thing}.",
    "idle": "At the {place}, {person} stands still.",
    "place": "This is the {place}.",
    "sign": 'At the {place}, the {colour} sign reads "{text}".',
    "unread": "At the {place}, there is a {colour} sign.",
    **SAYINGS,
}
"""The sentence for each kind of fact; narrator statements have one per relation."""


def _kind(fact: Fact) -> str:
    match fact:
        case Presence(person):
            return "idle" if person else "place"
        case Sign(_, text):
            return "sign" if text else "unread"
        case Saying(_, relation):
            return str(relation)
    return "deed"


@cache
def _readers() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """A pattern for each kind of fact; compiled on first use to keep imports fast."""
    readers = []
    for kind, template in SENTENCES.items():
        pattern = expression(template.rstrip('."').removesuffix(" {value}"))
        pattern = pattern.replace('"', "[\"“'‹]?")
        if kind in SAYINGS:
            pattern += rf"\s+(?P<value>{_one_of(values_of(kind))})"
        readers.append((kind, re.compile(pattern, re.IGNORECASE)))
    return tuple(readers)


def _fact(kind: str, g: Mapping[str, str]) -> Fact:
    """The fact that the groups of a match name."""
    if kind in SAYINGS:
        # values keep their own spelling, since owners are proper names
        spelt = {value.lower(): value for value in values_of(kind)}
        subject, value = (" ".join(g[name].lower().split()) for name in ("subject", "value"))
        return Saying(subject, kind, spelt[value])
    if kind == "deed":
        return deed_in(g)
    place = g["place"].lower()
    if kind in ("sign", "unread"):
        return Sign(g["colour"].lower(), g["text"].upper() if "text" in g else None, place)
    return Presence(person_in(g) if kind == "idle" else None, place)


def facts_in(text: str) -> Iterator[tuple[int, Fact]]:
    """Every fact that a text states, with the position of its sentence, in order."""
    placed: list[tuple[int, Fact]] = []
    for kind, pattern in _readers():
        for match in pattern.finditer(text):
            placed.append((match.start(), _fact(kind, match.groupdict())))
    return iter(sorted(placed, key=lambda pair: pair[0]))


def sentence(fact: Fact) -> str:
    """A fact as a statement by somebody who saw or heard it."""
    return SENTENCES[_kind(fact)].format(**slots_of(fact))


_RELATION_VERBS = {"cost": "costs", "weigh": "weighs", "leave": "leaves", "own": "belongs to"}


def wish(pattern: Fact) -> str:
    """A pattern as a search query; unset fields stay vague."""
    match pattern:
        case Deed(person, verb, thing, place):
            where = f" at the {place}" if place else ""
            does = v.VERBS.get(str(verb), "handles")
            return f"{person or 'somebody'} {does} {thing or 'something'}{where}"
        case Presence(person, place):
            return f"{person or 'somebody'} at the {place}" if place else str(person or "somebody")
        case Sign(colour, text, place):
            says = f" that says {text}" if text else ""
            where = f" at the {place}" if place else ""
            return f"a {colour + ' ' if colour else ''}sign{says}{where}"
        case Saying(subject, relation, value):
            verb = _RELATION_VERBS.get(str(relation), "")
            return f"the narrator speaks of the {subject} and what it {verb} {value or ''}".strip()


def wished_in(text: str) -> Fact | None:
    """The pattern that a text other than a known question asks to look for, if any."""
    # subjects of the narrator are never visible, so they decide first
    if match := re.search(rf"\b(?:{slot('subject')})\b", text, re.IGNORECASE):
        return Saying(subject=" ".join(match["subject"].lower().split()))
    place = _first(rf"\bat the (?P<word>{_one_of(v.PLACES)})\b", text)
    if match := re.search(rf"\b(?P<colour>{_one_of(v.COLOURS)}) sign\b", text, re.IGNORECASE):
        return Sign(match["colour"].lower(), None, place)
    person = re.search(slot("person"), text, re.IGNORECASE)
    thing = re.search(slot("thing"), text, re.IGNORECASE)
    verb = _first(rf"\b(?P<word>{_one_of({**v.VERBS, **BASE_OF})})\b", text)
    deed = Deed(
        person_in(person.groupdict()) if person else None,
        BASE_OF.get(verb, verb) if verb else None,
        thing_in(thing.groupdict()) if thing else None,
        place,
    )
    return None if deed == Deed() else deed


def _first(pattern: str, text: str) -> str | None:
    match = re.search(pattern, text, re.IGNORECASE)
    return match["word"].lower() if match else None
