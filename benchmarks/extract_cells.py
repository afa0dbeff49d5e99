"""How many cells of extracted tables are right.

    python benchmarks/extract_cells.py --seeds 10-12 --minutes 20 --questions 20 --acuity 0.8

Uses laboratory films with a simulated model. Each film's questions with options are the
columns of one object, their options its choices. Prints the cells, those that are null, right and
wrong, and how many of the others cite a moment of the evidence.
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from pathlib import Path

from longtake.config import Settings
from longtake.runner.assignment import ModelAssignment
from longtake.runner.extraction import extract
from longtake.runner.session import Session
from longtake.runner.table_schema import read_schema
from longtake_bench.benchmarks import LabelledQuestion, lab

NEAR = 2.0
"""Seconds between a cited picture and the evidence that it shows."""


def column(item: LabelledQuestion) -> dict[str, object]:
    """The schema of a cell that answers a question."""
    question = item.asked.question
    kind = {"enum": list(question.options)} if question.options else {"type": "string"}
    return {**kind, "description": question.text}


def in_lab(options: dict[str, str], acuity: str) -> None:
    """Extract from laboratory films, and print the cells that are wrong and the counts."""
    benchmark = lab.load(Path(), options)
    films: dict[str, list[LabelledQuestion]] = defaultdict(list)
    for item in benchmark.items:
        films[item.asked.video].append(item)
    session = Session(Settings(), ModelAssignment((f"lab/acuity={acuity}",)))
    counts = Counter[str]()
    for video, items in films.items():
        columns = {f"column{number}": column(item) for number, item in enumerate(items)}
        schema = read_schema({"type": "object", "properties": columns})
        table = extract(benchmark.source.footage(video), schema, session, "auto")
        for item, cell in zip(items, table.rows[0].values(), strict=True):
            question = item.asked.question
            right = item.label
            if question.options:
                right = question.options[question.letters.index(item.label)]
            counts["cells"] += 1
            if cell.value is None or cell.evidence is None:
                counts["null"] += 1
                continue
            counts["right" if cell.value == right else "wrong"] += 1
            if cell.value != right:
                cited = f"{cell.evidence.source} {cell.evidence.text!r}"
                print(f"{video} {question.text} {cell.value!r}, not {right!r} | {cited}")
            start = cell.evidence.segment.start
            near = any(each.start - NEAR <= start <= each.end + NEAR for each in item.evidence)
            counts["cited in the evidence"] += near
    print(", ".join(f"{name} {count}" for name, count in counts.items()))


def main() -> None:
    """Print the counts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (("seeds", "10-12"), ("minutes", "20"), ("questions", "20")):
        parser.add_argument(f"--{name}", default=default)
    parser.add_argument("--acuity", default="0.8")
    given = parser.parse_args()
    in_lab({name: getattr(given, name) for name in ("seeds", "minutes", "questions")}, given.acuity)


if __name__ == "__main__":
    main()
