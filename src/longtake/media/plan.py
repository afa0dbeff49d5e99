"""Which packets to decode, in which runs, for the frames that are wanted.

::

    GOP        |K......|K......|K......|K......|
    wanted        x      x                 x
    runs       [--]    [-]              [---]       each begins at a keyframe, ends at its last wanted frame

What lies between two runs is never decoded. With wanted frames at the end of every group of pictures the
runs join into one sequential pass; with short groups and sparse frames they become a seek each. The cheaper
strategy follows from the table, no file format is asked about.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from longtake.media.packets import PacketTable


@dataclass(frozen=True)
class Run:
    """Packets ``first`` to ``last`` in decode order, and the wanted ones among them by time."""

    first: int
    last: int
    wanted: tuple[int, ...]


def plan(table: PacketTable, wanted: Iterable[int]) -> list[Run]:
    """The fewest packets that show every wanted position, as runs in time order."""
    drafts: list[tuple[int, int, list[int]]] = []
    for position in sorted(set(wanted), key=lambda p: (int(table.pts[p]), p)):
        entry = table.entry(position)
        if drafts and entry <= drafts[-1][1]:
            first, last, members = drafts[-1]
            members.append(position)
            drafts[-1] = (min(first, entry), max(last, position), members)
        else:
            drafts.append((entry, position, [position]))
    return [Run(first, last, tuple(members)) for first, last, members in drafts]


def spans(runs: list[Run], *, frames: int) -> list[list[Run]]:
    """Neighbouring runs in groups of about ``frames`` wanted frames: what one worker does at a time."""
    groups: list[list[Run]] = []
    held = frames
    for run in runs:
        if held >= frames:
            groups.append([])
            held = 0
        groups[-1].append(run)
        held += len(run.wanted)
    return groups
