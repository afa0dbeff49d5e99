"""A lab film, its questions, and a model with perfect sight to ask them."""

from __future__ import annotations

from unit.lab.asking import model

from longtake._util.timecode import clock
from longtake.lab.film import make_world
from longtake.lab.footage import LabFootage
from longtake.llm.chat import Image, Options, say

WORLD = make_world(3, 30, 80)
SCRIPT = WORLD.script
FOOTAGE = LabFootage(SCRIPT)
SHARP = model(acuity=1.0)
LIST = {"type": "array", "items": {"type": "string"}}


def question(kind, start="", options=True):
    return next(
        q
        for q in WORLD.questions
        if q.kind == kind and q.text.startswith(start) and bool(q.options) == options
    )


def frames(asked):
    return FOOTAGE.at([segment.middle for segment in asked.evidence])


def noted(asked):
    """What a perfect captioner would note about the evidence."""
    lines = []
    for frame in frames(asked):
        said = SHARP.complete([say("user", "Describe.", Image(frame))], Options()).text
        lines.append(f"[{clock(frame.time)}] {said}")
    return "\n".join(lines)
