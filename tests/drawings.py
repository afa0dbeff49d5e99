"""Drawn pictures: what they show is known, and no file is needed."""

import math

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from longtake.types import Frame


def as_frame(picture: Image.Image, time: float = 0.0) -> Frame:
    return Frame(time, np.asarray(picture.convert("RGB")))


def honeycomb() -> Image.Image:
    picture = Image.new("RGB", (400, 400), (120, 70, 5))
    draw = ImageDraw.Draw(picture)
    radius = 26
    for row in range(-1, 12):
        for column in range(-1, 12):
            x = column * radius * 1.75 + (row % 2) * radius * 0.875
            y = row * radius * 1.52
            corners = [math.radians(60 * k + 30) for k in range(6)]
            size = radius * 0.92
            points = [(x + size * math.cos(a), y + size * math.sin(a)) for a in corners]
            draw.polygon(points, fill=(235, 165, 20), outline=(150, 90, 10))
    return picture


def abacus() -> Image.Image:
    picture = Image.new("RGB", (400, 300), "white")
    draw = ImageDraw.Draw(picture)
    wood = (110, 60, 20)
    draw.rectangle((20, 20, 380, 280), outline=wood, width=16)
    draw.line((20, 100, 380, 100), fill=wood, width=10)
    for x in range(55, 360, 36):
        draw.line((x, 20, x, 280), fill=(60, 60, 60), width=3)
        for y in (45, 150, 175, 200, 225):
            draw.ellipse((x - 15, y - 10, x + 15, y + 12), fill=(160, 30, 20), outline="black")
    return picture


def lantern() -> Image.Image:
    picture = Image.new("RGB", (400, 400), (10, 10, 20))
    draw = ImageDraw.Draw(picture)
    draw.ellipse((60, 80, 340, 360), fill=(235, 120, 10))
    for x in (100, 150, 200, 250):
        draw.arc((x - 40, 80, x + 90, 360), 0, 360, fill=(190, 90, 5), width=4)
    light = (255, 235, 90)
    draw.polygon([(120, 190), (170, 190), (145, 140)], fill=light)
    draw.polygon([(230, 190), (280, 190), (255, 140)], fill=light)
    mouth = [(110, 250), (150, 270), (170, 255), (200, 275), (230, 255), (250, 270), (290, 250)]
    draw.polygon([*mouth, (240, 310), (160, 310)], fill=light)
    draw.rectangle((190, 50, 212, 90), fill=(60, 90, 20))
    return picture


def crossword() -> Image.Image:
    picture = Image.new("RGB", (400, 400), "white")
    draw = ImageDraw.Draw(picture)
    random, font, number = np.random.default_rng(0), ImageFont.load_default(12), 1
    for column in range(13):
        for row in range(13):
            box = (5 + column * 30, 5 + row * 30, 35 + column * 30, 35 + row * 30)
            black = random.random() < 0.2
            draw.rectangle(box, fill="black" if black else "white", outline="black")
            if not black and random.random() < 0.35:
                draw.text((box[0] + 3, box[1] + 1), str(number), fill="black", font=font)
                number += 1
    return picture


def traffic_light() -> Image.Image:
    picture = Image.new("RGB", (400, 400), (120, 170, 220))
    draw = ImageDraw.Draw(picture)
    draw.rectangle((190, 300, 210, 400), fill=(60, 60, 60))
    draw.rounded_rectangle((140, 40, 260, 310), 18, fill=(25, 25, 25))
    for y, colour in ((85, (235, 30, 30)), (175, (70, 60, 10)), (265, (10, 60, 20))):
        draw.ellipse((160, y - 40, 240, y + 40), fill=colour)
    return picture


def card(*lines: str, size: tuple[int, int] = (640, 360), height: int = 40) -> Image.Image:
    """White text on a dark card."""
    picture = Image.new("RGB", size, (20, 24, 40))
    draw = ImageDraw.Draw(picture)
    font = ImageFont.load_default(height)
    for number, line in enumerate(lines):
        place = (size[0] / 2, size[1] * (number + 1) / (len(lines) + 1))
        draw.text(place, line, font=font, fill="white", anchor="mm")
    return picture


def noise(height: int, width: int, seed: int = 0, time: float = 0.0) -> Frame:
    random = np.random.default_rng(seed)
    return Frame(time, random.integers(0, 256, (height, width, 3), dtype=np.uint8))


KNOWN = {
    "honeycomb": honeycomb,
    "abacus": abacus,
    "jack-o'-lantern": lantern,
    "crossword puzzle": crossword,
    "traffic light": traffic_light,
}
"""Drawings by ImageNet class."""
