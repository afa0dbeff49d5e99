"""How a simulated model guesses when nothing it knows settles the question."""

from __future__ import annotations

from collections.abc import Sequence

from longtake.lab import vocabulary as v
from longtake.lab.chance import pick, share
from longtake.lab.facts import Deed, Fact, Person, Saying, Sign, Thing
from longtake.lab.grammar import values_of
from longtake.lab.profile import PROFILE
from longtake.lab.prompt import Shown
from longtake.lab.queries import RELATIONS, clause, doing


def guess_option(shown: Shown, excluded: Sequence[int], seed: int) -> int:
    """The index of an option that is not excluded, sometimes one that sounds familiar.

    Familiar options are true of other moments and therefore mostly wrong here, as with real models.
    """
    options = shown.options
    possible = [number for number in range(len(options)) if number not in excluded]
    possible = possible or list(range(len(options)))
    familiar = {word.lower() for s in shown.sightings for word in _options_from(s.fact)}
    tempting = [number for number in possible if options[number].lower() in familiar]
    text = shown.query.text if shown.query else ""
    tempted = share(seed, "tempted", text, *options) < PROFILE.model.temptation
    candidates = tempting if tempting and tempted else possible
    return pick(candidates, seed, "guess", text, *options)


def guess_in_words(shown: Shown, seed: int) -> str:
    """A guess for an open question, preferably something that was seen."""
    form = shown.query.form if shown.query else ""
    seen = {_plausible(form, s.fact) for s in shown.sightings}
    candidates = sorted(value for value in seen if value) or _any_value(form)
    asked = shown.query.text if shown.query else shown.own
    return pick(candidates, seed, "guess", asked)


def _options_from(fact: Fact) -> list[str]:
    """Every option that a fact could make sound familiar."""
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
    """The part of a fact that could answer an open question of the given form."""
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
