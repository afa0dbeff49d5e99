"""Draws the frames of a world: people, things, verb icons, signs and places as plain shapes."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from longtake.types import Pixels
from longtake_bench.lab import vocabulary as v
from longtake_bench.lab.facts import Deed, Happening, Person, Sign, Thing
from longtake_bench.lab.frame_code import Moment, stamp
from longtake_bench.lab.profile import generator
from longtake_bench.lab.world import Appearance, Scene, Script

Colour = tuple[int, int, int]
INK = (24, 24, 28)
SKIN = (232, 190, 154)
PERSON = (56, 124)
THING = (52, 52)
ICON = (40, 30)


@lru_cache(maxsize=64)
def person_figure(who: Person) -> Image.Image:
    """A person, seen from the front."""
    image, draw = _blank(PERSON)
    coat = v.COLOURS[who.coat]
    draw.rectangle((17, 96, 25, 122), fill=(62, 60, 74))
    draw.rectangle((31, 96, 39, 122), fill=(62, 60, 74))
    draw.polygon([(16, 52), (40, 52), (50, 100), (6, 100)], fill=coat, outline=INK)
    draw.line([(16, 56), (4, 82)], fill=coat, width=8)
    draw.line([(40, 56), (52, 82)], fill=coat, width=8)
    draw.line([(28, 54), (28, 98)], fill=INK)
    draw.ellipse((16, 26, 40, 52), fill=SKIN, outline=INK)
    draw.ellipse((22, 36, 25, 39), fill=INK)
    draw.ellipse((31, 36, 34, 39), fill=INK)
    draw.arc((22, 38, 34, 47), 20, 160, fill=INK)
    dark = (70, 52, 40)
    if who.hat == "tall hat":
        draw.rectangle((18, 2, 38, 28), fill=INK)
        draw.rectangle((10, 26, 46, 31), fill=INK)
    elif who.hat == "round cap":
        draw.pieslice((14, 14, 42, 46), 180, 360, fill=(40, 70, 120), outline=INK)
        draw.rectangle((36, 28, 50, 32), fill=(40, 70, 120))
    elif who.hat == "pointed hat":
        draw.polygon([(28, 0), (14, 32), (42, 32)], fill=dark, outline=INK)
    else:
        draw.ellipse((4, 22, 52, 34), fill=(222, 196, 120), outline=dark)
        draw.pieslice((16, 12, 40, 40), 180, 360, fill=(222, 196, 120), outline=dark)
    return image


@lru_cache(maxsize=256)
def thing_picture(what: Thing) -> Image.Image:
    """A thing in its colour."""
    image, draw = _blank(THING)
    _THINGS[what.kind](draw, v.COLOURS[what.colour])
    return image


def _ball(d: ImageDraw.ImageDraw, c: Colour) -> None:
    d.ellipse((6, 6, 46, 46), fill=c, outline=INK, width=2)
    d.arc((-14, 6, 26, 46), 300, 60, fill=INK, width=2)


def _hoop(d: ImageDraw.ImageDraw, c: Colour) -> None:
    d.ellipse((4, 4, 48, 48), outline=INK, width=9)
    d.ellipse((6, 6, 46, 46), outline=c, width=6)


def _racket(d: ImageDraw.ImageDraw, c: Colour) -> None:
    d.ellipse((12, 2, 40, 32), outline=c, width=5)
    for x in (20, 26, 32):
        d.line([(x, 5), (x, 29)], fill=INK)
    d.rectangle((23, 31, 29, 50), fill=c, outline=INK)


def _drum(d: ImageDraw.ImageDraw, c: Colour) -> None:
    d.rectangle((6, 14, 46, 42), fill=c, outline=INK)
    d.ellipse((6, 8, 46, 22), fill=(250, 244, 230), outline=INK)
    d.line([(4, 2), (22, 14)], fill=INK, width=3)
    d.line([(48, 2), (30, 14)], fill=INK, width=3)


def _bell(d: ImageDraw.ImageDraw, c: Colour) -> None:
    d.pieslice((10, 4, 42, 52), 180, 360, fill=c, outline=INK)
    d.rectangle((6, 28, 46, 36), fill=c, outline=INK)
    d.ellipse((21, 36, 31, 46), fill=INK)


def _flute(d: ImageDraw.ImageDraw, c: Colour) -> None:
    d.rectangle((2, 21, 50, 31), fill=c, outline=INK)
    for x in range(12, 46, 8):
        d.ellipse((x, 24, x + 4, 28), fill=INK)


def _cup(d: ImageDraw.ImageDraw, c: Colour) -> None:
    d.polygon([(8, 14), (38, 14), (34, 46), (12, 46)], fill=c, outline=INK)
    d.arc((30, 18, 50, 38), 270, 100, fill=INK, width=4)


def _pot(d: ImageDraw.ImageDraw, c: Colour) -> None:
    d.rectangle((8, 20, 44, 46), fill=c, outline=INK)
    d.rectangle((0, 24, 8, 29), fill=INK)
    d.rectangle((44, 24, 52, 29), fill=INK)
    d.rectangle((6, 14, 46, 20), fill=c, outline=INK)
    d.ellipse((23, 7, 29, 14), fill=INK)


def _plate(d: ImageDraw.ImageDraw, c: Colour) -> None:
    d.ellipse((2, 14, 50, 38), fill=c, outline=INK, width=2)
    d.ellipse((13, 20, 39, 32), outline=INK)


def _suitcase(d: ImageDraw.ImageDraw, c: Colour) -> None:
    d.arc((17, 4, 35, 24), 180, 360, fill=INK, width=4)
    d.rectangle((4, 14, 48, 44), fill=c, outline=INK, width=2)
    d.line([(13, 14), (13, 44)], fill=INK, width=2)
    d.line([(39, 14), (39, 44)], fill=INK, width=2)


def _umbrella(d: ImageDraw.ImageDraw, c: Colour) -> None:
    d.pieslice((2, 4, 50, 48), 180, 360, fill=c, outline=INK)
    d.line([(26, 26), (26, 46)], fill=INK, width=3)
    d.arc((16, 40, 28, 52), 0, 180, fill=INK, width=3)


def _map(d: ImageDraw.ImageDraw, c: Colour) -> None:
    sheet = [(4, 12), (18, 6), (34, 12), (48, 6), (48, 40), (34, 46), (18, 40), (4, 46)]
    d.polygon(sheet, fill=c, outline=INK)
    d.line([(18, 6), (18, 40)], fill=INK)
    d.line([(34, 12), (34, 46)], fill=INK)
    d.line([(8, 36), (22, 22), (30, 32), (44, 16)], fill=(120, 20, 20), width=2)


def _book(d: ImageDraw.ImageDraw, c: Colour) -> None:
    d.polygon([(2, 12), (26, 18), (50, 12), (50, 42), (26, 48), (2, 42)], fill=c, outline=INK)
    d.line([(26, 18), (26, 48)], fill=INK, width=3)


def _pencil(d: ImageDraw.ImageDraw, c: Colour) -> None:
    d.polygon([(8, 38), (36, 4), (46, 12), (17, 46)], fill=c, outline=INK)
    d.polygon([(8, 38), (17, 46), (3, 50)], fill=SKIN, outline=INK)


def _lamp(d: ImageDraw.ImageDraw, c: Colour) -> None:
    d.polygon([(16, 4), (36, 4), (46, 26), (6, 26)], fill=c, outline=INK)
    d.rectangle((24, 26, 28, 44), fill=INK)
    d.rectangle((14, 44, 38, 49), fill=INK)


_THINGS = {
    draw.__name__[1:]: draw
    for draw in (
        *(_ball, _hoop, _racket, _drum, _bell, _flute, _cup, _pot, _plate, _suitcase),
        *(_umbrella, _map, _book, _pencil, _lamp),
    )
}
"""What draws each kind of thing."""


@lru_cache(maxsize=16)
def verb_icon(verb: str) -> Image.Image:
    """The icon beside a head that shows what is being done."""
    image, d = _blank(ICON)
    d.ellipse((0, 0, 39, 29), fill=(255, 255, 255), outline=INK)
    if verb in ("lift", "lower"):
        tip, tail = (5, 24) if verb == "lift" else (24, 5)
        d.line([(20, tail), (20, tip)], fill=INK, width=4)
        mid = 14 if verb == "lift" else 15
        d.polygon([(12, mid), (28, mid), (20, tip)], fill=INK)
    elif verb in ("open", "close"):
        for side in (-1, 1):
            x = 20 + side * (9 if verb == "open" else 5)
            point = side * (5 if verb == "open" else -5)
            d.polygon([(x, 8), (x, 22), (x + point, 15)], fill=INK)
        d.line([(20, 6), (20, 24)], fill=INK, width=2)
    elif verb == "throw":
        d.arc((6, 6, 32, 40), 190, 330, fill=INK, width=3)
        d.ellipse((29, 11, 35, 17), fill=INK)
    elif verb == "spin":
        d.arc((11, 6, 29, 24), 300, 230, fill=INK, width=3)
        d.polygon([(25, 3), (31, 10), (22, 11)], fill=INK)
    elif verb == "shake":
        d.line([(7, 15), (12, 8), (17, 22), (22, 8), (27, 22), (32, 15)], fill=INK, width=3)
    elif verb == "wash":
        for x, y in ((12, 9), (20, 14), (28, 9)):
            d.polygon([(x, y - 4), (x - 4, y + 4), (x + 4, y + 4)], fill=(40, 110, 210))
            d.ellipse((x - 4, y, x + 4, y + 8), fill=(40, 110, 210))
    elif verb == "paint":
        d.line([(10, 23), (24, 11)], fill=(120, 80, 40), width=3)
        d.polygon([(22, 8), (31, 5), (27, 14)], fill=(200, 40, 40))
    else:
        d.arc((7, 9, 33, 27), 180, 360, fill=INK, width=3)
        d.line([(8, 22), (32, 6)], fill=(200, 30, 30), width=4)
    return image


@lru_cache(maxsize=128)
def sign_board(colour: str, text: str) -> Image.Image:
    """A board with text."""
    # bundled with Pillow, so that every machine draws the same letters
    letters = ImageFont.load_default(21)
    left, top, right, bottom = letters.getbbox(text)
    size = (math.ceil(right - left) + 26, math.ceil(bottom - top) + 22)
    image = Image.new("RGBA", size, (*INK, 255))
    draw = ImageDraw.Draw(image)
    draw.rectangle((3, 3, image.width - 4, image.height - 4), fill=v.COLOURS[colour])
    light = colour in ("yellow", "pink", "white", "orange")
    ink = INK if light else (255, 255, 255)
    draw.text((13 - left, 11 - top), text, font=letters, fill=ink)
    return image


def _blank(size: tuple[int, int]) -> tuple[Image.Image, ImageDraw.ImageDraw]:
    image = Image.new("RGBA", size, (0, 0, 0, 0))
    return image, ImageDraw.Draw(image)


Draw = ImageDraw.ImageDraw
Paint = Callable[[int, int, int], Colour]
"""Turns a colour into the same colour in the light of the episode."""
WIDTH, HEIGHT, GROUND = 480, 270, 196

TINTS: tuple[tuple[float, float, float], ...] = (
    (1.0, 1.0, 1.0),
    (1.0, 0.9, 0.76),
    (0.74, 0.82, 1.0),
    (0.86, 1.0, 0.84),
    (1.0, 0.8, 0.86),
    (0.72, 0.72, 0.78),
)
"""Light by palette: noon, evening, dawn, spring, sunset, overcast."""

BASES: dict[str, tuple[Colour, Colour]] = {
    "harbour": ((170, 208, 232), (150, 140, 120)),
    "market": ((226, 220, 196), (190, 170, 140)),
    "library": ((150, 112, 84), (110, 78, 56)),
    "station": ((196, 200, 206), (120, 120, 126)),
    "garden": ((190, 224, 240), (112, 168, 92)),
    "kitchen": ((236, 232, 214), (206, 196, 186)),
    "rooftop": ((128, 160, 208), (132, 128, 132)),
    "workshop": ((176, 160, 140), (120, 104, 88)),
    "museum": ((224, 216, 228), (190, 178, 170)),
    "school": ((214, 226, 200), (176, 150, 112)),
    "farm": ((196, 222, 238), (176, 160, 84)),
    "bridge": ((186, 206, 214), (150, 146, 140)),
}
"""Colour of the wall or sky, and of the ground, by place."""


@lru_cache(maxsize=512)
def background(place: str, look: Appearance) -> Image.Image:
    """The background of a place in an episode's light."""
    tint = TINTS[look.palette % len(TINTS)]
    rng = generator("look", place, look.variant)
    back, floor = (_tinted(colour, tint, rng.uniform(0.92, 1.04)) for colour in BASES[place])
    image = Image.new("RGB", (WIDTH, HEIGHT), back)
    draw = ImageDraw.Draw(image)
    draw.rectangle((0, GROUND, WIDTH, HEIGHT), fill=floor)
    _PLACES[place](draw, lambda r, g, b: _tinted((r, g, b), tint, 1.0))
    return image


def _tinted(colour: Colour, tint: tuple[float, float, float], gain: float) -> Colour:
    channels = zip(colour, tint, strict=True)
    red, green, blue = (min(255, int(value * factor * gain)) for value, factor in channels)
    return red, green, blue


def _harbour(d: Draw, c: Paint) -> None:
    d.rectangle((0, 150, WIDTH, GROUND), fill=c(60, 110, 170))
    for x in range(0, WIDTH, 40):
        d.arc((x, 158, x + 40, 176), 200, 340, fill=c(210, 230, 245), width=2)
    d.polygon([(310, 150), (430, 150), (410, 176), (330, 176)], fill=c(110, 60, 40))
    d.rectangle((366, 92, 370, 150), fill=c(60, 40, 30))
    d.polygon([(372, 94), (372, 142), (420, 142)], fill=c(246, 240, 226))


def _market(d: Draw, c: Paint) -> None:
    for x in range(0, WIDTH, 24):
        stripe = c(206, 70, 60) if x // 24 % 2 else c(244, 240, 232)
        awning = [(x, 96), (x + 24, 96), (x + 24, 122), (x + 12, 130), (x, 122)]
        d.polygon(awning, fill=stripe)
    d.rectangle((0, 168, WIDTH, GROUND), fill=c(150, 106, 66))
    for x in range(12, WIDTH, 34):
        d.ellipse((x, 156, x + 16, 172), fill=c(220, 150 - x % 3 * 40, 50))


def _library(d: Draw, c: Paint) -> None:
    for y in (40, 92, 144):
        d.rectangle((0, y + 44, WIDTH, y + 50), fill=c(74, 48, 32))
        for x in range(4, WIDTH, 13):
            shade = (x * 7 + y) % 5
            spine = c(120 + shade * 22, 70 + (x * 3) % 90, 60 + (x * 5) % 80)
            d.rectangle((x, y + 8 + shade * 3, x + 9, y + 44), fill=spine)


def _station(d: Draw, c: Paint) -> None:
    d.rectangle((0, 30, WIDTH, 44), fill=c(90, 92, 100))
    for x in range(30, WIDTH, 120):
        d.rectangle((x, 44, x + 8, GROUND), fill=c(100, 102, 110))
    d.rectangle((60, 110, 420, 184), fill=c(50, 96, 116), outline=c(30, 30, 30))
    for x in range(76, 400, 56):
        d.rectangle((x, 122, x + 38, 148), fill=c(220, 236, 244))
    d.line([(0, 188), (WIDTH, 188)], fill=c(60, 56, 52), width=4)


def _garden(d: Draw, c: Paint) -> None:
    for x in (40, 150, 330, 440):
        d.rectangle((x - 6, 120, x + 6, GROUND), fill=c(110, 76, 46))
        d.ellipse((x - 40, 60, x + 40, 136), fill=c(60, 130, 60))
    for x in range(14, WIDTH, 26):
        d.ellipse((x, 186, x + 9, 195), fill=c(230, 90 + x % 4 * 40, 130))


def _kitchen(d: Draw, c: Paint) -> None:
    d.rectangle((0, 130, WIDTH, GROUND), fill=c(170, 140, 110))
    for x in range(0, WIDTH, 80):
        d.rectangle((x + 6, 140, x + 74, 190), outline=c(90, 70, 52), width=2)
    d.rectangle((190, 118, 290, 196), fill=c(210, 212, 216), outline=c(60, 60, 60))
    d.rectangle((204, 146, 276, 188), fill=c(50, 50, 56))
    d.polygon([(206, 30), (274, 30), (300, 70), (180, 70)], fill=c(150, 152, 158))


def _rooftop(d: Draw, c: Paint) -> None:
    for number, x in enumerate(range(0, WIDTH, 60)):
        top = 70 + (number * 37) % 70
        d.rectangle((x, top, x + 52, GROUND), fill=c(78, 84, 104))
        for y in range(top + 8, GROUND - 8, 16):
            d.rectangle((x + 8, y, x + 16, y + 8), fill=c(240, 220, 140))
            d.rectangle((x + 32, y, x + 40, y + 8), fill=c(240, 220, 140))
    d.rectangle((0, GROUND - 8, WIDTH, GROUND), fill=c(96, 92, 92))


def _workshop(d: Draw, c: Paint) -> None:
    d.rectangle((0, 150, WIDTH, 162), fill=c(96, 66, 40))
    d.rectangle((30, 162, 44, GROUND), fill=c(96, 66, 40))
    d.rectangle((436, 162, 450, GROUND), fill=c(96, 66, 40))
    for x in (70, 170, 300, 400):
        d.ellipse((x - 26, 50, x + 26, 102), fill=c(110, 112, 118))
        d.ellipse((x - 9, 67, x + 9, 85), fill=c(176, 160, 140))
        d.rectangle((x - 4, 42, x + 4, 110), fill=c(110, 112, 118))
        d.rectangle((x - 34, 72, x + 34, 80), fill=c(110, 112, 118))


def _museum(d: Draw, c: Paint) -> None:
    d.polygon([(20, 60), (240, 10), (460, 60)], fill=c(206, 198, 186), outline=c(120, 110, 100))
    for x in range(40, WIDTH - 30, 76):
        d.rectangle((x, 66, x + 26, GROUND), fill=c(240, 236, 228), outline=c(150, 140, 130))
    d.rectangle((20, 60, 460, 70), fill=c(206, 198, 186))


def _school(d: Draw, c: Paint) -> None:
    d.rectangle((60, 60, 420, 168), fill=c(36, 74, 56), outline=c(130, 90, 50), width=6)
    d.line([(90, 96), (190, 96)], fill=c(230, 234, 230), width=2)
    d.line([(90, 116), (160, 116)], fill=c(230, 234, 230), width=2)
    d.polygon([(300, 146), (340, 90), (380, 146)], outline=c(230, 234, 230))


def _farm(d: Draw, c: Paint) -> None:
    d.rectangle((300, 100, 430, GROUND), fill=c(160, 50, 44))
    d.polygon([(290, 100), (365, 44), (440, 100)], fill=c(90, 60, 52))
    d.rectangle((346, 140, 386, GROUND), fill=c(236, 226, 210))
    for x in range(0, 290, 34):
        d.rectangle((x, 160, x + 8, GROUND), fill=c(236, 230, 214))
    d.rectangle((0, 168, 290, 175), fill=c(236, 230, 214))


def _bridge(d: Draw, c: Paint) -> None:
    for x in (100, 380):
        d.rectangle((x - 8, 30, x + 8, GROUND), fill=c(150, 60, 50))
    d.arc((-180, -150, 100, 130), 0, 90, fill=c(150, 60, 50), width=4)
    d.arc((100, -120, 380, 150), 0, 180, fill=c(150, 60, 50), width=4)
    d.arc((380, -150, 660, 130), 90, 180, fill=c(150, 60, 50), width=4)
    for x in range(0, WIDTH, 28):
        d.line([(x, 140), (x, 176)], fill=c(110, 50, 44), width=2)
    d.rectangle((0, 172, WIDTH, 184), fill=c(120, 116, 112))


_PLACES = {
    draw.__name__[1:]: draw
    for draw in (
        *(_harbour, _market, _library, _station, _garden, _kitchen, _rooftop, _workshop),
        *(_museum, _school, _farm, _bridge),
    )
}
"""What draws each place."""


class Painter:
    """Draws any moment of a script; backgrounds and shapes are drawn once and cached."""

    def __init__(self, script: Script, *, code: bool = True) -> None:
        self._script = script
        self._code = code

    def frame(self, time: float) -> Pixels:
        """The frame at a given time, 480 × 270."""
        time = min(max(0.0, time), self._script.duration - 0.001)
        scene = self._script.scene_at(time)
        image = background(scene.place, scene.look).copy()
        _move(image, scene.look, time)
        for sign in scene.signs:
            if sign.start <= time < sign.end and isinstance(sign.fact, Sign):
                board = sign_board(str(sign.fact.colour), str(sign.fact.text))
                image.paste(board, ((WIDTH - board.width) // 2, 12), board)
        doing = {}
        for deed in scene.deeds:
            if deed.start <= time < deed.end and isinstance(deed.fact, Deed):
                doing[deed.fact.person] = deed
        for number, person in enumerate(scene.people):
            # people sway a little, so that two frames are never quite the same
            x = _column(scene, number) + round(2 * math.sin(time * 1.7 + number))
            figure = person_figure(person)
            image.paste(figure, (x, 262 - figure.height), figure)
            if person in doing:
                _act(image, doing[person], x, time)
        # stamped last, so that nothing covers the code
        pixels = np.array(image)
        if self._code:
            stamp(pixels, Moment(self._script.seed, self._script.minutes, int(time)))
        return pixels


def _column(scene: Scene, number: int) -> int:
    """Left edge of a person: people stand apart and never cover the frame code."""
    middle = (len(scene.people) - 1) / 2
    return 196 + round((number - middle) * 130)


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
            thing = thing.rotate(-45 * (int(time * 5) % 8))
        case "shake":
            left += round(7 * swing)
        case "wash" | "paint":
            top += round(4 * swing)
        case "hide":
            # covered from below by a dark box
            thing, depth = thing.copy(), min(24, round(24 * done))
            ImageDraw.Draw(thing).rectangle((0, 50 - depth, 51, 51), fill=(*INK, 255))
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
