"""What a simulated model notices in a picture and takes in from a sentence."""

from __future__ import annotations

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

    def look(self, moment: Moment) -> list[Sighting]:
        """What is noticed in a picture."""
        script = make_script(moment.seed, moment.minutes)
        noticed = [self._notice(fact, moment) for fact in script.visible(moment.second)]
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

    def takes_in(self, fact: Fact) -> bool:
        """Whether a fact that the prompt states is taken in."""
        if isinstance(fact, Saying):
            # hearing is a matter of acuity, as seeing is
            return share(self.seed, "spoken", sentence(fact)) < self._acuity("spoken")
        return share(self.seed, "reading", repr(fact)) < self.reading

    def _acuity(self, kind: str) -> float:
        return self.by_kind.get(kind, self.acuity)

    def _sees(self, kind: str, fact: Fact, moment: Moment) -> bool:
        return share(self.seed, kind, sentence(fact), moment.second) < self._acuity(kind)

    def _notice(self, fact: Fact, moment: Moment) -> Fact | None:
        """The fact, part of it (the person without the deed, the sign unread), or ``None``."""
        match fact:
            case Deed(person, _, _, place):
                if self._sees("action", fact, moment):
                    return fact
                less: Fact = Presence(person, place)
            case Sign(colour, _, place):
                if self._sees("onscreen", fact, moment):
                    return fact
                less = Sign(colour, None, place)
            case _:
                less = fact
        # the rest of a missed fact, and anybody idle, is a matter of the acuity for people
        return less if self._sees("people", less, moment) else None
