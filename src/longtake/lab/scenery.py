"""Backgrounds of places, drawn once per scene."""

from __future__ import annotations

from collections.abc import Callable

from PIL import Image, ImageDraw

from longtake.lab.chance import generator
from longtake.lab.script import Appearance
from longtake.lab.shapes import Colour

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


_PLACES: dict[str, Callable[[Draw, Paint], None]] = {
    "harbour": _harbour,
    "market": _market,
    "library": _library,
    "station": _station,
    "garden": _garden,
    "kitchen": _kitchen,
    "rooftop": _rooftop,
    "workshop": _workshop,
    "museum": _museum,
    "school": _school,
    "farm": _farm,
    "bridge": _bridge,
}
