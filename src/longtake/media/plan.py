"""Plans which packets to decode, and in which runs, to get the wanted frames.

::

    GOP        |K......|K......|K......|K......|
    wanted        x      x                 x
    runs       [--]    [-]              [---]      from a keyframe to the last wanted frame

What lies between two runs is never decoded. If frames are wanted at the end of every group of
pictures, the runs join into one sequential pass; with short groups and sparse frames, each run
becomes a seek. The cheaper strategy follows from the table, whatever the file format.
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
    """Return the fewest packets that show every wanted position, as runs in time order."""
    drafts: list[tuple[int, int, list[int]]] = []
    for position in sorted(set(wanted), key=lambda p: (int(table.pts[p]), p)):
        entry = table.entry(position)
        # a frame whose decoding begins inside the last run extends it
        if drafts and entry <= drafts[-1][1]:
            first, last, members = drafts[-1]
            members.append(position)
            drafts[-1] = (min(first, entry), max(last, position), members)
        else:
            drafts.append((entry, position, [position]))
    return [Run(first, last, tuple(members)) for first, last, members in drafts]


def spans(runs: list[Run], *, frames: int) -> list[list[Run]]:
    """Group neighbouring runs into spans of about ``frames`` wanted frames, one per worker."""
    groups: list[list[Run]] = []
    held = frames
    for run in runs:
        if held >= frames:
            groups.append([])
            held = 0
        groups[-1].append(run)
        held += len(run.wanted)
    return groups
