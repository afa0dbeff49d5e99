"""What a simulated model notices in a picture and takes in from a sentence."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from longtake.lab import vocabulary as v
from longtake.lab.chance import pick, share
from longtake.lab.code import Moment
from longtake.lab.facts import Deed, Fact, Presence, Saying, Sighting, Sign, Thing
from longtake.lab.grammar import sentence
from longtake.lab.profile import PROFILE
from longtake.lab.script import Script
from longtake.lab.world import make_script


@dataclass(frozen=True)
class Eyes:
    """Decides what is noticed, from a hash of seed, fact and second alone.

    With the same seed, higher acuity sees everything that lower acuity sees. The same fact one
    second later is a new draw. Facts and moments enter the hash by their text or ``repr``, so
    renaming their classes or fields would change what every model sees.
    """

    seed: int = 0
    acuity: float = PROFILE.model.acuity
    by_kind: Mapping[str, float] = field(default_factory=dict)
    """Acuity per kind (``action``, ``people``, ``onscreen``, ``spoken``) where it differs."""
    hallucination: float = PROFILE.model.hallucination
    reading: float = PROFILE.model.reading
    dilution: float = 0.0
    middle: float = 0.0

    def attention(self, load: float, position: float) -> float:
        """The share of attention that something gets in a call: 1 / (1 + dilution · log₂ load).

        ``load`` is the size of the call in pictures, ``position`` runs from 0 to 1. The ends of a
        call lose less than the middle; the mean over all positions does not depend on ``middle``.
        """
        if self.dilution == 0.0 or load <= 1.0:
            return 1.0
        bent = 1.0 + self.middle * (6.0 * position * (1.0 - position) - 1.0)
        return 1.0 / (1.0 + self.dilution * math.log2(load) * bent)

    def look(self, moment: Moment, attention: float = 1.0) -> list[Sighting]:
        """What is noticed in a picture."""
        script = make_script(moment.seed, moment.minutes)
        visible = script.visible(moment.second)
        noticed = [self._notice(fact, moment, attention) for fact in visible]
        seen = [Sighting(fact, float(moment.second)) for fact in noticed if fact is not None]
        if share(self.seed, "imagined", moment) < self.hallucination:
            imagined = self._imagine(script, moment)
            seen.append(Sighting(imagined, float(moment.second)))
        return seen

    def _imagine(self, script: Script, moment: Moment) -> Deed:
        """A deed that is not there; its place and person do belong to the film."""
        person = pick(script.cast, self.seed, "who", moment)
        colour = pick(list(v.COLOURS), self.seed, "hue", moment)
        kind = pick(v.THINGS, self.seed, "kind", moment)
        verb = pick(list(v.VERBS), self.seed, "verb", moment)
        return Deed(person, verb, Thing(colour, kind), script.scene_at(moment.second).place)

    def takes_in(self, fact: Fact, attention: float = 1.0) -> bool:
        """Whether a fact that the prompt states is taken in."""
        if isinstance(fact, Saying):
            # hearing is a matter of acuity, as seeing is
            heard = self._acuity("spoken") * attention
            return share(self.seed, "spoken", sentence(fact)) < heard
        return share(self.seed, "reading", repr(fact)) < self.reading * attention

    def _acuity(self, kind: str) -> float:
        return self.by_kind.get(kind, self.acuity)

    def _sees(self, kind: str, fact: Fact, moment: Moment, attention: float) -> bool:
        drawn = share(self.seed, kind, sentence(fact), moment.second)
        return drawn < self._acuity(kind) * attention

    def _notice(self, fact: Fact, moment: Moment, attention: float) -> Fact | None:
        """The fact, part of it (the person without the deed, the sign unread), or ``None``."""
        match fact:
            case Deed(person, _, _, place):
                if self._sees("action", fact, moment, attention):
                    return fact
                less: Fact = Presence(person, place)
            case Sign(colour, _, place):
                if self._sees("onscreen", fact, moment, attention):
                    return fact
                less = Sign(colour, None, place)
            case _:
                less = fact
        # the rest of a missed fact, and anybody idle, is a matter of the acuity for people
        return less if self._sees("people", less, moment, attention) else None
