"""A4VL with three simulated agents, beside each of them alone and beside their majority vote, at equal total frames.

    python benchmarks/alliance.py [--worlds 5] [--minutes 20] [--questions 60] [--acuity 0.6] [--noise 2] [--grid]

The agents have the same acuity and different blind spots: one hardly sees deeds, one hardly people, one hardly what can
be read. Alone, an agent is shown as many uniform frames as A4VL showed all of them together on that question; in the
vote each is shown a third of them, and more than half must agree. A4VL shows a frame more than once, for an answer and
for its reason; in the second vote only different frames count. In the third each agent is shown as many frames as A4VL
shows for one answer. Beside each stands how much of the evidence was among the frames; A4VL's is that of one answer and
of all its answers. Differences are paired by question, intervals are over worlds. ``--grid`` prints the leads
over the votes for every acuity and noise of ``longtake lab run --sweep``; ``--delay`` times slow agents.
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
from longtake.steps.team import Opinion, majority

BLIND_SPOTS = {"ann": "action", "bob": "people", "cid": "onscreen"}
VOTES = ("vote, all showings", "vote, different", "vote, one answer's")
BLIND = 0.2
"""What an agent's acuity is at its blind spot."""


class Slow:
    """A model whose every call takes so many seconds, however long the reply."""

    def __init__(self, chat, seconds):
        self.chat, self.seconds, self.card = chat, seconds, chat.card

    def complete(self, messages, options):
        reply = self.chat.complete(messages, options)
        time.sleep(self.seconds)
        return reply


def team(acuity: float) -> list[Agent]:
    """Three agents, each blind to something else."""
    return [
        Agent(name, make(f"acuity={acuity:g},seed={number},{spot}={BLIND:g}"))
        for number, (name, spot) in enumerate(BLIND_SPOTS.items())
    ]


def vote(agents, footage, question, frames):
    """What more than half of the agents say, each from its own look at uniform frames."""
    said = [
        (a.name, Uniform(frames=frames).answer(footage, question, Run({"vlm": a.chat})))
        for a in agents
    ]
    return majority([Opinion(name, one.choice, one.text) for name, one in said])


def held(item, times):
    """The share of the stretches that answer a question of which a frame was shown."""
    return sum(any(s.start <= t <= s.end for t in times) for s in item.evidence) / max(
        1, len(item.evidence)
    )


def ask_all(item, footage, agents, method, *, alone=True):
    """What each contender says to one question, how much of the evidence it was shown, and what A4VL used."""
    question = item.asked.question
    run, counter = Run({}, team=agents), Counter()
    with Stream(counter).active():
        said = {"a4vl": solve(method, footage, question, run).answer.choice}
    frames = run.usage.frames
    for agent in agents if alone else ():
        said[agent.name] = (
            Uniform(frames=frames).answer(footage, question, Run({"vlm": agent.chat})).choice
        )
    shown = frames // len(agents), len(counter.seen) // len(agents), method.n2(footage)
    evidence = {
        "one answer of a4vl": sum(held(item, times) for times in counter.answers)
        / len(counter.answers),
        "all answers of a4vl": held(item, [time for times in counter.answers for time in times]),
    }
    for name, each in zip(VOTES, shown, strict=True):
        said[name] = vote(agents, footage, question, each)
        evidence[name] = held(item, footage.times[sampling.uniform(len(footage.times), each)])
    return said, evidence, run.usage


def play(benchmark, agents, method, *, alone=True):
    """Whether each contender is right, question by question, what it was shown, what A4VL used, and the worlds."""
    right, shown, used, videos = {}, {}, [], []
    for item in benchmark.items:
        if not item.asked.question.options:
            continue  # a vote among words needs a judge of its own
        said, evidence, usage = ask_all(
            item, benchmark.source.footage(item.asked.video), agents, method, alone=alone
        )
        for name, choice in said.items():
            right.setdefault(name, []).append(correct(item, choice, ""))
        for name, share in evidence.items():
            shown.setdefault(name, []).append(share)
        used.append(usage)
        videos.append(item.asked.video)
    return right, shown, used, videos


def grid(options, seeds, method):
    """The lead over the votes, a line for each acuity and noise, then over all of them."""
    total, everywhere = {}, []
    for acuity in ACUITIES:
        for noise in NOISES:
            benchmark = lab(seeds, options.minutes, options.questions, noise=noise)
            right, _, _, videos = play(benchmark, team(acuity), method, alone=False)
            leads = "   ".join(
                f"− {name} {paired(right['a4vl'], right[name], videos)}" for name in VOTES
            )
            print(
                f"acuity {acuity:g}, noise {noise:g}: {accuracy(right['a4vl'], videos)}   {leads}",
                flush=True,
            )
            for name, values in right.items():
                total.setdefault(name, []).extend(values)
            everywhere += videos
    for name in VOTES:
        print(
            f"all {len(everywhere)} answers − {name}: {paired(total['a4vl'], total[name], everywhere)}"
        )


class Counter:
    """A sink that counts rounds and keeps what was shown."""

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
    """Seconds that a question takes with slow agents, and the calls that had to wait for one another."""
    question = item.asked.question
    A4VL().answer(
        footage, question, Run({}, team=team(acuity))
    )  # the film is drawn and embedded now
    slow = [Agent(agent.name, Slow(agent.chat, delay)) for agent in team(acuity)]
    counter, run = Counter(), Run({}, team=slow)
    began = time.perf_counter()
    with Stream(counter).active():
        A4VL().answer(footage, question, run)
    # clue; answer and reason; scores and new clues between rounds; summary
    return time.perf_counter() - began, 1 + 2 * counter.rounds + 2 * (counter.rounds - 1) + 1


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
        help="seconds of a call for the critical path; 0 skips it",
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
    print(
        f"a question: {sum(u.frames for u in used) / count:.0f} frames, {sum(u.calls for u in used) / count:.1f} calls"
    )
    for name, values in right.items():
        lead = "" if name == "a4vl" else f"   a4vl leads by {paired(right['a4vl'], values, videos)}"
        print(f"{name:<20}{accuracy(values, videos)}{lead}")
    for name, shares in shown.items():
        print(f"evidence among the frames of {name}: {sum(shares) / count:.0%}")
    some = [item for item in benchmark.items if item.asked.question.options][
        : 6 if options.delay else 0
    ]
    for item in some:
        seconds, steps = critical_path(
            item, benchmark.source.footage(item.asked.video), options.acuity, options.delay
        )
        share = seconds / (options.delay * steps)
        print(
            f"calls of {options.delay:g} s: {seconds:.2f} s for {steps} steps, {share:.2f} of the least"
        )


if __name__ == "__main__":
    main()
