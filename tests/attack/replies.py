"""What reads a model's words, a server's bodies and a demuxer's packets, as readers of a file."""

import json
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

from pydantic import BaseModel

from longtake.llm.chat import Card, Reply, say
from longtake.llm.http import Response
from longtake.llm.openai_protocol import read_reply
from longtake.llm.structured.ask import ReplyForm
from longtake.llm.structured.reader import UnreadableReply, parse_reply, read_known_fields
from longtake.llm.structured.schema import Brief, Letter
from longtake.llm.structured.tolerant_json import NotJson, lists, objects, parse
from longtake.types import Question
from longtake.video.packets import _table, plan

QUESTION = Question("Which?", ("red", "green", "blue"))


class Vote(BaseModel):
    """One of each kind of field."""

    choice: Letter
    confidence: int
    reason: Brief = ""
    moments: list[int] = []


SOUND = (
    '```json\n{"choice": "B", "confidence": 2, "reason": "a \\"sign\\"", "moments": [1, 2]}\n```'
)
BODY = json.dumps(
    {
        "model": "m",
        "choices": [{"finish_reason": "stop", "message": {"content": SOUND, "tool_calls": []}}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 4},
    }
)
PACKETS = json.dumps(
    {
        "rows": [[0, 0, True, True], [2, 1, False, True], [1, 2, False, True]],
        "tick": 0.04,
        "rate": 25.0,
        "last": 1,
    }
)


def reply(folder: Path) -> object:
    """A reply in the form of a vote, read in every way that a step reads it."""
    text = _text(folder / "reply.txt")
    form = ReplyForm.of(Vote, {"question": QUESTION})
    try:
        read_known_fields(text, Vote, QUESTION)
        parse_reply(text, Vote, QUESTION)
        return form.read(Reply(text))
    except UnreadableReply:
        return None


def loose(folder: Path) -> object:
    """Every object and list in a text, and the text itself."""
    text = _text(folder / "loose.txt")
    values: list[object] = []
    for reader in (objects, lists, parse):
        with suppress(NotJson):
            values.append(reader(text))
    return values


def body(folder: Path) -> object:
    """A server's body."""
    response = Response(200, _text(folder / "body.json"), "m")
    return read_reply(Card("m"), response.json(), [say("user", "hello")], 0.1)


def packets(folder: Path) -> object:
    """Packets as a demuxer may report them: whole numbers of 64 bits, or nothing."""
    try:
        told = json.loads(_text(folder / "packets.json"))
        rows = [(_stamp(a), _stamp(b), bool(c), bool(d)) for a, b, c, d in told["rows"]]
        tick, rate, last = float(told["tick"]), float(told["rate"]), _stamp(told["last"])
    except (ValueError, TypeError, KeyError, RecursionError, OverflowError):
        return None  # no demuxer reports that
    if not rows or not 1e-9 <= tick <= 1e9 or not 0 <= rate <= 1e9:
        return None
    form, streams = SimpleNamespace(name="matroska"), SimpleNamespace(audio=[])
    stream = SimpleNamespace(
        time_base=_fraction(tick),
        average_rate=_fraction(rate) if rate else None,
        guessed_rate=None,
        base_rate=None,
        start_time=None,
    )
    table = _table(rows, SimpleNamespace(format=form, streams=streams), stream, max(0, last))
    times = [0.0, table.duration / 2, table.duration]
    return plan(table, table.on_screen(times).tolist())


def _fraction(value: float) -> Fraction:
    return Fraction(value).limit_denominator(10**9)


def _stamp(value: object) -> int:
    if not isinstance(value, int) or not -(2**62) <= value <= 2**62:
        raise ValueError("not a time stamp")
    return int(value)


def _text(file: Path) -> str:
    return file.read_bytes().decode("utf-8", "replace")
