"""What two checkouts find in the same clips: spoken lines, on-screen lines and search hits.

    python benchmarks/findings.py CLIP … --before CHECKOUT [--folder build/findings]

Each clip is indexed by each checkout in a cache of its own, which is kept: clips that are indexed
are only compared. A line counts as found by both if the other side has its words, in one or two
lines, within three seconds. The table shows how many lines and first hits agree; below it stand the
lines that only one side has, to be judged by eye.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from index import ROOT, longtake, stored
from index_truth import TRUTH

from longtake.algorithms import phrases
from longtake.timecode import clock

NEAR = 3.0
"""Seconds by which lines and hits may lie apart."""
KINDS = ("speech", "onscreen")
PICTURES = ("a person", "a street")
"""Pictures that every clip is searched for."""


@dataclass
class Found:
    """What one checkout found in a clip."""

    lines: dict[str, list[Any]]
    """By kind: start, end and text."""
    hits: dict[str, float | None] = field(default_factory=dict)
    """The time of the first hit by query."""


def find(root: Path, clip: Path, cache: Path) -> Found:
    """Index a clip unless that was done before, and search it for what is known to be there."""
    if not (cache / "films").is_dir():
        longtake(root, cache, "index", str(clip))
    found = Found(stored(cache))
    for query in queries(clip):
        said, _ = longtake(root, cache, "search", str(clip), query, "--json")
        hits = json.loads(said)["films"][0]["hits"]
        found.hits[query] = hits[0]["time"] if hits else None
    return found


def queries(clip: Path) -> list[str]:
    """The pictures and some of the words that are known to be in a clip."""
    known = TRUTH.get(clip.stem, {})
    return [
        *known.get("pictures", []),
        *known.get("speech", [])[:4],
        *known.get("onscreen", [])[:4],
    ]


def missing(lines: Sequence[Any], others: Sequence[Any]) -> list[Any]:
    """The lines whose words the others do not have nearby."""
    return [line for line in lines if not _is_among(line, others)]


def _is_among(line: Any, others: Sequence[Any]) -> bool:
    start, end, text = line
    near = sorted(other for other in others if other[0] < end + NEAR and other[1] > start - NEAR)
    together = [f"{one[2]} {two[2]}" for one, two in pairwise(near)]
    texts = [other[2] for other in near] + together
    return any(phrases.match(text, other) >= phrases.SURE for other in texts)


def compare(clip: Path, before: Found, now: Found) -> tuple[list[str], list[str]]:
    """A row of the table, and the differences in words."""
    cells, told = [clip.stem], []
    for kind in KINDS:
        lost = missing(before.lines[kind], now.lines[kind])
        gained = missing(now.lines[kind], before.lines[kind])
        both = len(now.lines[kind]) - len(gained)
        cells.append(f"{both} / {len(lost)} / {len(gained)}")
        for side, lines in (("before", lost), ("now", gained)):
            told += [f"{side} only, {kind} at {clock(line[0])}: {line[2]}" for line in lines]
    equal = 0
    for query, time in now.hits.items():
        other = before.hits[query]
        if _is_same(time, other):
            equal += 1
        else:
            told.append(f"first hit for {query!r}: {_moment(other)} before, {_moment(time)} now")
    cells.append(f"{equal} of {len(now.hits)}")
    return cells, told


def _is_same(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return abs(one - other) <= NEAR


def _moment(time: float | None) -> str:
    return "nothing" if time is None else clock(time)


def main() -> None:
    """Print the table and the differences."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("clips", type=Path, nargs="+")
    parser.add_argument("--before", type=Path, required=True, help="an earlier checkout")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "findings")
    args = parser.parse_args()
    print(
        "| clip | spoken lines: both / before only / now only | on-screen lines | same first hit |"
    )
    print("|---|---|---|---|")
    differences = {}
    for clip in args.clips:
        before = find(args.before, clip, args.folder / "before" / clip.stem)
        now = find(ROOT, clip, args.folder / "now" / clip.stem)
        cells, differences[clip.stem] = compare(clip, before, now)
        print(f"| {' | '.join(cells)} |", flush=True)
    for clip, told in differences.items():
        print(f"\n{clip}:" if told else f"\n{clip}: no differences")
        for line in told:
            print(f"- {line}")


if __name__ == "__main__":
    main()
