"""Whether replies are read as they were meant.

    python benchmarks/replies.py MODEL [--enforced] [--questions 20] [--workers 1]
                                 [--methods blind videoagent …] [--bench DIR]
    python benchmarks/replies.py --fuzz [--number 10000] [--seed 1]

With a MODEL (``local/smollm2-135m``, ``http://127.0.0.1:9001/v1#name``), every step of every method
runs on real captions, half of them of NExT-QA and half of EgoSchema, behind a proxy that takes away
whatever holds the model to a form. The share of questions that were read is printed per step and
rung: the first reply, the second, not at all. ``--enforced`` leaves the proxy out.
Every fifth question is asked without its options, so that open-ended steps run too.

``--fuzz`` writes known answers as models write them (well, broken, wrapped, cut off, contradicting
themselves), has them read, and counts. A misreading is a reply read as something that was not
meant; an abstention is one that was meant and could not be read. Exits with 1 if anything was
misread.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.narrated import Narrated
from support.replyfuzz import Outcome, outcomes
from support.rungs import RUNGS, Ladder, Step, counting
from support.stripping import stripping

from longtake import prompts
from longtake.agents.run import Run
from longtake.agents.team import Member
from longtake.config import BudgetSettings, Settings
from longtake.config.entries import LocalEntry, OpenAIEntry, SocraticEntry
from longtake.errors import LongtakeError
from longtake.footage.protocol import Footage
from longtake.llm.backends.local import LocalChat
from longtake.llm.catalog import ModelCatalog
from longtake.methods.a4vl.method import A4VL, View
from longtake.methods.base import FULL
from longtake.methods.symphony.method import Symphony
from longtake.methods.symphony.perception import PerceptionTools, listen
from longtake.runner.assignment import ModelAssignment
from longtake.runner.session import Session
from longtake.tracing.sinks import Meter
from longtake.types import Answer, Question, Usage
from longtake_bench.benchmarks import Benchmark, BenchmarkQuestion, short_clips

BENCH = Path(__file__).parents[1] / ".." / "shared" / "bench"
MODEL, EYES = "asked", "asked/eyes"
"""The model of the run, and the same model reading pictures in words."""
TEXT_ONLY = ("captions", "videoagent, graded")
"""Contenders that are given captions as such; the others see pictures in words."""
TEAM = (0.0, 0.7, 1.2)
"""Temperatures of three agents of one model: without a difference they would never disagree."""


CONTENDERS: dict[str, tuple[str, dict[str, Any]]] = {
    "blind": ("blind", {}),
    "blind, direct": ("blind", {"reason": False}),
    "captions": ("uniform", {"frames": 5}),
    "uniform": ("uniform", {"frames": 5}),
    "lookup": ("lookup", {"rephrasings": 3}),
    # a model that is always sure of itself would never say what it misses
    "videoagent": ("videoagent", {"self_evaluation": False, "max_rounds": 2}),
    "videoagent, graded": ("videoagent", {"segment_selection": False, "max_rounds": 2}),
    "videodetective": ("videodetective", {"base_steps": 3, "frames": 8}),
    "symphony": ("symphony", {"max_steps": 6}),
    "a4vl": ("a4vl", {"gate": True, "inference_frames": 8}),
    "lvagent": ("lvagent", {"native_whole": False, "frames_per_chunk": 4, "global_frames": 8}),
    "lvagent, one decides": (
        "lvagent",
        {"native_whole": False, "frames_per_chunk": 4, "discussion": "decide_by_agent"},
    ),
    "auto": ("auto", {"stages": ("lookup", "videoagent")}),
    "search": ("search", {"frames": 8}),
    "a4vl, letter first": ("a4vl", {"reason_first": False, "inference_frames": 8}),
    "symphony, agents": (
        "symphony",
        {"perception": dict.fromkeys(("summary_frames", "inspector_frames", "segment_frames"), 8)},
    ),
}
"""Methods with settings under which all of their steps run, none of them for long."""


def one_turn(method: A4VL, footage: Footage, question: Question, run: Run) -> None:
    """One agent of A4VL looks over the film, answers and gives its reason."""
    view = View(run.team[0], question.text, whole=True, chance=run.random(question.text))
    method.turn(footage, question, method.partition(footage, question), view)


def each_agent(method: Symphony, footage: Footage, question: Question, run: Run) -> None:
    """Symphony's tool for overviews, its perception and its subtitle agent, each once."""
    looking = PerceptionTools(method.perception, footage, question, question.text, run)
    looking.global_summary()
    method.perception.perceive(footage, question, question.text, run)
    listen(footage, question, question.text, run, most_tokens=method.subtitle_tokens)


DIRECT: dict[str, Callable[[Any, Footage, Question, Run], None]] = {
    "a4vl, letter first": one_turn,
    "symphony, agents": each_agent,
}
"""Contenders of which only some steps are asked: those that the others seldom or never reach."""


@dataclass(frozen=True)
class Task:
    """One question to one contender."""

    contender: str
    asked: BenchmarkQuestion
    captions: Any


@dataclass(frozen=True)
class Outcomes:
    """What came of one contender's questions."""

    answers: list[Answer | None]
    usage: list[Usage]
    errors: list[str]


def questions(bench: Path, number: int) -> list[tuple[BenchmarkQuestion, Any]]:
    """Questions from both benchmarks, each of another film, every fifth without its options."""
    half = (number + 1) // 2
    drawn: list[tuple[BenchmarkQuestion, Any]] = []
    loaders = {
        "nextqa_dev": short_clips.NEXTQA_CAPTIONS.load,
        "egoschema_dev": short_clips.EGOSCHEMA_CAPTIONS.load,
    }
    for folder, load in loaders.items():
        benchmark: Benchmark = load(bench / folder, {})
        films = {item.asked.video: item.asked for item in benchmark.items}
        chosen = list(films.values())[: min(half, number - len(drawn))]
        drawn += [(asked, benchmark.source.footage(asked.video)) for asked in chosen]
    for place in range(4, len(drawn), 5):
        asked, footage = drawn[place]
        drawn[place] = replace(asked, question=Question(asked.question.text)), footage
    return drawn


@contextmanager
def settings_for(
    name: str, *, enforced: bool, seconds: float | None, workers: int
) -> Iterator[Settings]:
    """Settings in which the model is called :data:`MODEL`, behind the proxy unless enforced."""
    entry = ModelCatalog(Settings()).entry(name)
    if isinstance(entry, LocalEntry):
        entry = replace(entry, concurrency=workers)  # or questions would wait for one another
    catalogue = ModelCatalog(Settings(models={**Settings().models, name: entry}))
    shared = {"context": entry.context, "max_tokens": entry.max_tokens, "timeout": 900.0}
    if enforced:
        named = replace(entry, timeout=900.0)
        if isinstance(entry, LocalEntry):
            named = replace(named, file=str(catalogue.file(name)))
        yield _settings(named, seconds)
        return
    if isinstance(entry, LocalEntry):
        chat = catalogue.bare(name)
        assert isinstance(chat, LocalChat)
        url, key, model = *chat.address(), name
    elif isinstance(entry, OpenAIEntry):
        url, key, model = entry.base_url, "", entry.model
    else:
        sys.exit(f"{name}: name a local model or one on a server, as http://127.0.0.1:9001/v1#name")
    with stripping(url, key=key) as address:
        yield _settings(OpenAIEntry(base_url=address, model=model, **shared), seconds)


def _settings(entry: LocalEntry | OpenAIEntry, seconds: float | None) -> Settings:
    eyes = SocraticEntry(llm=MODEL, channels=("tags",), max_tokens=entry.max_tokens)
    models = {**Settings().models, MODEL: entry, EYES: eyes}
    return Settings(models=models, budget=BudgetSettings(seconds=seconds))


def answer(task: Task, settings: Settings) -> tuple[Answer | None, Usage, str]:
    """One question; an error is a result too."""
    method, fields = CONTENDERS[task.contender]
    captions = task.captions
    sees = task.contender not in TEXT_ONLY
    if sees:
        captions = Narrated(captions.name, captions._captions, captions._sentences)
    model = EYES if sees else MODEL
    team = tuple(
        Member(name=f"agent {number}", model=model, temperature=temperature)
        for number, temperature in enumerate(TEAM, start=1)
    )
    assignment = ModelAssignment((model,), replies=False, roster=team)
    # the preset for small models leaves steps out
    session = Session(settings, assignment).with_fields(method, {"preset": FULL, **fields})
    meter = Meter()
    try:
        with session.under_way(meter):
            if direct := DIRECT.get(task.contender):
                opened = session.method(method, discover=True)
                direct(opened, captions, task.asked.question, session.run(opened, captions))
                return None, meter.total, ""
            result = session.answer(method, captions, task.asked.question)
    except LongtakeError as error:
        return None, meter.total, f"{type(error).__name__}: {error}"
    return result.answer, result.usage, ""


def run(
    tasks: Sequence[Task], settings: Settings, workers: int
) -> tuple[Ladder, dict[str, Outcomes]]:
    """Ask everything, so many questions at once."""
    outcomes = {task.contender: Outcomes([], [], []) for task in tasks}
    with counting() as ladder, ThreadPoolExecutor(workers) as pool:
        futures = {pool.submit(answer, task, settings): task for task in tasks}
        for number, future in enumerate(as_completed(futures), start=1):
            task, (said, used, error) = futures[future], future.result()
            outcome = outcomes[task.contender]
            outcome.answers.append(said)
            outcome.usage.append(used)
            if error:
                outcome.errors.append(f"{task.asked.id}: {error}")
            print(f"\r{number} of {len(tasks)} ", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return ladder, outcomes


def show(ladder: Ladder, outcomes: dict[str, Outcomes]) -> None:
    """Print both tables, and what went wrong."""
    if ladder.steps:
        _show_steps(ladder)
    print(f"\n{'method':22} {'questions':>9} {'answered':>9} {'calls':>6} {'tokens':>8} {'s':>7}")
    for name, outcome in outcomes.items():
        print(_method_row(name, outcome))
    for name, outcome in outcomes.items():
        for error in outcome.errors[:3]:
            print(f"  {name}: {error[:200]}")


def _show_steps(ladder: Ladder) -> None:
    print(f"{'step':30} {'asked':>6} {'read':>7}" + "".join(f"{rung:>8}" for rung in RUNGS))
    total = Step()
    for step in ladder.steps.values():
        total.rungs += step.rungs
    for name, step in [*sorted(ladder.steps.items()), ("all steps", total)]:
        shares = "".join(f"{step.share(rung):8.1%}" for rung in RUNGS)
        print(f"{name:30} {step.asked:6} {step.readable:7.1%}{shares}")
    missing = sorted(set(_typed_steps()) - ladder.steps.keys())
    print(f"never asked: {', '.join(missing) or 'none'}")


def _typed_steps() -> list[str]:
    """The prompts that ask for a reply, as far as their names tell."""
    apart: tuple[str, ...] = ("shared/form", "shared/material", "shared/one_letter", "shared/reask")
    apart += ("shared/tools", "shared/answer_now", "shared/reconsider", "shared/probe")
    return [
        name
        for name in prompts.names()
        if not name.startswith(apart) and not name.endswith("phrases")
    ]


def _method_row(name: str, outcome: Outcomes) -> str:
    asked = len(outcome.usage)
    given = sum(1 for said in outcome.answers if said and (said.choice or said.text))
    calls = sum(used.calls for used in outcome.usage) / asked
    tokens = sum(used.tokens_in + used.tokens_out for used in outcome.usage) / asked
    seconds = sum(used.seconds for used in outcome.usage) / asked
    letters = Counter(said.choice for said in outcome.answers if said and said.choice)
    told = " ".join(f"{letter}{count}" for letter, count in sorted(letters.items()))
    row = f"{name:22} {asked:9} {given:9} {calls:6.1f} {tokens:8,.0f} {seconds:7.1f}"
    return f"{row}  {told}"


def measure(options: argparse.Namespace) -> None:
    """Run every step with a model and print how its replies were read."""
    bench = Path(options.bench)
    if not bench.is_dir():
        sys.exit(f"{bench}: no such folder; --bench names one with nextqa_dev/ and egoschema_dev/")
    drawn = questions(bench, options.questions)
    for _, footage in drawn:
        footage.embeddings()  # before the clock runs, and by one thread
    tasks = []
    for contender in options.methods or CONTENDERS:
        tasks += [Task(contender, asked, footage) for asked, footage in drawn]
    began = time.perf_counter()
    held = "enforced" if options.enforced else "not enforced"
    with settings_for(
        options.model, enforced=options.enforced, seconds=options.seconds, workers=options.workers
    ) as settings:
        ladder, outcomes = run(tasks, settings, options.workers)
        took = f"{options.workers} at once, {time.perf_counter() - began:.0f} s"
        print(f"{options.model}, {held}: {len(drawn)} questions, {took}")
        show(ladder, outcomes)


def fuzz(seed: int, number: int) -> int:
    """Read so many replies and print what came of them; gives the number misread."""
    began = time.perf_counter()
    read = list(outcomes(seed, number))
    totals = Counter(_kind(outcome) for outcome in read)
    abstained = Counter(_kind(outcome) for outcome in read if outcome.abstained)
    misread = [outcome for outcome in read if outcome.misread]
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
    parser.add_argument("model", nargs="?", help="a local model, or one on a server")
    parser.add_argument("--enforced", action="store_true", help="leave the proxy out")
    parser.add_argument("--questions", type=int, default=20)
    parser.add_argument("--workers", type=int, default=1, help="questions at once")
    parser.add_argument("--methods", nargs="+", choices=CONTENDERS, help="all unless named")
    parser.add_argument("--seconds", type=float, help="limit per question and method")
    parser.add_argument("--bench", default=BENCH, help="folder of the benchmarks' files")
    parser.add_argument("--fuzz", action="store_true", help="read made-up replies")
    parser.add_argument("--number", type=int, default=10_000, help="made-up replies")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if options.fuzz:
        sys.exit(1 if fuzz(options.seed, options.number) else 0)
    if not options.model:
        parser.error("name a model, or --fuzz")
    measure(options)
