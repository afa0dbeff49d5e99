"""Reliability diagrams of fitted probabilities: what is stated against what is right.

    python benchmarks/reliability.py docs/images/reliability.svg [CALIBRATION.json|RUN …]

Draws the fits that come with longtake, those in the files, and the probabilities that answers of
runs in the laboratory were given. Each mark is a tenth of the probabilities, of a fit those stated
for videos held out of it; its bar is a 95 % interval, and on the diagonal it would be exact.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from longtake.agents.calibration import Fit, read, shipped
from longtake.algorithms.calibration import chance_error, expected_error, reliability
from longtake_bench.plots import Mark, as_svg, scatter
from longtake_bench.report import read_labelled
from longtake_bench.scoring import wilson

Bins = Sequence[Sequence[float]]


def main() -> None:
    """Write the picture."""
    series = [each for fit in shipped() for each in of_fit(fit)]
    for path in map(Path, sys.argv[2:]):
        found = [of_run(path)] if path.is_dir() else [y for x in read(path) for y in of_fit(x)]
        series += found
    marks = []
    for colour, (name, bins) in enumerate(series):
        for stated, right, count in bins:
            low, high = wilson(round(right * count), count)
            marks.append(Mark(stated, right, low, high, name, colour))
    figure = scatter(marks, x_name="probability", diagonal=True)
    Path(sys.argv[1]).write_bytes(as_svg(figure))


def of_fit(fit: Fit) -> list[tuple[str, Bins]]:
    """What a fit states about its own benchmarks."""
    measured = fit.provenance["measured"].items()
    return [(f"{benchmark}, {fit.model}", told["reliability"]) for benchmark, told in measured]


def of_run(path: Path) -> tuple[str, Bins]:
    """The probabilities of a run's answers, and how many are right; prints their error."""
    report = read_labelled(path, ())
    rows = zip(report.scored.rows, report.scored.right, strict=True)
    given = [(row.confidence, right) for row, right in rows if row.confidence is not None]
    stated, right = [each for each, _ in given], [each for _, each in given]
    error, chance = expected_error(stated, right), chance_error(stated)
    print(f"{path}: {len(given)} answers, ECE {error:.3f} ({chance:.3f} by chance)")
    return f"{report.benchmark}, {report.spec['models']['llm']}", reliability(stated, right)


if __name__ == "__main__":
    main()
