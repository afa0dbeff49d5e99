"""Drawings of people, things, verb icons and signs: plain shapes that a viewer can name."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

from PIL import Image, ImageDraw, ImageFont

from longtake.lab import vocabulary as v
from longtake.lab.facts import Person, Thing

Colour = tuple[int, int, int]
INK = (24, 24, 28)
SKIN = (232, 190, 154)
PERSON = (56, 124)
THING = (52, 52)
ICON = (40, 30)


@lru_cache(maxsize=16)
def font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    """The font bundled with Pillow, so that every machine draws the same letters."""
    return ImageFont.load_default(size)


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


_THINGS: dict[str, Callable[[ImageDraw.ImageDraw, Colour], None]] = {
    "ball": _ball,
    "hoop": _hoop,
    "racket": _racket,
    "drum": _drum,
    "bell": _bell,
    "flute": _flute,
    "cup": _cup,
    "pot": _pot,
    "plate": _plate,
    "suitcase": _suitcase,
    "umbrella": _umbrella,
    "map": _map,
    "book": _book,
    "pencil": _pencil,
    "lamp": _lamp,
}


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
    letters = font(21)
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
