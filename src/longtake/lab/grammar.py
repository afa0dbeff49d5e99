"""Facts as sentences, and sentences as facts.

What somebody saw names the place first ("At the harbour, … lifts the green cup."); what somebody looks for or
asks about names it last ("… lifts the green cup at the harbour"). Only the first kind is read as a fact, so that
a question, an option or a clue in a prompt is never taken for something that was seen.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache

from longtake.lab import vocabulary as v
from longtake.lab.facts import Deed, Fact, Person, Presence, Saying, Sign, Thing

BASE_OF: Mapping[str, str] = {third: base for base, third in v.VERBS.items()}
_KEYS = {"cost": v.AMOUNTS, "weigh": v.AMOUNTS, "leave": v.HOURS, "own": v.OWNERS}

SAYINGS: Mapping[str, str] = {
    "cost": "The {subject} costs {value}.",
    "weigh": "The {subject} weighs {value}.",
    "leave": "The {subject} leaves {value}.",
    "own": "The {subject} belongs to {value}.",
}


def values_of(relation: str) -> list[str]:
    """Everything the narrator can say of a relation: ``forty coins``, ``at noon``."""
    form = {"cost": "{} coins", "weigh": "{} stones", "leave": "at {}", "own": "{}"}[relation]
    return [form.format(word) for word in _KEYS[relation]]


def _one_of(words: Mapping[str, object] | tuple[str, ...] | list[str]) -> str:
    return "|".join(re.escape(word) for word in sorted(words, key=lambda word: (-len(word), word)))


def slot(name: str) -> str:
    """The regular expression of a slot; a digit at its end tells two of a kind apart."""
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
        return rf"the person in the (?P<coat{number}>{_one_of(v.COLOURS)}) coat and the (?P<hat{number}>{_one_of(v.HATS)})"
    if kind == "thing":
        return rf"the (?P<colour{number}>{group['colour']}) (?P<kind{number}>{group['kind']})"
    return f"(?P<{name}>{group[kind]})"


def sign_text() -> str:
    """The regular expression of what signs say."""
    return rf"(?:{_one_of(v.SIGN_FIRST)}) (?:{_one_of(v.SIGN_SECOND)}) \d\d"


def expression(template: str) -> str:
    """A template with ``{slots}`` as a regular expression; any white space counts as one space."""
    pieces = re.split(r"\{([a-z]+\d?)\}", template)
    built = [slot(piece) if number % 2 else re.escape(piece) for number, piece in enumerate(pieces)]
    return "".join(built).replace(r"\ ", r"\s+").replace(" ", r"\s+")


def person_in(groups: Mapping[str, str], number: str = "") -> Person:
    """The person that a match holds."""
    return Person(groups[f"coat{number}"].lower(), " ".join(groups[f"hat{number}"].lower().split()))


def thing_in(groups: Mapping[str, str], number: str = "") -> Thing:
    """The thing that a match holds."""
    return Thing(groups[f"colour{number}"].lower(), groups[f"kind{number}"].lower())


def base(third: str) -> str:
    """``lifts`` as ``lift``."""
    return BASE_OF[third.lower()]


def _deed(groups: Mapping[str, str]) -> Fact:
    return Deed(person_in(groups), base(groups["verbs"]), thing_in(groups), groups["place"].lower())


@cache
def _readers() -> tuple[tuple[re.Pattern[str], Callable[[Mapping[str, str]], Fact]], ...]:
    """Made when first needed: the expressions are long, and ``import`` should not pay for them."""
    plain: list[tuple[str, Callable[[Mapping[str, str]], Fact]]] = [
        (expression("At the {place}, {person} {verbs} {thing}"), _deed),
        (
            expression("At the {place}, {person} stands still"),
            lambda g: Presence(person_in(g), g["place"].lower()),
        ),
        (expression("This is the {place}"), lambda g: Presence(None, g["place"].lower())),
        (
            expression("At the {place}, the {colour} sign reads ") + "[\"“'‹]?" + slot("text"),
            lambda g: Sign(g["colour"].lower(), g["text"].upper(), g["place"].lower()),
        ),
        (
            expression("At the {place}, there is a {colour} sign"),
            lambda g: Sign(g["colour"].lower(), None, g["place"].lower()),
        ),
    ]
    for relation, template in SAYINGS.items():
        value = f"(?P<value>{_one_of(values_of(relation))})"
        said = expression(template.removesuffix(" {value}.")) + rf"\s+{value}"
        plain.append((said, _saying(relation)))
    return tuple((re.compile(text, re.IGNORECASE), make) for text, make in plain)


def _saying(relation: str) -> Callable[[Mapping[str, str]], Fact]:
    spelt = {value.lower(): value for value in values_of(relation)}
    return lambda g: Saying(
        " ".join(g["subject"].lower().split()),
        relation,
        spelt[" ".join(g["value"].lower().split())],
    )


def facts_in(text: str) -> Iterator[tuple[int, Fact]]:
    """Every fact that a text states, with where in it the sentence begins."""
    found: list[tuple[int, Fact]] = []
    for pattern, make in _readers():
        found += [(match.start(), make(match.groupdict())) for match in pattern.finditer(text)]
    return iter(sorted(found, key=lambda one: one[0]))


def sentence(fact: Fact) -> str:
    """A fact as somebody who saw or heard it says it."""
    match fact:
        case Deed(person, verb, thing, place):
            return f"At the {place}, {person} {v.VERBS[str(verb)]} {thing}."
        case Presence(None, place):
            return f"This is the {place}."
        case Presence(person, place):
            return f"At the {place}, {person} stands still."
        case Sign(colour, None, place):
            return f"At the {place}, there is a {colour} sign."
        case Sign(colour, text, place):
            return f'At the {place}, the {colour} sign reads "{text}".'
        case Saying(subject, relation, value):
            return SAYINGS[str(relation)].format(subject=subject, value=value)


def wish(pattern: Fact) -> str:
    """A pattern as somebody who looks for it says it; what is not known is left open."""
    match pattern:
        case Deed(person, verb, thing, place):
            where = f" at the {place}" if place else ""
            return f"{person or 'somebody'} {v.VERBS.get(str(verb), 'handles')} {thing or 'something'}{where}"
        case Presence(person, place):
            return f"{person or 'somebody'} at the {place}" if place else str(person or "somebody")
        case Sign(colour, text, place):
            says = f" that says {text}" if text else ""
            where = f" at the {place}" if place else ""
            return f"a {colour + ' ' if colour else ''}sign{says}{where}"
        case Saying(subject, relation, value):
            verb = {"cost": "costs", "weigh": "weighs", "leave": "leaves", "own": "belongs to"}.get(
                str(relation), ""
            )
            return f"the narrator speaks of the {subject} and what it {verb} {value or ''}".strip()


def wished_in(text: str) -> Fact | None:
    """What a text that is no known question asks to look for: a deed, a sign, a saying, or nothing known."""
    if match := re.search(rf"\b(?:{slot('subject')})\b", text, re.IGNORECASE):
        return Saying(subject=" ".join(match["subject"].lower().split()))
    place = _first(rf"\bat the (?P<word>{_one_of(v.PLACES)})\b", text)
    if match := re.search(rf"\b(?P<colour>{_one_of(v.COLOURS)}) sign\b", text, re.IGNORECASE):
        return Sign(match["colour"].lower(), None, place)
    found = re.search(slot("person"), text, re.IGNORECASE)
    held = re.search(slot("thing"), text, re.IGNORECASE)
    verb = _first(rf"\b(?P<word>{_one_of({**v.VERBS, **BASE_OF})})\b", text)
    deed = Deed(
        person_in(found.groupdict()) if found else None,
        BASE_OF.get(verb, verb) if verb else None,
        thing_in(held.groupdict()) if held else None,
        place,
    )
    return None if deed == Deed() else deed


def _first(pattern: str, text: str) -> str | None:
    match = re.search(pattern, text, re.IGNORECASE)
    return match["word"].lower() if match else None
