"""Videos of captions, one of which tells the answer, and methods that use it or cheat."""

import random
from dataclasses import dataclass
from typing import ClassVar

from processes import Bags

from longtake.footage.plain import CaptionedFootage
from longtake.types import Answer, Evidence, Question, Segment
from longtake_bench.benchmarks import Benchmark, BenchmarkQuestion, LabelledQuestion

COLOURS = ("red", "green", "blue", "white")
SECONDS = 20


@dataclass(frozen=True)
class Colours:
    """Videos by name, ``number:colour``; how far captions are apart gives the colour away."""

    def footage(self, video):
        number, _, colour = video.partition(":")
        captions = [f"somebody walks by {second}" for second in range(SECONDS)]
        captions[int(number) % SECONDS] = f"the lamp is {colour}"
        leak = 1 + COLOURS.index(colour) / 1000
        return CaptionedFootage(f"video {number}", captions, Bags(), step=leak)


def colours(count):
    """One question about each video."""
    items = []
    for number in range(count):
        chance = random.Random(number)
        options = tuple(chance.sample(COLOURS, len(COLOURS)))
        colour = chance.choice(COLOURS)
        asked = BenchmarkQuestion(
            f"q{number}",
            f"{number}:{colour}",
            Question(f"Which colour has lamp {number}?", options),
        )
        second = float(number % SECONDS)
        label = "ABCD"[options.index(colour)]
        items.append(LabelledQuestion(asked, label, {}, (Segment(second, second + 1),)))
    return Benchmark("colours", items, Colours())


class Planted:
    """What all of these methods are."""

    paper: ClassVar[str] = "none"
    roles: ClassVar[tuple[str, ...]] = ()
    presets: ClassVar[dict] = {}

    def answer(self, footage, question, run):
        colour, seconds = self.conclude(footage, question)
        choice = question.letters[question.options.index(colour)] if colour else None
        cited = tuple(Evidence(Segment(time, time), "caption") for time in seconds)
        return Answer(choice, colour or "", evidence=cited)


def told(footage):
    """The colour that a caption tells and when, if one is left that does."""
    captions = footage.captions(footage.times.tolist())
    for time, caption in zip(footage.times.tolist(), captions, strict=True):
        if caption.startswith("the lamp is "):
            return caption.removeprefix("the lamp is "), time
    return None, None


@dataclass(frozen=True)
class Honest(Planted):
    """Answers what a caption tells, and cites it."""

    name: ClassVar[str] = "support.audited:Honest"

    def conclude(self, footage, question):
        colour, time = told(footage)
        return (colour, [time]) if colour else (question.options[0], [])


@dataclass(frozen=True)
class CitesAtRandom(Planted):
    """Answers what a caption tells, and cites anything."""

    name: ClassVar[str] = "support.audited:CitesAtRandom"

    def conclude(self, footage, question):
        time = float(random.Random(question.text).choice(footage.times))
        return told(footage)[0] or question.options[0], [time]


@dataclass(frozen=True)
class AnswersBlind(Planted):
    """Answers from the question alone, and cites the right moment."""

    name: ClassVar[str] = "support.audited:AnswersBlind"

    def conclude(self, footage, question):
        time = told(footage)[1]
        return random.Random(question.text).choice(COLOURS), [] if time is None else [time]


@dataclass(frozen=True)
class ReadsTiming(Planted):
    """Reads the answer from the times of the captions, and cites the right moment."""

    name: ClassVar[str] = "support.audited:ReadsTiming"

    def conclude(self, footage, question):
        leak = footage.duration / SECONDS - 1
        time = told(footage)[1]
        return COLOURS[round(1000 * leak)], [] if time is None else [time]


@dataclass(frozen=True)
class KnowsLetters(Planted):
    """Knows the letter of every right answer."""

    name: ClassVar[str] = "support.audited:KnowsLetters"

    def conclude(self, footage, question):
        number = int(question.text.removesuffix("?").split()[-1])
        label = colours(number + 1).items[number].label
        return question.options["ABCD".index(label)], []
