"""Facts of a world: deeds, people, signs and spoken statements.

The same records serve as patterns, in which ``None`` matches anything.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TypeAlias


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


def kind_of(fact: Fact) -> str:
    """The kind that determines which acuity applies to a fact."""
    return KINDS[type(fact)]


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
