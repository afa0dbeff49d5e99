"""LVAgent in the laboratory: a team selected without labels, and the value of its discussion.

    python benchmarks/lvagent.py select  [--seeds 10] [--worlds 3] [--minutes 20] [--questions 50]
    python benchmarks/lvagent.py discuss [--worlds 6] [--minutes 20] [--questions 60]
    python benchmarks/lvagent.py own     [--worlds 60] [--minutes 20] [--questions 40] [--workers 8]

The library has three good agents, each with another weakness, and three poor ones: one sees little,
one hallucinates, one does not see what people do. ``select`` uses other worlds for each seed and
counts how often the three good agents form the team. ``discuss`` puts every question to the three
good agents: as a team with three rounds, as the vote of the first round, under the other rules of
Table 6, and to each alone. Differences are paired by question; intervals are over worlds. The
calibration tables show accuracy by the vote of the first round and by the round of exit. ``own``
decides whether agents that watch the whole film should draw their own frames.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from dataclasses import replace

from longtake.evals import selection
from longtake.evals.lab import lab
from longtake.evals.scoring import accuracy, correct, paired
from longtake.evals.solving import answer_one
from longtake.events import FramesSeen, StepBegan, Stream
from longtake.lab.acuity import make
from longtake.lab.profile import LAB_2, PROFILE
from longtake.methods.lvagent.method import LVAgent
from longtake.session.asking import Session, solve
from longtake.steps.run import Agent, Run
from longtake.steps.team import Member

GOOD = {
    "ann": "acuity={acuity:g},seed=1,onscreen={weak:g}",
    "bob": "acuity={acuity:g},seed=2,people={weak:g}",
    "cid": "acuity={acuity:g},seed=3,action={weak:g}",
}
POOR = {
    "dim": "acuity=0.1,seed=4",
    "inventive": "acuity=0.3,seed=5,hallucination=0.9",
    "blind to deeds": "acuity={acuity:g},seed=6,action=0.05",
}
VOTES = {0.88: "3 : 0", 0.53: "2 : 1", 0.26: "1 : 1 : 1"}


class Rounds:
    """A sink that records the moments shown for answers, round by round."""

    def __init__(self):
        self.shown = []

    def handle(self, event):
        if isinstance(event, StepBegan) and event.name == "round":
            self.shown.append(set())
        elif isinstance(event, FramesSeen) and event.purpose == "lvagent/answer":
            self.shown[-1] |= {seen.time for seen in event.frames}

    def picture(self, digest, jpeg):
        pass

    def close(self):
        pass


def discuss(options) -> None:
    seeds = range(options.first_seed, options.first_seed + options.worlds)
    benchmark = lab(seeds, options.minutes, options.questions, noise=options.noise)
    agents = [
        Agent(name, make(text.format(acuity=options.acuity, weak=options.weak)))
        for name, text in GOOD.items()
    ]
    team = LVAgent()
    contenders = {
        "team": (team, agents),
        "vote of round 1": (replace(team, reflection=False), agents),
        "best score": (replace(team, discussion="best_score"), agents),
        "decide by agent": (replace(team, discussion="decide_by_agent"), agents),
        **{agent.name: (team, [agent]) for agent in agents},
    }
    right, used = {name: [] for name in contenders}, {name: [] for name in contenders}
    videos, exits, votes, evident = [], [], [], []
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
                exits.append(len(rounds.shown))
                shown_sets = (rounds.shown[0], rounds.shown[-1], set().union(*rounds.shown))
                evident.append([shows_all(item.evidence, shown) for shown in shown_sets])
                votes.append(answer.confidence)
    noise = options.noise or PROFILE.encoder.noise
    print(
        f"lab {PROFILE.hash}, {len(videos)} questions, "
        f"{options.worlds} worlds of {options.minutes} min, "
        f"acuity {options.acuity:g}, encoder noise {noise:g}"
    )
    for name, values in right.items():
        frames = sum(u.frames for u in used[name]) / len(videos)
        calls = sum(u.calls for u in used[name]) / len(videos)
        cost = f"{frames:4.0f} frames {calls:4.1f} calls"
        lead = f"   the team leads by {paired(right['team'], values, videos)}"
        print(f"{name:<16}{accuracy(values, videos)}  {cost}{'' if name == 'team' else lead}")
    best = max((agent.name for agent in agents), key=lambda name: sum(right[name]))
    print(f"best member (chosen in hindsight): {best}")
    first_votes = [VOTES.get(vote, "no answer") for vote in votes]
    calibrate("vote of the first round", first_votes, right["team"], videos)
    calibrate("round of exit", exits, right["team"], videos)
    split = [n for n, v in enumerate(votes) if VOTES.get(v) == "1 : 1 : 1"]
    if split:
        team_right, vote_right = (
            [right[name][n] for n in split] for name in ("team", "vote of round 1")
        )
        shares = [sum(evident[n][which] for n in split) / len(split) for which in range(3)]
        lead = paired(team_right, vote_right, [videos[n] for n in split])
        print(f"questions with a split first round: the team leads its vote by {lead}")
        print(
            f"  all evidence was shown in the first round for {shares[0]:.0%}, "
            f"in the last for {shares[1]:.0%}, in all rounds together for {shares[2]:.0%}"
        )


def shows_all(evidence, times) -> bool:
    """Whether a frame of every evidence segment was shown."""
    return all(any(part.start <= time < part.end for time in times) for part in evidence)


def calibrate(what, groups, right, videos) -> None:
    print(f"{what}:")
    for group in sorted(set(groups), key=str):
        chosen = [n for n, one in enumerate(groups) if one == group]
        print(f"  {group!s:<12}{accuracy([right[n] for n in chosen], [videos[n] for n in chosen])}")


def own(options) -> None:
    """The good team with shared frames and with each agent's own, on the same questions."""
    first = options.first_seed
    jobs = [(seed, options) for seed in range(first, first + options.worlds)]
    right, videos = {False: [], True: []}, []
    with multiprocessing.Pool(options.workers) as pool:
        for done, (seed, answered) in enumerate(pool.imap_unordered(own_in_one_world, jobs), 1):
            for setting, values in answered.items():
                right[setting] += values
            videos += [seed] * len(answered[True])
            print(f"{done} of {len(jobs)} worlds", end="\r", flush=True)
    print(f"lab {LAB_2.hash}, {len(videos)} questions, {options.worlds} worlds")
    print(f"shared frames {accuracy(right[False], videos)}")
    print(f"own frames    {accuracy(right[True], videos)}")
    print(f"own frames lead by {paired(right[True], right[False], videos)}")


def own_in_one_world(job) -> tuple:
    """The seed, and for both settings whether each answer is right."""
    seed, options = job
    benchmark = lab([seed], options.minutes, options.questions, noise=options.noise, profile=LAB_2)
    agents = []
    for name, text in GOOD.items():
        parameters = text.format(acuity=options.acuity, weak=options.weak)
        agents.append(Agent(name, make(f"profile={LAB_2.name},{parameters}")))
    right = {False: [], True: []}
    for item in benchmark.items:
        footage = benchmark.source.footage(item.asked.video)
        for setting, values in right.items():
            method = LVAgent(own_frames=setting)
            answer = solve(method, footage, item.asked.question, Run({}, team=agents)).answer
            values.append(correct(item, answer.choice, answer.text))
    return seed, right


def choose(options) -> None:
    library = [
        Member(name=n, model=f"lab/{t.format(acuity=options.acuity, weak=options.weak)}")
        for n, t in {**POOR, **GOOD}.items()
    ]
    whole = 0
    each = f"{options.worlds} worlds of {options.minutes} min, {options.questions} questions each"
    print(f"lab {PROFILE.hash}, per seed: {each}")
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        worlds = range(seed * options.worlds, (seed + 1) * options.worlds)
        benchmark = lab(worlds, options.minutes, options.questions, noise=options.noise)
        began = time.perf_counter()
        answers = {member.name: {} for member in library}
        # question by question, so that frames are drawn once for all agents
        for item in benchmark.items:
            for member in library:
                solver = selection.solver_of(member, Session())
                row = answer_one(solver, benchmark.source, item.asked)
                answers[member.name][item.asked.id] = row
        selected = selection.rank(library, benchmark, answers, lambda: make("acuity=1"))
        team = [ranked.member.name for ranked in selected.ranking[:3]]
        whole += set(team) == set(GOOD)
        rates = ", ".join(f"{r.member.name} {r.agreement.value:.2f}" for r in selected.ranking)
        print(f"seed {seed}: {rates}  ({time.perf_counter() - began:.0f} s)", flush=True)
    print(f"the three good agents formed the team for {whole} of {options.seeds} seeds")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["select", "discuss", "own"])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--worlds", type=int)
    parser.add_argument("--minutes", type=int, default=20)
    parser.add_argument("--questions", type=int)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--acuity", type=float, default=0.9)
    parser.add_argument(
        "--weak", type=float, default=0.6, help="acuity of a good agent at its weakness"
    )
    parser.add_argument("--noise", type=float)
    parser.add_argument("--workers", type=int, default=2, help="processes of 'own'")
    options = parser.parse_args()
    act, worlds, questions = ACTS[options.what]
    options.worlds = options.worlds or worlds
    options.questions = options.questions or questions
    act(options)


# what is done, with how many worlds and questions unless told otherwise
ACTS = {"select": (choose, 3, 50), "discuss": (discuss, 6, 60), "own": (own, 60, 40)}


if __name__ == "__main__":
    main()
