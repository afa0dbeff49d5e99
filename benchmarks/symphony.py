"""Symphony in the laboratory, against VideoAgent and uniform frames, with one simulated model.

    python benchmarks/symphony.py [--minutes 60 120] [--worlds 3] [--questions 52]
                                  [--first-seed 1000] [--acuity 0.8]
    python benchmarks/symphony.py --grid [--questions 20]
    python benchmarks/symphony.py --latency

``uniform`` gets as many frames as Symphony shows a model at most at once (50). Differences are
paired by question; intervals are over worlds. ``--latency`` times the scoring of an hour of film
with calls of half a second, sixteen at a time.
"""

from __future__ import annotations

import argparse
import json
import math
import time

from longtake.evals.lab import lab
from longtake.evals.runner import evaluate
from longtake.evals.scoring import by_tag, paired
from longtake.evals.solving import Solver
from longtake.footage.captioned import CaptionedFootage
from longtake.lab.encoder import LabEncoder
from longtake.lab.profile import PROFILE
from longtake.methods.symphony.grounding import Grounding, Scoring
from longtake.methods.symphony.method import Symphony
from longtake.models.backends.scripted import ScriptedChat
from longtake.models.layers import Gate, Limited
from longtake.session.asking import Session
from longtake.session.casting import Casting
from longtake.steps.run import Run
from longtake.types import Question

CONTENDERS = {
    "symphony": ("symphony", {}),
    "coarse to fine": ("symphony", {"grounding": {"scoring": "coarse_to_fine"}}),
    "videoagent": ("videoagent", {}),
    "uniform": ("uniform", {"frames": Symphony().perception.most_frames}),
}
KINDS = ("multihop", "order")


def run(benchmark, name, model, workers):
    """Run one contender on every question."""
    method, fields = CONTENDERS[name]
    session = Session(casting=Casting((model,))).with_fields(method, fields)
    return evaluate(Solver(method, session), benchmark, workers=workers)


def difference(first, second, kinds=None):
    """The first minus the second, on questions of the given kinds."""
    chosen = [
        n for n, item in enumerate(first.items) if kinds is None or item.tags["type"] in kinds
    ]
    videos = [first.items[n].asked.video for n in chosen]
    return paired([first.right[n] for n in chosen], [second.right[n] for n in chosen], videos)


def tables(options, minutes):
    """Print the results of every contender on worlds of one length."""
    seeds = range(options.first_seed, options.first_seed + options.worlds)
    benchmark, model = lab(seeds, minutes, options.questions), f"lab/acuity={options.acuity:g}"
    asked = f"seeds {seeds[0]} to {seeds[-1]}, {len(benchmark.items)} questions"
    print(f"\nlab {PROFILE.hash}, {model}, {minutes} min, {asked}")
    results = {}
    for name in CONTENDERS:
        results[name] = one = run(benchmark, name, model, options.workers)
        tokens = one.mean("tokens_in") + one.mean("tokens_out")
        cost = (
            f"{one.mean('frames'):7.1f} frames {one.mean('calls'):6.1f} calls {tokens:9,.0f} tokens"
        )
        print(f"{name:<15}{one.accuracy}   {cost}", flush=True)
    for kind, rate in by_tag(results["symphony"].items, results["symphony"].right, "type").items():
        print(f"  symphony, {kind:<14}{rate}")
    for other in ("videoagent", "uniform", "coarse to fine"):
        print(f"symphony − {other:<15} all {difference(results['symphony'], results[other])}")
        for kind in KINDS:
            print(f"{'':<27}{kind:>8} {difference(results['symphony'], results[other], {kind})}")
    ended = [row["status"] for row in results["symphony"].rows]
    print("ended: " + ", ".join(f"{ended.count(status)} {status}" for status in sorted(set(ended))))


def grid(options):
    """Print the lead over VideoAgent and uniform frames for every acuity and noise."""
    minutes = options.minutes[0]
    for acuity in (0.4, 0.6, 0.8, 1.0):
        for noise in (0.0, 1.0, 2.0, 4.0):
            seeds = range(options.first_seed, options.first_seed + options.worlds)
            benchmark = lab(seeds, minutes, options.questions, noise=noise)
            model = f"lab/acuity={acuity:g}"
            own = run(benchmark, "symphony", model, options.workers)
            leads = ""
            for name in ("videoagent", "uniform"):
                other = run(benchmark, name, model, options.workers)
                leads += f"   − {name} {difference(own, other)}"
            print(f"acuity {acuity:g}, noise {noise:g}: {own.accuracy}{leads}", flush=True)


def latency(seconds=0.5, limit=16):
    """Time sixty clips with a model whose calls only wait."""
    captions = [f"second {second}" for second in range(3600)]
    footage = CaptionedFootage("an hour", captions, LabEncoder())

    def reply(messages, options):
        time.sleep(seconds)
        return json.dumps({"caption": "a room", "score": 2, "reason": "a room"})

    chat = Limited(ScriptedChat(reply), Gate(limit))
    began = time.perf_counter()
    run = Run({"vlm": chat, "llm": chat})
    claims = Scoring(Grounding(), footage, Question("What is it?"), "look", run).claims()
    took = time.perf_counter() - began
    ideal = math.ceil(60 / limit) * seconds
    how = f"calls of {seconds:g} s, {limit} at a time"
    print(f"{len(claims)} clips, {how}: {took:.2f} s, {took / ideal:.2f} × the minimum")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=int, nargs="+", default=[60, 120])
    parser.add_argument("--worlds", type=int, default=3)
    parser.add_argument("--questions", type=int, default=52)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--acuity", type=float, default=0.8)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--grid", action="store_true")
    parser.add_argument("--latency", action="store_true")
    options = parser.parse_args()
    if options.latency:
        latency()
    elif options.grid:
        grid(options)
    else:
        for minutes in options.minutes:
            tables(options, minutes)


if __name__ == "__main__":
    main()
