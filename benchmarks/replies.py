"""Whether replies are read as they were meant.

    python benchmarks/replies.py --fuzz [--number 10000] [--seed 1]

``--fuzz`` writes known answers as models write them (well, broken, wrapped, cut off, contradicting
themselves), has them read, and counts. A misreading is a reply read as something that was not
meant; an abstention is one that was meant and could not be read. Exits with 1 if anything was
misread.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.replyfuzz import Outcome, outcomes


def fuzz(seed: int, number: int) -> int:
    """Read so many replies and print what came of them; gives the number misread."""
    began = time.perf_counter()
    totals: Counter[str] = Counter()
    abstained: Counter[str] = Counter()
    misread: list[Outcome] = []
    for outcome in outcomes(seed, number):
        kind = _kind(outcome)
        totals[kind] += 1
        abstained[kind] += outcome.abstained
        if outcome.misread:
            misread.append(outcome)
    seconds = time.perf_counter() - began
    print(f"{number:,} replies, seed {seed}: {len(misread)} misread, {seconds:.1f} s")
    for kind, total in sorted(totals.items()):
        print(f"{kind:28} {total:6,}  {abstained[kind] / total:6.1%} abstained")
    for outcome in misread[:10]:
        meant = outcome.case.truth or "nothing"
        print(f"MISREAD {outcome.case.text!r}: {outcome.read}, meant {meant} ({outcome.case.how})")
    return len(misread)


def _kind(outcome: Outcome) -> str:
    case = outcome.case
    if case.truth is None:
        return "to be refused"
    return f"{case.kind.__name__}{', cut off' if case.cut else ''}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fuzz", action="store_true", help="read made-up replies")
    parser.add_argument("--number", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if not options.fuzz:
        parser.error("--fuzz is all there is so far")
    sys.exit(1 if fuzz(options.seed, options.number) else 0)
