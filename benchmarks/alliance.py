"""A4VL with three simulated agents, against each agent alone and against their majority vote.

    python benchmarks/alliance.py [--worlds 5] [--minutes 20] [--questions 60] [--acuity 0.6]
                                  [--noise 2] [--grid]

The agents have the same acuity and different blind spots: one hardly sees deeds, one hardly sees
people, one hardly reads signs. All contenders get equal numbers of frames per question. An agent
alone gets as many uniform frames as A4VL showed to all agents together. In a vote, each agent gets
a third of them and more than half must agree. There are three votes, because A4VL shows some frames
twice (for an answer and for its reason): the first counts every showing, the second only distinct
frames, and in the third each agent gets as many frames as A4VL shows for one answer.

The share of the evidence among the frames is printed for each vote, for one answer of A4VL and
for all its answers. Differences are paired by question; intervals are over worlds. ``--grid``
prints the lead over the votes for every acuity and noise of ``longtake lab run --sweep``;
``--delay`` measures the critical path with slow agents.
"""

from __future__ import annotations

import argparse
import time

from longtake.algorithms import sampling
from longtake.evals.experiment import ACUITIES, NOISES
from longtake.evals.lab import lab
from longtake.evals.scoring import accuracy, correct, paired
from longtake.events import FramesSeen, StepBegan, Stream
from longtake.lab.acuity import make
from longtake.lab.profile import PROFILE
from longtake.methods.a4vl.method import A4VL
from longtake.methods.base import configure
from longtake.methods.baselines.method import Uniform
from longtake.session.asking import solve
from longtake.steps.run import Agent, Run
from longtake.steps.votes import Opinion, majority

BLIND_SPOTS = {"ann": "action", "bob": "people", "cid": "onscreen"}
VOTES = ("vote, all showings", "vote, different", "vote, one answer's")
BLIND = 0.2
"""Acuity of an agent at its blind spot."""


class Slow:
    """A model whose every call takes a fixed number of seconds."""

    def __init__(self, chat, seconds):
        self.chat, self.seconds, self.card = chat, seconds, chat.card

    def complete(self, messages, options):
        reply = self.chat.complete(messages, options)
        time.sleep(self.seconds)
        return reply


def team(acuity: float) -> list[Agent]:
    """Three agents, each with another blind spot."""
    return [
        Agent(name, make(f"acuity={acuity:g},seed={number},{spot}={BLIND:g}"))
        for number, (name, spot) in enumerate(BLIND_SPOTS.items())
    ]


def vote(agents, footage, question, frames):
    """What more than half of the agents answer, each from uniform frames."""
    opinions = []
    for agent in agents:
        run = Run({"vlm": agent.chat})
        answer = Uniform(frames=frames).answer(footage, question, run)
        opinions.append(Opinion(agent.name, answer.choice, answer.text))
    return majority(opinions)


def held(item, times):
    """The share of the evidence segments from which a frame was shown."""
    shown = sum(any(s.start <= t <= s.end for t in times) for s in item.evidence)
    return shown / max(1, len(item.evidence))


def ask_all(item, footage, agents, method, *, alone=True):
    """Each contender's answer to a question, the evidence it was shown, and A4VL's usage."""
    question = item.asked.question
    run, counter = Run({}, team=agents), Counter()
    with Stream(counter).active():
        said = {"a4vl": solve(method, footage, question, run).answer.choice}
    frames = run.usage.frames
    for agent in agents if alone else ():
        answer = Uniform(frames=frames).answer(footage, question, Run({"vlm": agent.chat}))
        said[agent.name] = answer.choice
    per_answer_frames = method.n2(footage.duration)
    shown = frames // len(agents), len(counter.seen) // len(agents), per_answer_frames
    per_answer = [held(item, times) for times in counter.answers]
    together = [time for times in counter.answers for time in times]
    evidence = {
        "one answer of a4vl": sum(per_answer) / len(per_answer),
        "all answers of a4vl": held(item, together),
    }
    for name, each in zip(VOTES, shown, strict=True):
        said[name] = vote(agents, footage, question, each)
        evidence[name] = held(item, footage.times[sampling.uniform(len(footage.times), each)])
    return said, evidence, run.usage


def play(benchmark, agents, method, *, alone=True):
    """Per question: which contenders are right, the evidence shown, A4VL's usage, and the world."""
    right, shown, used, videos = {}, {}, [], []
    for item in benchmark.items:
        if not item.asked.question.options:
            continue  # votes between open answers would need a judge
        footage = benchmark.source.footage(item.asked.video)
        said, evidence, usage = ask_all(item, footage, agents, method, alone=alone)
        for name, choice in said.items():
            right.setdefault(name, []).append(correct(item, choice, ""))
        for name, share in evidence.items():
            shown.setdefault(name, []).append(share)
        used.append(usage)
        videos.append(item.asked.video)
    return right, shown, used, videos


def grid(options, seeds, method):
    """Print the lead over the votes for each acuity and noise, then overall."""
    total, everywhere = {}, []
    for acuity in ACUITIES:
        for noise in NOISES:
            benchmark = lab(seeds, options.minutes, options.questions, noise=noise)
            right, _, _, videos = play(benchmark, team(acuity), method, alone=False)
            leads = "   ".join(
                f"− {name} {paired(right['a4vl'], right[name], videos)}" for name in VOTES
            )
            own = accuracy(right["a4vl"], videos)
            print(f"acuity {acuity:g}, noise {noise:g}: {own}   {leads}", flush=True)
            for name, values in right.items():
                total.setdefault(name, []).extend(values)
            everywhere += videos
    for name in VOTES:
        lead = paired(total["a4vl"], total[name], everywhere)
        print(f"all {len(everywhere)} answers − {name}: {lead}")


class Counter:
    """A sink that counts rounds and records which frames were shown."""

    def __init__(self):
        self.rounds, self.seen, self.answers = 0, set(), []

    def handle(self, event):
        self.rounds += isinstance(event, StepBegan) and event.name == "round"
        if isinstance(event, FramesSeen):
            times = [frame.time for frame in event.frames]
            self.seen.update(times)
            if event.purpose == "a4vl/answer":
                self.answers.append(times)

    def picture(self, digest, jpeg):
        pass

    def close(self):
        pass


def critical_path(item, footage, acuity, delay):
    """Seconds that a question takes with slow agents, and its number of sequential calls."""
    question = item.asked.question
    # the first run draws and embeds the film, so that the second one measures calls only
    A4VL().answer(footage, question, Run({}, team=team(acuity)))
    slow = [Agent(agent.name, Slow(agent.chat, delay)) for agent in team(acuity)]
    counter, run = Counter(), Run({}, team=slow)
    began = time.perf_counter()
    with Stream(counter).active():
        A4VL().answer(footage, question, run)
    seconds = time.perf_counter() - began
    # clue; answer and reason; scores and new clues between rounds; summary
    return seconds, 1 + 2 * counter.rounds + 2 * (counter.rounds - 1) + 1


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--worlds", type=int, default=5)
    parser.add_argument("--minutes", type=int, default=20)
    parser.add_argument("--questions", type=int, default=60)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--acuity", type=float, default=0.6)
    parser.add_argument("--noise", type=float)
    parser.add_argument("--preset")
    parser.add_argument("--grid", action="store_true")
    parser.add_argument(
        "--delay",
        type=float,
        default=0.5,
        help="seconds per call on the critical path; 0 skips the measurement",
    )
    options = parser.parse_args()
    seeds = range(options.first_seed, options.first_seed + options.worlds)
    method = configure(A4VL, {"preset": options.preset} if options.preset else {})
    if options.grid:
        print(f"lab {PROFILE.hash}, {options.worlds} worlds of {options.minutes} min")
        grid(options, seeds, method)
        return
    benchmark = lab(seeds, options.minutes, options.questions, noise=options.noise)
    right, shown, used, videos = play(benchmark, team(options.acuity), method)
    count, setting = len(videos), f"acuity {options.acuity:g}, noise {options.noise}"
    print(f"lab {PROFILE.hash}, {count} questions, {options.minutes} min, {setting}")
    frames, calls = sum(u.frames for u in used) / count, sum(u.calls for u in used) / count
    print(f"per question: {frames:.0f} frames, {calls:.1f} calls")
    for name, values in right.items():
        lead = "" if name == "a4vl" else f"   a4vl leads by {paired(right['a4vl'], values, videos)}"
        print(f"{name:<20}{accuracy(values, videos)}{lead}")
    for name, shares in shown.items():
        print(f"evidence among the frames of {name}: {sum(shares) / count:.0%}")
    if not options.delay:
        return
    for item in [item for item in benchmark.items if item.asked.question.options][:6]:
        footage = benchmark.source.footage(item.asked.video)
        seconds, steps = critical_path(item, footage, options.acuity, options.delay)
        ratio = seconds / (options.delay * steps)
        timing = f"{seconds:.2f} s for {steps} steps, {ratio:.2f} × the minimum"
        print(f"calls of {options.delay:g} s: {timing}")


if __name__ == "__main__":
    main()
