"""Reliability diagrams of fitted probabilities: what is stated against what is right.

    python benchmarks/reliability.py docs/images/reliability.svg [CALIBRATION.json …]

Draws the fits that come with longtake, and those in the files. Each mark is a tenth of the
probabilities, stated for videos held out of the fit; its bar is a 95 % interval, and on the
diagonal it would be exact.
"""

from __future__ import annotations

import sys
from pathlib import Path

from longtake.agents.calibration import read, shipped
from longtake.evals.scoring import wilson
from longtake.plots import Mark, as_svg, scatter


def main() -> None:
    """Write the picture."""
    fits = [*shipped(), *(fit for path in sys.argv[2:] for fit in read(Path(path)))]
    marks: list[Mark] = []
    for fit in fits:
        for benchmark, told in fit.provenance["measured"].items():
            colour = len({mark.name for mark in marks})
            for stated, right, count in told["reliability"]:
                low, high = wilson(round(right * count), count)
                name = f"{benchmark}, {fit.model}"
                marks.append(Mark(stated, right, low, high, name, colour))
    figure = scatter(marks, x_name="probability", diagonal=True)
    Path(sys.argv[1]).write_bytes(as_svg(figure))


if __name__ == "__main__":
    main()
