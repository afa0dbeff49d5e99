"""What a simulated model takes in of a moment that it is shown, and of a sentence that it reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from longtake.lab import vocabulary as v
from longtake.lab.chance import pick, share
from longtake.lab.code import Moment
from longtake.lab.facts import Deed, Fact, Presence, Saying, Sighting, Sign, Thing
from longtake.lab.grammar import sentence
from longtake.lab.profile import PROFILE
from longtake.lab.world import make_script


@dataclass(frozen=True)
class Eyes:
    """Chances are drawn from a hash of seed, fact and second, and from nothing else.

    A sharper eye of the same seed sees all that a duller one sees; the same fact a second later is a new chance.
    """

    seed: int = 0
    acuity: float = PROFILE.model.acuity
    by_kind: Mapping[str, float] = field(default_factory=dict)
    """Acuity for ``action``, ``people``, ``onscreen``, ``spoken`` where it differs."""
    hallucination: float = PROFILE.model.hallucination
    reading: float = PROFILE.model.reading

    def look(self, moment: Moment) -> list[Sighting]:
        """What is noticed in a picture."""
        script = make_script(moment.seed, moment.minutes)
        noticed = [self._notice(fact, moment) for fact in script.visible(moment.second)]
        seen = [Sighting(fact, float(moment.second)) for fact in noticed if fact is not None]
        if share(self.seed, "imagined", moment) < self.hallucination:
            scene = script.scene_at(moment.second)
            who = pick(script.cast, self.seed, "who", moment)
            thing = Thing(
                pick(list(v.COLOURS), self.seed, "hue", moment),
                pick(v.THINGS, self.seed, "kind", moment),
            )
            imagined = Deed(who, pick(list(v.VERBS), self.seed, "verb", moment), thing, scene.place)
            seen.append(Sighting(imagined, float(moment.second)))
        return seen

    def takes_in(self, fact: Fact) -> bool:
        """Whether a fact that stands in the prompt is taken in."""
        if isinstance(fact, Saying):
            return share(self.seed, "spoken", sentence(fact)) < self._of("spoken")
        return share(self.seed, "reading", repr(fact)) < self.reading

    def _of(self, kind: str) -> float:
        return self.by_kind.get(kind, self.acuity)

    def _sees(self, kind: str, fact: Fact, moment: Moment) -> bool:
        return share(self.seed, kind, sentence(fact), moment.second) < self._of(kind)

    def _notice(self, fact: Fact, moment: Moment) -> Fact | None:
        """The fact, or less of it: a person whose deed is missed, a sign that is not read."""
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
        return less if self._sees("people", less, moment) else None
