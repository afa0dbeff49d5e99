"""How many cells of extracted tables are right.

    python benchmarks/extract_cells.py --seeds 10-12 --minutes 20 --questions 20 --acuity 0.8
    python benchmarks/extract_cells.py --meetings FOLDER --model MODEL --out cells.jsonl
    python benchmarks/extract_cells.py --read cells.jsonl

The first uses laboratory films with a simulated model. Each film's questions with options are the
columns of one object, their options its choices. Prints the cells, those that are null, right and
wrong, and how many of the others cite a moment of the evidence.

The second extracts from AMI meetings (as `longtake eval meetings --data FOLDER`) what their kind of
meeting settles, as one object, and a list. The third validates the tables and prints every value
with the words that it cites, to be judged by eye.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from longtake.config import Settings
from longtake.runner.assignment import ModelAssignment
from longtake.runner.extraction import extract, read_schema
from longtake.runner.session import Session
from longtake_bench.benchmarks import LabelledQuestion, lab
from longtake_bench.benchmarks.meetings import MeetingSource

NEAR = 2.0
"""Seconds between a cited picture and the evidence that it shows."""


COLUMNS = json.loads(Path(__file__).with_name("meetings_columns.json").read_text(encoding="utf-8"))
"""What meetings of each kind, which the last letter of their names tells, settle: sets of questions
with the type or the choices of their answers, and lists."""


def settled(folder: Path, model: str, chosen: str, meeting: str) -> list[dict[str, object]]:
    """The tables of one meeting; a list only where the model is not small."""
    columns = {}
    for number, (text, kind) in enumerate(COLUMNS[chosen][meeting[-1]].items()):
        given = {"enum": kind} if isinstance(kind, list) else {"type": kind}
        columns[f"column{number}"] = {**given, "description": text}
    listed = COLUMNS["lists"][meeting[-1]]
    row = {name: {"type": "string", "description": text} for name, text in listed.items()}
    footage, tables = MeetingSource(folder).footage(meeting), []
    whole: dict[str, object] = {"type": "object", "properties": columns}
    items: dict[str, object] = {"type": "array", "items": {"type": "object", "properties": row}}
    session = Session(Settings(), ModelAssignment((model,)))
    # small models fill no lists
    for given in [whole] if session.has_small_models(["llm"], discover=True) else [whole, items]:
        schema = read_schema(given)
        table = extract(footage, schema, session, "lookup")
        tables.append({**table.plain, "given": given, "schema": schema.output})
    return tables


def show(path: Path) -> None:
    """Validate tables and print their values."""
    import jsonschema  # of the test dependencies; not where a model server runs

    counts = Counter[str]()
    for line in path.read_text(encoding="utf-8").splitlines():
        table = json.loads(line)
        jsonschema.validate(table["data"], table["schema"])
        many = isinstance(table["data"], list)
        rows = table["data"], table["citations"]
        for values, cited in zip(*rows, strict=True) if many else [rows]:
            for name, value in values.items():
                kind = "list" if many else "row"
                counts[f"{kind}: cells"] += 1
                if value is None:
                    continue
                counts[f"{kind}: values"] += 1
                counts[f"{kind}: cited"] += cited[name] is not None
                given = table["given"].get("items", table["given"])["properties"][name]
                words = cited[name]["text"]
                print(f"{table['film']} {kind} {given['description']} {value!r} | {words}")
    print(", ".join(f"{name} {count}" for name, count in counts.items()))


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
    parser.add_argument("--meetings", type=Path)
    parser.add_argument("--model", default="local/qwen2.5-1.5b")
    parser.add_argument("--out", type=Path, default=Path("cells.jsonl"))
    parser.add_argument("--parallel", type=int, default=1)
    parser.add_argument("--columns", choices=COLUMNS, default="first", help="of meetings")
    parser.add_argument("--read", type=Path)
    given = parser.parse_args()
    if given.read is not None:
        show(given.read)
        return
    if given.meetings is not None:
        names = sorted(path.stem for path in (given.meetings / "qmsum").rglob("*.json"))
        work = partial(settled, given.meetings, given.model, given.columns)
        with (
            given.out.open("w", encoding="utf-8") as file,
            ProcessPoolExecutor(given.parallel) as pool,
        ):
            for tables in pool.map(work, names):
                file.writelines(f"{json.dumps(table)}\n" for table in tables)
                file.flush()
        return
    in_lab({name: getattr(given, name) for name in ("seeds", "minutes", "questions")}, given.acuity)


if __name__ == "__main__":
    main()
