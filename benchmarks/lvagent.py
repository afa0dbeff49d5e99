"""LVAgent on the laboratory: a team chosen without labels from a library of six, and what its discussion is worth.

    python benchmarks/lvagent.py select  [--seeds 10] [--minutes 20] [--questions 40]
    python benchmarks/lvagent.py discuss [--worlds 6] [--minutes 20] [--questions 60]

The library holds three good agents and three that are poor in different ways: dim, inventive, and blind to what people
do. ``select`` draws one world per seed and counts how often the three good ones make up the team. ``discuss`` puts
every question to the three good ones: as a team with three rounds, as the vote of its first round, under the other
rules of Table 6, and to each alone. Differences are paired by question, intervals are over worlds. The calibration
tables set the vote of the first round and the round of exit beside the share of right answers.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from longtake.agents.run import Agent, Run
from longtake.agents.team import Member
from longtake.config import Settings
from longtake.evals.lab import lab
from longtake.evals.scoring import accuracy, correct, paired
from longtake.evals.selection import select
from longtake.events import StepBegan, Stream
from longtake.lab.acuity import make
from longtake.lab.profile import PROFILE
from longtake.methods.base import solve
from longtake.methods.lvagent import LVAgent

GOOD = {
    "ann": "acuity={acuity:g},seed=1,onscreen=0.3",
    "bob": "acuity={acuity:g},seed=2,people=0.3",
    "cid": "acuity={acuity:g},seed=3,spoken=0.3",
}
POOR = {
    "dim": "acuity=0.15,seed=4",
    "inventive": "acuity=0.5,seed=5,hallucination=0.9",
    "blind to deeds": "acuity={acuity:g},seed=6,action=0.05",
}
VOTES = {0.88: "3 : 0", 0.53: "2 : 1", 0.26: "1 : 1 : 1"}


class Rounds:
    """A sink that counts rounds."""

    def __init__(self):
        self.count = 0

    def handle(self, event):
        self.count += isinstance(event, StepBegan) and event.name == "round"

    def picture(self, digest, jpeg):
        pass

    def close(self):
        pass


def discuss(options) -> None:
    seeds = range(options.first_seed, options.first_seed + options.worlds)
    benchmark = lab(seeds, options.minutes, options.questions, noise=options.noise)
    agents = [Agent(name, make(text.format(acuity=options.acuity))) for name, text in GOOD.items()]
    team = LVAgent()
    contenders = {
        "team": (team, agents),
        "vote of round 1": (replace(team, reflection=False), agents),
        "best score": (replace(team, discussion="best_score"), agents),
        "decide by agent": (replace(team, discussion="decide_by_agent"), agents),
        **{agent.name: (team, [agent]) for agent in agents},
    }
    right, used, videos, exits, votes = {name: [] for name in contenders}, {name: [] for name in contenders}, [], [], []
    for item in benchmark.items:
        footage, question = benchmark.source.footage(item.asked.video), item.asked.question
        videos.append(item.asked.video)
        for name, (method, who) in contenders.items():
            rounds, run = Rounds(), Run({}, team=who)
            with Stream(rounds).active():
                answer = solve(method, footage, question, run).answer
            right[name].append(correct(item, answer.choice, answer.text))
            used[name].append(run.usage)
            if name == "team":
                exits.append(rounds.count)
                votes.append(answer.confidence)
    print(f"lab {PROFILE.hash}, {len(videos)} questions, {options.worlds} worlds of {options.minutes} min, "
          f"acuity {options.acuity:g}, encoder noise {options.noise or PROFILE.encoder.noise:g}")  # fmt: skip
    for name, values in right.items():
        frames = sum(u.frames for u in used[name]) / len(videos)
        calls = sum(u.calls for u in used[name]) / len(videos)
        lead = "" if name == "team" else f"   the team leads by {paired(right['team'], values, videos)}"
        print(f"{name:<16}{accuracy(values, videos)}  {frames:4.0f} frames {calls:4.1f} calls{lead}")
    best = max((agent.name for agent in agents), key=lambda name: sum(right[name]))
    print(f"best member (chosen in hindsight): {best}")
    calibrate("vote of the first round", [VOTES.get(v, "no answer") for v in votes], right["team"], videos)
    calibrate("round of exit", exits, right["team"], videos)
    split = [n for n, v in enumerate(votes) if VOTES.get(v) == "1 : 1 : 1"]
    if split:
        team_right, vote_right = ([right[name][n] for n in split] for name in ("team", "vote of round 1"))
        print(f"where the first round was split: {paired(team_right, vote_right, [videos[n] for n in split])}")


def calibrate(what, groups, right, videos) -> None:
    print(f"{what}:")
    for group in sorted(set(groups), key=str):
        chosen = [n for n, one in enumerate(groups) if one == group]
        print(f"  {group!s:<12}{accuracy([right[n] for n in chosen], [videos[n] for n in chosen])}")


def choose(options) -> None:
    library = [Member(name=n, model=f"lab/{t.format(acuity=options.acuity)}") for n, t in {**POOR, **GOOD}.items()]
    whole = 0
    print(f"lab {PROFILE.hash}, {options.questions} questions of one {options.minutes}-minute world a seed")
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        benchmark = lab([seed], options.minutes, options.questions, noise=options.noise)
        began = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            found = select(library, benchmark, Settings(), Path(folder))
        team = [ranked.member.name for ranked in found.ranking[:3]]
        whole += set(team) == set(GOOD)
        rates = ", ".join(f"{r.member.name} {r.agreement.value:.2f}" for r in found.ranking)
        print(f"seed {seed}: {rates}  ({time.perf_counter() - began:.0f} s)", flush=True)
    print(f"the three good agents made up the team in {whole} of {options.seeds}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["select", "discuss"])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--worlds", type=int, default=6)
    parser.add_argument("--minutes", type=int, default=20)
    parser.add_argument("--questions", type=int)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--acuity", type=float, default=0.6)
    parser.add_argument("--noise", type=float)
    options = parser.parse_args()
    options.questions = options.questions or (40 if options.what == "select" else 60)
    (choose if options.what == "select" else discuss)(options)


if __name__ == "__main__":
    main()
