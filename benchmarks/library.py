"""A library of films, measured: adding, searching at several sizes, and asking.

    python benchmarks/library.py scale          2,000 lab films: rate, latency, recall, memory
    python benchmarks/library.py clips          real clips, moments from stills and transcripts
    python benchmarks/library.py needle         questions that one of 20 or 200 films answers

Every part takes ``--folder`` (default: a temporary one) and prints its figures as JSON lines. The
parts are in ``benchmarks/library_parts``.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from library_parts.asking import clips, needle
from library_parts.scale import cold, scale

PARTS = {part.__name__: part for part in (scale, cold, clips, needle)}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--films", type=int, default=2000)
    parser.add_argument("--files", type=int, default=3, help="real files added beside the scripts")
    parser.add_argument("--most", type=int, default=10**9, help="films added in one call")
    parser.add_argument("--libraries", type=int, nargs="+", default=[20, 200], help="of `needle`")
    parser.add_argument("--method", default="videoagent")
    parser.add_argument("--questions", type=int, default=60)
    parser.add_argument("--first-seed", type=int, default=1000)
    parser.add_argument("--clips", type=Path, help="a folder of real clips")
    given = parser.parse_args()
    given.folder = given.folder or Path(tempfile.mkdtemp(prefix="longtake-library-"))
    PARTS[given.part](given)


if __name__ == "__main__":
    main()
