"""VideoDetective in the laboratory, against uniform frames and without each of its parts.

    python benchmarks/detective.py [--worlds 6] [--minutes 60] [--questions 55] [--model acuity=0.8]

Contenders answer the same questions with one simulated model in both roles: as many uniform
frames as the method's final call shows, the rows of the paper's table 3, the method without
on-screen text and speech, and its presets. Results by kind of question follow. ``--grid`` instead
prints the lead over uniform frames for every acuity and noise of ``longtake lab run --sweep``
(which itself compares with as many uniform frames as the method shows in all its calls).
Intervals are 95 %, over worlds; p is McNemar's.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from longtake.evals.experiment import ACUITIES, NOISES
from longtake.evals.items import Benchmark
from longtake.evals.lab import lab
from longtake.evals.scoring import accuracy, correct, paired
from longtake.events import Event, FramesSeen, Noted, ScoresSet, Stream
from longtake.lab.acuity import make
from longtake.lab.profile import PROFILE
from longtake.methods.base import Method, configure
from longtake.methods.baselines.method import Uniform
from longtake.methods.videodetective.method import VideoDetective
from longtake.session.asking import solve
from longtake.steps.run import Run
from longtake.types import Segment, Usage

FULL = "full"
TABLE_3: Mapping[str, Mapping[str, Any]] = {
    "without propagation": {"propagation": False},
    "without facets and refinement": {"decomposition": False, "refinement": False},
    "without refinement": {"refinement": False},
    "without textual evidence": {"textual_evidence": False},
    "without optimized sampling": {"optimized_sampling": False},
}
CHANNELS: Mapping[str, Mapping[str, Any]] = {
    "without on-screen text": {"looking": {"onscreen": False}},
    "without speech": {"looking": {"speech": False}},
    "without either": {"looking": {"onscreen": False, "speech": False}},
}
TEXTS: Mapping[str, Mapping[str, Any]] = {
    "all texts of a scene": {"package_texts": "all"},
    "all texts, no on-screen text": {"package_texts": "all", "looking": {"onscreen": False}},
}
WIDTHS: Mapping[str, Mapping[str, Any]] = {
    "close in time (τ 5 s)": {"graph": {"tau": 5.0}},
    "far in time (τ 120 s)": {"graph": {"tau": 120.0}},
    "two edges (k 2)": {"graph": {"top": 2}},
    "by sight alone (α 1)": {"graph": {"alpha": 1.0}},
    "little from neighbours (β 0.2)": {"graph": {"beta": 0.2}},
    "one step (T 1)": {"graph": {"iterations": 1}},
}
"""How far belief spreads; only run where ``--only`` names them."""
PRESETS: Mapping[str, Mapping[str, Any]] = {
    name: {"preset": name} for name in VideoDetective.presets
}


class EvidenceSink:
    """Follows the evidence of a question: what was observed, shown, and described at the end."""

    def __init__(self, evidence: Sequence[Segment]):
        self._evidence = evidence
        self._looks, self._selected, self._shown, self._doubted = [], [], [], False

    def handle(self, event: Event) -> None:
        match event:
            case ScoresSet(label="observed"):
                self._looks += event.segments
            case ScoresSet(label="selected"):
                self._selected += event.segments
            case Noted(label="fallback"):
                self._doubted = True
            case FramesSeen(purpose="videodetective/answer" | "baselines/uniform"):
                self._shown += [Segment(frame.time, frame.time + 1e-3) for frame in event.frames]

    def picture(self, digest: str, jpeg: Callable[[], bytes]) -> None:
        pass

    def close(self) -> None:
        pass

    def shares(self) -> tuple[float, float, float]:
        """Shares of the evidence: observed, in a final frame, in a scene described at the end."""
        told = [look for look in self._looks if self._doubted or look in self._selected]
        return tuple(self._share(where) for where in (self._looks, self._shown, told))

    def _share(self, where: Sequence[Segment]) -> float:
        covered = sum(any(one.overlap(e) > 0 for one in where) for e in self._evidence)
        return covered / max(1, len(self._evidence))


@dataclass(frozen=True)
class Played:
    """A contender's answers, their cost, and how much of the evidence was used."""

    right: list[bool]
    used: list[Usage]
    shares: list[tuple[float, float, float]]

    def followed(self) -> str:
        """The mean shares of the evidence."""
        columns = zip(*self.shares, strict=True)
        observed, shown, told = (sum(column) / len(column) for column in columns)
        final = f"in final frames {shown:.0%}, in final texts {told:.0%}"
        return f"evidence observed {observed:.0%}, {final}"


def play(method: Method, benchmark: Benchmark, model: str) -> Played:
    """Answer every question of a benchmark."""
    played = Played([], [], [])
    chat = make(model)
    for item in benchmark.items:
        footage, sink = benchmark.source.footage(item.asked.video), EvidenceSink(item.evidence)
        run = Run(dict.fromkeys(method.roles, chat))
        with Stream(sink).active():
            result = solve(method, footage, item.asked.question, run)
        played.right.append(correct(item, result.answer.choice, result.answer.text))
        played.used.append(result.usage)
        played.shares.append(sink.shares())
    return played


def grid(seeds: Sequence[int], minutes: int, questions: int) -> None:
    """Print the lead over as many uniform frames as in the final call, by acuity and noise."""
    method, plain = VideoDetective(), Uniform(frames=VideoDetective().frames)
    ours, theirs, every = list[bool](), list[bool](), list[str]()
    print("      " + "".join(f"{noise:>24g}" for noise in NOISES))
    for acuity in ACUITIES:
        row = ""
        for noise in NOISES:
            benchmark = lab(seeds, minutes, questions, noise=noise)
            videos = [item.asked.video for item in benchmark.items]
            full, uniform = (
                play(each, benchmark, f"acuity={acuity:g}").right for each in (method, plain)
            )
            lead = paired(full, uniform, videos)
            value, low, high = (100 * part for part in (lead.value, lead.low, lead.high))
            row += f"{f'{value:+.1f} [{low:+.1f}, {high:+.1f}]':>24}"
            ours, theirs, every = ours + full, theirs + uniform, every + videos
        print(f"{acuity:<6g}{row}", flush=True)
    print(f"all {len(ours)} questions: {accuracy(ours, every)}, lead {paired(ours, theirs, every)}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--worlds", type=int, default=6)
    parser.add_argument("--minutes", type=int, default=60)
    parser.add_argument("--questions", type=int, default=55)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--model", default="acuity=0.8", help="parameters of the simulated model")
    parser.add_argument("--noise", type=float)
    parser.add_argument("--kinds", nargs="*", help="kinds of questions, such as onscreen or spoken")
    parser.add_argument("--grid", action="store_true")
    parser.add_argument("--only", nargs="*", help="names of contenders")
    options = parser.parse_args()
    seeds = range(options.first_seed, options.first_seed + options.worlds)
    if options.grid:
        worlds = f"{options.worlds} worlds of {options.minutes} min"
        print(f"lab {PROFILE.hash}, {worlds}, {options.questions} questions each")
        grid(seeds, options.minutes, options.questions)
        return
    benchmark = lab(seeds, options.minutes, options.questions, noise=options.noise)
    wanted = [
        item
        for item in benchmark.items
        if options.kinds is None or item.tags["type"] in options.kinds
    ]
    benchmark = replace(benchmark, items=wanted)
    videos = [item.asked.video for item in benchmark.items]
    kinds = sorted({item.tags["type"] for item in benchmark.items})
    model = options.model
    worlds = f"{options.worlds} worlds of {options.minutes} min"
    print(f"lab {PROFILE.hash}, {len(videos)} questions on {worlds}, {model}")
    played = play(VideoDetective(), benchmark, model)
    full, used = played.right, played.used
    print(f"{FULL:<32}{accuracy(full, videos)}")
    print(
        f"per question: {sum(u.frames for u in used) / len(used):.0f} frames shown, "
        f"{sum(u.calls for u in used) / len(used):.1f} calls, "
        f"{sum(u.tokens_in + u.tokens_out for u in used) / len(used):,.0f} tokens"
    )
    print(played.followed())
    contenders: dict[str, Method] = {"uniform": Uniform(frames=VideoDetective().frames)}
    contenders |= {
        name: configure(VideoDetective, values)
        for name, values in {**TABLE_3, **CHANNELS, **TEXTS, **WIDTHS, **PRESETS}.items()
    }
    rates = {FULL: full}
    for name, method in contenders.items():
        wanted = name not in WIDTHS if options.only is None else name in options.only
        if wanted:
            played = play(method, benchmark, model)
            rates[name] = played.right
            lead = paired(full, played.right, videos)
            print(f"{name:<32}{accuracy(played.right, videos)}   full leads by {lead}")
            print(f"  {played.followed()}", flush=True)
    print("by kind: accuracy, and the lead of the full method")
    for kind in kinds:
        chosen = [n for n, item in enumerate(benchmark.items) if item.tags["type"] == kind]
        some = [videos[n] for n in chosen]
        own = [full[n] for n in chosen]
        print(f"  {kind} {accuracy(own, some)}")
        for name in ("uniform", *CHANNELS, *TEXTS):
            if name in rates:
                other = [rates[name][n] for n in chosen]
                print(
                    f"    {name:<28}{accuracy(other, some).value:6.1%}   {paired(own, other, some)}"
                )


if __name__ == "__main__":
    main()
