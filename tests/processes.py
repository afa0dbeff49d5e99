"""What tests run in processes of their own; a spawned process can import this, but not a test module."""

from __future__ import annotations

from longtake.footage.store import LayerKey, Store
from longtake.footage.text import TextStore
from longtake.models.cache import ReplyStore
from longtake.types import Line, Segment


def hold_film(root, fingerprint, held, release):
    """Hold the right to build a film until told otherwise."""
    with Store(root).film(fingerprint).building():
        held.set()
        release.wait(30)


def write_line(path, number):
    """Add one line to a text store."""
    segment = Segment(number, number + 1)
    TextStore(path).add(LayerKey("speech", 1), [Line(segment, f"line {number}")], [segment])


def fill_reply_cache(folder, start):
    """Write forty replies, twenty of which another process writes too."""
    store = ReplyStore(folder)
    for number in range(start, start + 40):
        store.put(str(number % 60), "m", "p", {"text": str(number % 60)})
