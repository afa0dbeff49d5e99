"""Draws the frames of a script: one background per scene, with what moves on top."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from PIL import Image, ImageDraw

from longtake.lab.code import Moment, stamp
from longtake.lab.facts import Deed, Happening, Person, Sign, Thing
from longtake.lab.scenery import WIDTH, background
from longtake.lab.script import Appearance, Scene, Script
from longtake.lab.shapes import INK, person_figure, sign_board, thing_picture, verb_icon
from longtake.types import Pixels

FEET = 262
"""The y coordinate of the ground that people stand on."""


class Painter:
    """Draws any moment of a script; backgrounds and shapes are drawn once and cached."""

    def __init__(self, script: Script, *, code: bool = True) -> None:
        self._script = script
        self._code = code

    def frame(self, time: float) -> Pixels:
        """The frame at a given time, 480 × 270."""
        time = min(max(0.0, time), self._script.duration - 0.001)
        scene = self._script.scene_at(time)
        image = _backdrop(scene.place, scene.look).copy()
        _move(image, scene.look, time)
        for sign in scene.signs:
            if sign.start <= time < sign.end:
                _hang(image, sign)
        doing = _deeds_by_person(scene, time)
        for number, person in enumerate(scene.people):
            # people sway a little, so that two frames are never quite the same
            x = _column(scene, number) + round(2 * math.sin(time * 1.7 + number))
            figure = person_figure(person)
            image.paste(figure, (x, FEET - figure.height), figure)
            if person in doing:
                _act(image, doing[person], x, time)
        # stamped last, so that nothing covers the code
        pixels = np.array(image)
        if self._code:
            stamp(pixels, Moment(self._script.seed, self._script.minutes, int(time)))
        return pixels


def _deeds_by_person(scene: Scene, time: float) -> dict[Person | None, Happening]:
    doing: dict[Person | None, Happening] = {}
    for happening in scene.deeds:
        if happening.start <= time < happening.end and isinstance(happening.fact, Deed):
            doing[happening.fact.person] = happening
    return doing


@lru_cache(maxsize=512)
def _backdrop(place: str, look: Appearance) -> Image.Image:
    return background(place, look)


def _column(scene: Scene, number: int) -> int:
    """Left edge of a person: people stand apart and never cover the frame code."""
    middle = (len(scene.people) - 1) / 2
    return 196 + round((number - middle) * 130)


def _hang(image: Image.Image, sign: Happening) -> None:
    assert isinstance(sign.fact, Sign)
    board = sign_board(str(sign.fact.colour), str(sign.fact.text))
    image.paste(board, ((WIDTH - board.width) // 2, 12), board)


def _act(image: Image.Image, deed: Happening, x: int, time: float) -> None:
    """Draw the thing in the hand, moving as the verb says, and the verb's icon beside the head."""
    assert isinstance(deed.fact, Deed)
    assert deed.fact.thing is not None
    done = (time - deed.start) / (deed.end - deed.start)
    thing = thing_picture(deed.fact.thing)
    swing = math.sin(time * 6)
    left, top = x + 52, 176
    match deed.fact.verb:
        case "lift":
            top = round(206 - 70 * done)
        case "lower":
            top = round(136 + 70 * done)
        case "throw":
            phase = time % 2 / 2
            left, top = left + round(22 * phase), top - round(70 * math.sin(math.pi * phase))
        case "spin":
            thing = _turned(deed.fact.thing.colour, deed.fact.thing.kind, int(time * 5) % 8)
        case "shake":
            left += round(7 * swing)
        case "wash" | "paint":
            top += round(4 * swing)
        case "hide":
            thing = _sunk(deed.fact.thing.colour, deed.fact.thing.kind, min(24, round(24 * done)))
        case "open" | "close":
            spread = done if deed.fact.verb == "open" else 1 - done
            _doors(image, left, top, spread)
    image.paste(thing, (left, top), thing)
    icon = verb_icon(str(deed.fact.verb))
    image.paste(icon, (x + 56, 104), icon)


def _doors(image: Image.Image, left: int, top: int, spread: float) -> None:
    """Two flaps behind the thing that move apart or together."""
    draw = ImageDraw.Draw(image)
    gap = round(24 * spread)
    for edge in (left + 20 - gap, left + 26 + gap):
        draw.rectangle((edge, top - 4, edge + 6, top + 56), fill=INK)


@lru_cache(maxsize=256)
def _turned(colour: str, kind: str, eighths: int) -> Image.Image:
    return thing_picture(Thing(colour, kind)).rotate(-45 * eighths)


@lru_cache(maxsize=512)
def _sunk(colour: str, kind: str, depth: int) -> Image.Image:
    """A thing covered from below by a dark box, down to ``depth`` pixels."""
    image = thing_picture(Thing(colour, kind)).copy()
    ImageDraw.Draw(image).rectangle((0, 50 - depth, 51, 51), fill=(*INK, 255))
    return image


def _move(image: Image.Image, look: Appearance, time: float) -> None:
    """Motion in the background; it carries no information."""
    if look.motion == "still":
        return
    draw = ImageDraw.Draw(image)
    for number in range(8):
        phase = (look.variant * 13 + number * 61) % 480
        if look.motion == "rain":
            y = (phase * 3 + int(time * 150)) % 190
            draw.line([(phase, y), (phase - 3, y + 10)], fill=(120, 140, 170), width=1)
        elif look.motion == "clouds":
            if number < 3:
                x = (phase + int(time * 9)) % 560 - 80
                draw.ellipse((x, 6 + number * 9, x + 70, 26 + number * 9), fill=(236, 238, 242))
        elif look.motion == "leaves":
            x, y = (phase + int(time * 24)) % 480, (phase * 2 + int(time * 40)) % 200
            draw.ellipse((x, y, x + 6, y + 4), fill=(190, 120, 40))
        else:
            glow = 150 + round(100 * math.sin(time * 2 + number))
            top = 4 + number % 3 * 6
            draw.ellipse((phase, top, phase + 8, top + 8), fill=(glow, glow, 60))
