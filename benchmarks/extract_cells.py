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
from longtake.evals.benchmarks import LabelledQuestion, lab
from longtake.evals.benchmarks.meetings import MeetingSource
from longtake.runner.assignment import ModelAssignment
from longtake.runner.extraction import extract, read_schema
from longtake.runner.session import Session

NEAR = 2.0
"""Seconds between a cited picture and the evidence that it shows."""


NUMBER, TRUTH, TEXT = {"type": "number"}, {"type": "boolean"}, {"type": "string"}
ASKED = {
    "a": {
        "For how many euros will the remote control be sold?": NUMBER,
        "How many minutes does the meeting last?": NUMBER,
        "Which animal is drawn first?": TEXT,
        "Is the remote control for the international market?": TRUTH,
    },
    "b": {
        "What percentage of users find remote controls ugly?": NUMBER,
        "What percentage of the buttons do users use?": NUMBER,
        "Which percentage of users often lose their remote control?": NUMBER,
        "Which technology replaces teletext?": TEXT,
        "Should the remote control only be used for the television?": TRUTH,
    },
    "c": {
        "What is the case made of?": {"enum": ["plastic", "rubber", "wood", "titanium", "latex"]},
        "What is the energy source?": {"enum": ["battery", "solar cells", "kinetic", "dynamo"]},
        "Which chip is needed?": {"enum": ["simple", "regular", "advanced"]},
        "What is the fashion trend about?": TEXT,
        "What is the most important aspect of a remote control for users?": TEXT,
    },
    "d": {
        "How many euros does the remote control cost to produce?": NUMBER,
        "How many points does the evaluation scale have?": NUMBER,
        "Which colour does the remote control have?": TEXT,
        "Is the remote control within the budget?": TRUTH,
    },
}
"""What meetings of each kind, which the last letter of their names tells, settle."""
SEEN_ONCE = {
    "a": {
        "How many million euros of profit are expected?": NUMBER,
        "In how many minutes does the next meeting start?": NUMBER,
        "How many euros may the production cost at most?": NUMBER,
        "Who takes the minutes of the meeting?": TEXT,
    },
    "b": {
        "What percentage of users zap a lot?": NUMBER,
        "What percentage of users would spend more money on a fancy remote control?": NUMBER,
        "How many times per hour is the power button used?": NUMBER,
        "Which age group would pay for speech recognition?": TEXT,
    },
    "c": {
        "Which fruit should the remote control look like?": TEXT,
        "How does the material of the case feel?": {"enum": ["spongy", "hard", "furry", "smooth"]},
        "Which buttons does the remote control have?": {"enum": ["rubber", "plastic", "wooden"]},
        "Which company developed a sample sensor for speech?": TEXT,
    },
    "d": {
        "How many euros does a battery cost?": NUMBER,
        "How many buttons does the prototype have?": NUMBER,
        "How many euros cheaper than the limit is the remote control?": NUMBER,
        "What shape does the prototype have?": TEXT,
    },
}
LAST = {
    "a": {
        "How many phases does the project have?": NUMBER,
        "How many people are in the team?": NUMBER,
        "Who is the industrial designer?": TEXT,
        "How does the remote control have to be?": {"enum": ["trendy", "cheap", "heavy", "round"]},
    },
    "b": {
        "What percentage of users say that learning a new remote control takes too long?": NUMBER,
        "What percentage of people between 15 and 25 would pay for speech recognition?": NUMBER,
        "What percentage of users suffer from repetitive strain injury?": NUMBER,
        "What must be recognizable in the product?": TEXT,
    },
    "c": {
        "How many times as important as functionality is a fancy look?": NUMBER,
        "What shape is the case?": {"enum": ["flat", "single-curved", "double-curved"]},
        "Which case cannot be made of titanium?": TEXT,
        "Where do the fashion trends come from?": TEXT,
    },
    "d": {
        "How many euros does a double-curved case cost?": NUMBER,
        "How many euros does a simple chip cost?": NUMBER,
        "What is the average score of the evaluation?": NUMBER,
        "What is the case of the prototype made of?": TEXT,
    },
}
FRESH = {
    "a": {
        "How many euros does one remote control cost in production?": NUMBER,
        "How many euros should one remote control sell for?": NUMBER,
        "How many minutes are left in the meeting?": NUMBER,
        "How many remote controls have to be sold?": NUMBER,
        "How many hours long is the break before the next meeting?": NUMBER,
        "What is the name of the company?": TEXT,
        "What is the motto of the company?": TEXT,
        "Who is the project manager?": TEXT,
        "Who is the marketing expert?": TEXT,
        "Who is the user interface designer?": TEXT,
        "What is the favourite animal of the project manager?": TEXT,
        "What kind of batteries does the remote control need?": TEXT,
        "For which market is the product?": {"enum": ["international", "national", "European"]},
        "What should the remote control be?": {"enum": ["original", "trendy", "user friendly"]},
    },
    "b": {
        "What percentage of users would spend more money on a better look?": NUMBER,
        "What percentage of users zap a lot with their remote control?": NUMBER,
        "What percentage of users think that the look does not match the way they use it?": NUMBER,
        "How many buttons should the remote control have?": NUMBER,
        "How many times per hour do users change the channel?": NUMBER,
        "How many times per hour is the volume changed?": NUMBER,
        "What colour does the company have?": TEXT,
        "Which age group is the product for?": TEXT,
        "Who presents the functional requirements?": TEXT,
        "What does the remote control send its signals with?": {
            "enum": ["infrared", "bluetooth", "radio waves"]
        },
        "What must be on the product beside the colour?": {"enum": ["logo", "slogan", "price"]},
        "Which function is used most?": {"enum": ["channels", "volume", "power", "settings"]},
        "When is the lunch break?": TEXT,
        "Why do users lose their remote control?": TEXT,
    },
    "c": {
        "How many colours will the remote control come in?": NUMBER,
        "How many minutes are there to make the prototype?": NUMBER,
        "How many times as important as ease of use is technological innovation?": NUMBER,
        "Which battery is used?": {"enum": ["kinetic", "solar", "standard", "hand dynamo"]},
        "Which interface is used?": {"enum": ["push-buttons", "scroll wheels", "LCD display"]},
        "Which chip does an LCD display need?": {"enum": ["simple", "regular", "advanced"]},
        "Which chip do push-buttons need?": {"enum": ["simple", "regular", "advanced"]},
        "Which material can a double-curved case not have?": {
            "enum": ["titanium", "plastic", "wood", "rubber"]
        },
        "Which material can a case with solar cells not have?": TEXT,
        "What is the chip made of?": TEXT,
        "What are the colours of this year?": TEXT,
        "What theme will clothes, shoes and furniture have?": TEXT,
        "What do young people like?": TEXT,
        "What is the remote control shaped like?": TEXT,
    },
    "d": {
        "How many euros do rubber buttons cost?": NUMBER,
        "How many euros does a sample sensor cost?": NUMBER,
        "How many euros does the case cost?": NUMBER,
        "How many euros does a special colour cost?": NUMBER,
        "How many euros is the limit?": NUMBER,
        "How many euros does an LCD display cost?": NUMBER,
        "How many euros does a push-button cost?": NUMBER,
        "How many euros does a solar cell cost?": NUMBER,
        "What score does the remote control get for its fancy look?": NUMBER,
        "What score does the remote control get for ease of use?": NUMBER,
        "How many buttons are on the side?": NUMBER,
        "What is the prototype made of?": {"enum": ["clay", "wood", "plastic", "paper"]},
        "What is the name of the remote control?": TEXT,
        "How is a lost remote control found?": TEXT,
    },
}
COLUMNS = {"first": ASKED, "second": SEEN_ONCE, "third": LAST, "fourth": FRESH}
"""Sets of columns; all but the first were written after the rules for small models."""
LISTS = {
    "a": {"animal": "animal", "why": "why somebody likes it"},
    "b": {"percent": "percentage of users", "finding": "what these users think or do"},
    "c": {"material": "material", "use": "what it is used for"},
    "d": {"part": "part of the remote control", "price": "price in euros"},
}


def settled(folder: Path, model: str, chosen: str, meeting: str) -> list[dict[str, object]]:
    """The tables of one meeting; a list only where the model is not small."""
    asked = COLUMNS[chosen][meeting[-1]]
    columns = {
        f"column{number}": {**kind, "description": text}
        for number, (text, kind) in enumerate(asked.items())
    }
    row = {name: {**TEXT, "description": text} for name, text in LISTS[meeting[-1]].items()}
    footage, tables = MeetingSource(folder).footage(meeting), []
    whole: dict[str, object] = {"type": "object", "properties": columns}
    listed = {"type": "array", "items": {"type": "object", "properties": row}}
    session = Session(Settings(), ModelAssignment((model,)))
    # small models fill no lists
    for given in [whole] if session.has_small_models(["llm"]) else [whole, listed]:
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


def main() -> None:
    """Print the counts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (("seeds", "10-12"), ("minutes", "20"), ("questions", "20")):
        parser.add_argument(f"--{name}", default=default)
    parser.add_argument("--acuity", default="0.8")
    parser.add_argument("--method", default="auto")
    parser.add_argument("--meetings", type=Path)
    parser.add_argument("--model", default="local/qwen2.5-1.5b")
    parser.add_argument("--out", type=Path, default=Path("cells.jsonl"))
    parser.add_argument("--only", nargs="*", help="meetings; all if none is named")
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
            for tables in pool.map(work, given.only or names):
                file.writelines(f"{json.dumps(table)}\n" for table in tables)
                file.flush()
        return
    options = {name: getattr(given, name) for name in ("seeds", "minutes", "questions")}
    benchmark = lab.load(Path(), options)
    films: dict[str, list[LabelledQuestion]] = defaultdict(list)
    for item in benchmark.items:
        films[item.asked.video].append(item)
    counts = Counter[str]()
    for video, items in films.items():
        columns = {f"column{number}": column(item) for number, item in enumerate(items)}
        schema = read_schema({"type": "object", "properties": columns})
        session = Session(Settings(), ModelAssignment((f"lab/acuity={given.acuity}",)))
        table = extract(benchmark.source.footage(video), schema, session, given.method)
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
                print(
                    f"{video} {question.text} {cell.value!r}, not {right!r} | {cited}", flush=True
                )
            start = cell.evidence.segment.start
            near = any(each.start - NEAR <= start <= each.end + NEAR for each in item.evidence)
            counts["cited in the evidence"] += near
    print(", ".join(f"{name} {count}" for name, count in counts.items()))


if __name__ == "__main__":
    main()
