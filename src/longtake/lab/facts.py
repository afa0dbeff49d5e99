"""What can be true in the world: deeds, people, signs and spoken lines.

The same records serve as patterns: a field that is ``None`` stands for anything.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TypeAlias


@dataclass(frozen=True, slots=True, order=True)
class Person:
    """Somebody, told apart by coat and hat."""

    coat: str
    hat: str

    def __str__(self) -> str:
        return f"the person in the {self.coat} coat and the {self.hat}"


@dataclass(frozen=True, slots=True, order=True)
class Thing:
    """Something one can hold."""

    colour: str
    kind: str

    def __str__(self) -> str:
        return f"the {self.colour} {self.kind}"


@dataclass(frozen=True, slots=True)
class Deed:
    """Somebody does something with a thing somewhere; ``verb`` is in its base form."""

    person: Person | None = None
    verb: str | None = None
    thing: Thing | None = None
    place: str | None = None


@dataclass(frozen=True, slots=True)
class Presence:
    """Somebody is somewhere; without a person: this is the place."""

    person: Person | None = None
    place: str | None = None


@dataclass(frozen=True, slots=True)
class Sign:
    """A sign hangs somewhere; ``text`` is ``None`` where it is seen but not read."""

    colour: str | None = None
    text: str | None = None
    place: str | None = None


@dataclass(frozen=True, slots=True)
class Saying:
    """The narrator says something of a subject: what it costs, when it leaves, who owns it, what it weighs."""

    subject: str | None = None
    relation: str | None = None
    value: str | None = None


Fact: TypeAlias = Deed | Presence | Sign | Saying
"""One thing that is true at a moment."""

KINDS: dict[type, str] = {Deed: "action", Presence: "people", Sign: "onscreen", Saying: "spoken"}
"""The kinds for which acuity can be set apart."""


def kind_of(fact: Fact) -> str:
    """The kind a fact's acuity goes by."""
    return KINDS[type(fact)]


def fits(pattern: Fact, fact: Fact) -> bool:
    """Whether a fact has all that a pattern names."""
    if type(pattern) is not type(fact):
        return False
    return all(
        wanted is None or wanted == getattr(fact, field.name)
        for field in fields(pattern)
        if (wanted := getattr(pattern, field.name)) is not None
    )


@dataclass(frozen=True, slots=True)
class Sighting:
    """A fact and when it was met with; ``time`` is ``None`` where that is not known."""

    fact: Fact
    time: float | None = None


@dataclass(frozen=True, slots=True)
class Happening:
    """A fact and the whole seconds from and before which it is true."""

    start: int
    end: int
    fact: Fact
