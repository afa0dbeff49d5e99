"""A world as footage: frames are drawn from the script, without an encoded film.

And a simulated image–text encoder: pictures and texts as noisy bags of words in one space. It
shares the weakness of real encoders: it knows which words belong to a picture, but hardly who does
what with which thing. The noise is adjustable; infinite noise makes it a random encoder.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from longtake.footage.plain import PlainFootage
from longtake.types import Frame, Line, Pixels, Segment
from longtake.video.video import sample_times
from longtake_bench.lab import frame_code
from longtake_bench.lab import vocabulary as v
from longtake_bench.lab.drawing import Painter
from longtake_bench.lab.facts import BASE_OF, Deed, Fact, Presence, Sign
from longtake_bench.lab.profile import PROFILE, numbers
from longtake_bench.lab.world import Script, make_script


class LabFootage(PlainFootage):
    """Footage of a script. Frames equal those of the written film except for compression."""

    def __init__(
        self,
        script: Script,
        *,
        encoder: LabEncoder | None = None,
        fps: float = 1.0,
        code: bool = True,
    ) -> None:
        self.script = script
        self.encoder = encoder or LabEncoder()
        self.name, self.duration = script.name, script.duration
        self.times = sample_times(script.duration, fps)
        self._painter = Painter(script, code=code)
        # 200 MB; questions about one film often look at the same frames
        self._drawn = lru_cache(maxsize=500)(self._draw)

    def at(self, times: Sequence[float], *, width: int | None = None) -> list[Frame]:
        """The frames at the given times."""
        return [self._frame(time, width) for time in times]

    def embeddings(self) -> NDArray[np.float32]:
        """One unit vector per moment of the grid."""
        return self._embeddings

    @cached_property
    def _embeddings(self) -> NDArray[np.float32]:
        return self.encoder.moments(self.script, [int(time) for time in self.times])

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One unit vector per text, in the space of :meth:`embeddings`."""
        return self.encoder.texts(texts)

    def features(self) -> NDArray[np.float32]:
        """The appearance of each moment: place, light, people, and a little noise."""
        return self._features

    @cached_property
    def _features(self) -> NDArray[np.float32]:
        dim = PROFILE.encoder.dim
        rows = np.zeros((len(self.times), dim), np.float32)
        for number, time in enumerate(self.times):
            scene = self.script.scene_at(float(time))
            look = scene.look
            parts = [("place", scene.place), ("light", look.palette), ("detail", look.variant)]
            parts += [("person", str(person)) for person in scene.people]
            content = sum(numbers("look", *part).normal(size=dim) for part in parts)
            noise = numbers("looks", self.script.name, float(time)).normal(size=dim)
            # less noise than content, as features of one scene are similar
            rows[number] = content + 0.5 * noise
        return rows

    meanings = encode

    def speech(self, within: Segment | None = None) -> list[Line]:
        """The narrator's lines."""
        return _inside(self.script.subtitles(), within)

    def known_lines(self) -> tuple[list[Line], list[Line]]:
        """All spoken and on-screen lines; reading a script costs nothing, so all are known."""
        return self.speech(), self.onscreen()

    def onscreen(self, within: Segment | None = None) -> list[Line]:
        """The text on signs."""
        return _inside(self.script.readings(), within)

    def _frame(self, time: float, width: int | None) -> Frame:
        rate = PROFILE.picture.fps
        # in the written film, a drawing stays on screen until the next one
        inside = min(max(time, 0.0), self.duration - 1e-3)
        return self._drawn(int(inside * rate + 1e-6) / rate, width)

    def _draw(self, time: float, width: int | None) -> Frame:
        pixels = _scaled(self._painter.frame(time), width)
        pixels.setflags(write=False)  # the same frame is returned to several callers
        return Frame(time, pixels)


def _scaled(pixels: Pixels, width: int | None) -> Pixels:
    height, full = pixels.shape[:2]
    if width is None or width >= full:
        return pixels
    size = (width, max(1, round(height * width / full)))
    return np.asarray(Image.fromarray(pixels).resize(size, Image.Resampling.BOX))


def _inside(lines: Sequence[Line], within: Segment | None) -> list[Line]:
    if within is None:
        return list(lines)
    start, end = within.start, within.end
    return [line for line in lines if line.segment.start < end and line.segment.end > start]


Rows = NDArray[np.float32]

_STOP = frozenset(
    re.findall(
        r"\w+",
        "the a an in and at of with is this that what does who where it to for or which these "
        "happens film person people somebody something there stands still sign reads says say "
        "look picture pictures anybody coat",
    )
)
_WORD = re.compile(r"[a-z0-9]+")
_PAIRS = re.compile(
    rf"\b({'|'.join(v.COLOURS)}) ({'|'.join(v.THINGS)}|coat|sign)\b"
    r"|\b(tall|round|pointed|straw) (hat|cap)\b"
)


def bag(text: str) -> dict[str, float]:
    """The content words of a text and its colour–noun pairs, with weights."""
    lower = text.lower()
    words = [BASE_OF.get(word, word) for word in _WORD.findall(lower) if word not in _STOP]
    weights = dict.fromkeys(words, 1.0)
    for match in _PAIRS.finditer(lower):
        # against 1 for a word: real encoders bind attributes a little
        weights["+".join(part for part in match.groups() if part)] = 1.5
    return weights


def _picture_bag(facts: Sequence[Fact]) -> dict[str, float]:
    """The words of a picture: deeds and the place weigh most, then signs, then idle people."""
    weights: dict[str, float] = {}
    for fact in facts:
        match fact:
            case Deed(person, verb, thing, place):
                words, weight = bag(f"{person} {verb} {thing} {place}"), 1.0
            case Sign(colour, text, place):
                words, weight = bag(f"{colour} sign {text} {place}"), 0.7
            case Presence(None, place):
                words, weight = {str(place): 1.0}, 1.0
            case _:
                words, weight = bag(f"{getattr(fact, 'person', '')}"), 0.4
        # a word counts once per picture, however many facts share it
        for word, value in words.items():
            weights[word] = max(weights.get(word, 0.0), weight * value)
    return weights


class LabEncoder:
    """The simulated encoder. ``noise=math.inf`` gives vectors without content."""

    def __init__(self, noise: float | None = None, *, seed: int = 0) -> None:
        profile = PROFILE.encoder
        self.noise = profile.noise if noise is None else noise
        self.seed = seed
        self.dim = profile.dim
        self.size = 224
        self.name = f"lab/noise={self.noise:g},seed={seed}"
        # cached rows of another profile must not be reused
        self.key = f"{self.name}|{PROFILE.hash}"
        self.logit_scale: float | None = profile.logit_scale
        self.thresholds: Mapping[str, float] = {
            "scene": _scene_cut(self.noise, profile.scene_share)
        }

    def images(self, frames: Sequence[Frame]) -> Rows:
        """One unit vector per frame, looked up by its frame code; without a code, pure noise."""
        rows = np.zeros((len(frames), self.dim), np.float32)
        for number, frame in enumerate(frames):
            moment = frame_code.read(frame.pixels)
            if moment is None:
                noise = numbers("no code", self.seed, frame.pixels.tobytes()[:4096])
                rows[number] = _unit(noise.normal(size=self.dim))
            else:
                script = make_script(moment.seed, moment.minutes)
                rows[number] = self._moment(script, moment.second)
        return rows

    def moments(self, script: Script, seconds: Sequence[int]) -> Rows:
        """One unit vector per second of a script, equal to that of its picture."""
        if not len(seconds):
            return np.zeros((0, self.dim), np.float32)
        return np.stack([self._moment(script, int(second)) for second in seconds])

    def texts(self, texts: Sequence[str]) -> Rows:
        """One unit vector per text."""
        rows = [self._text(text) for text in texts]
        return np.stack(rows) if rows else np.zeros((0, self.dim), np.float32)

    def _text(self, text: str) -> Rows:
        vector = _sum(bag(text), self.dim)
        # a text without content words still needs a direction
        return _unit(vector if vector.any() else _word("(nothing)", self.dim))

    def _moment(self, script: Script, second: int) -> Rows:
        world = (self.seed, script.seed, script.minutes)
        scene_start = script.scene_at(second).start
        of_moment = _unit(numbers("moment", *world, second).normal(size=self.dim))
        shared = _unit(numbers("scene", *world, scene_start).normal(size=self.dim))
        # neighbouring moments of a real film look alike, so part of the noise is common to a scene
        part = PROFILE.encoder.scene_share
        noise = _unit(math.sqrt(part) * shared + math.sqrt(1 - part) * of_moment)
        if math.isinf(self.noise):
            return noise  # no content is left
        content = _unit(_sum(_picture_bag(script.visible(second)), self.dim))
        return _unit(content + self.noise * noise)


@lru_cache(maxsize=4096)
def _word(word: str, dim: int) -> Rows:
    """The direction of a word."""
    return _unit(numbers("word", word).normal(size=dim))


def _sum(weights: Mapping[str, float], dim: int) -> Rows:
    total = np.zeros(dim, np.float32)
    for word, weight in weights.items():
        total += np.float32(weight) * _word(word, dim)
    return total


def _scene_cut(noise: float, scene_share: float) -> float:
    """Half the expected cosine of neighbours within a scene; across a cut it is near zero."""
    if math.isinf(noise):
        return scene_share / 2
    return (1 + noise**2 * scene_share) / (1 + noise**2) / 2


def _unit(vector: NDArray[np.floating]) -> Rows:
    length = float(np.linalg.norm(vector))
    return np.asarray(vector / (length or 1.0), np.float32)
