"""Measure a method on lab worlds, and compare it with as many uniform frames."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from longtake import prompts
from longtake.errors import ConfigError, ModelError
from longtake.runner.assignment import ModelAssignment
from longtake.runner.session import Session
from longtake_bench.benchmarks import Benchmark
from longtake_bench.lab.profile import PROFILE, LabModel
from longtake_bench.runner import AskAll, Scored, Solver, evaluate
from longtake_bench.runs import list_errors
from longtake_bench.scoring import Difference, Rate, by_tag, paired

BASELINE = "uniform"
LAB = "lab/"
"""Prefix of the names of simulated models."""


@dataclass(frozen=True)
class MethodResult:
    """The results of a method, and of uniform sampling with as many frames."""

    method: str
    models: tuple[str, ...]
    scored: Scored
    uniform: Scored
    uniform_frames: int
    profile: str
    """Hash of the laboratory's parameters."""

    @property
    def lead(self) -> Difference:
        """The method minus uniform, on the same questions."""
        videos = [item.asked.video for item in self.scored.items]
        return paired(self.scored.right, self.uniform.right, videos)

    def types(self) -> dict[str, Rate]:
        """Accuracy by kind of question."""
        return dict(by_tag(self.scored.items, self.scored.right, "type"))

    def plain(self) -> dict[str, Any]:
        """As ``--json`` prints it."""
        accuracy, citations = self.scored.accuracy, self.scored.citations
        return {
            "profile": self.profile,
            "method": self.method,
            "models": list(self.models),
            "questions": len(self.scored.items),
            "accuracy": accuracy.value,
            "interval": [accuracy.low, accuracy.high],
            "by_type": {kind: vars(rate) for kind, rate in self.types().items()},
            "frames": self.scored.mean("frames"),
            "seen": self.scored.count("seen"),
            "rounds": self.scored.count("rounds"),
            "calls": self.scored.mean("calls"),
            "tokens": self.scored.tokens,
            "critical_path_s": self.scored.mean("seconds"),
            "uniform": {"frames": self.uniform_frames, "accuracy": self.uniform.accuracy.value},
            "lead": vars(self.lead),
            "citations": None if citations is None else citations.plain(),
            "errors": dict(self.scored.errors),
        }


def with_profile_model(assignment: ModelAssignment, method: str) -> ModelAssignment:
    """The assignment with the profile's simulated model in every role that has no model.

    Simulated models that name no edition of the laboratory are the profile's.
    """
    models = [_of_profile(model) for model in assignment.models]
    if not assignment.everyone:
        # in front, because a model named later for a role takes precedence
        models = [LabModel.of(PROFILE.name).name, *models]
    return replace(assignment, models=tuple(models)).among((method, BASELINE))


def _of_profile(model: str) -> str:
    """``ROLE=NAME`` or ``NAME``, with the profile in the name of a simulated model."""
    role, prefix, parameters = model.partition(LAB)
    is_named = "profile=" in parameters
    is_simulated = prefix and (not role or role.endswith("="))
    if not is_simulated or is_named:
        return model
    return f"{role}{LAB}profile={PROFILE.name},{parameters}"


def check(solver: Solver, benchmark: Benchmark, *, all_films: bool) -> None:
    """Open what the first question needs, so that unknown names are rejected before the run."""
    if not benchmark.items:
        raise ConfigError("worlds this short have no questions; choose more --minutes or --worlds")
    session = solver.session
    videos = list(dict.fromkeys(item.asked.video for item in benchmark.items))
    # worlds drawn from their scripts can always be opened; encoded films may be missing
    if not all_films:
        videos = videos[:1]
    with prompts.override(session.prompts):
        for video in videos:
            footage = benchmark.source.footage(video)
            for name in (solver.method, BASELINE):
                # nothing is sent before the host is named
                session.run(session.method(name), footage, discover=False)


def measure(
    solver: Solver, benchmark: Benchmark, workers: int, ask_all: AskAll | None = None
) -> MethodResult:
    """Run the method, then uniform sampling with as many frames as the method used on average.

    A method may look at more frames in many calls than one call can hold: then uniform sampling
    gets as many as fit.
    """
    scored = _scored(solver, benchmark, workers, ask_all)
    # uniform needs a frame, even if the method used none
    frames = max(1, round(scored.mean("frames")))
    fitting = frames_in_one_call(solver.session, benchmark)
    if fitting is not None:
        frames = min(frames, fitting)
    session = solver.session.with_fields(BASELINE, {"frames": frames})
    baseline = replace(solver, method=BASELINE, session=session)
    uniform = _scored(baseline, benchmark, workers, ask_all)
    models = tuple(session.assignment.models)
    profile = str(benchmark.settings["profile_hash"])
    return MethodResult(solver.method, models, scored, uniform, frames, profile)


def frames_in_one_call(session: Session, benchmark: Benchmark) -> int | None:
    """The most frames that uniform sampling can show; ``None`` if its model names no context."""
    footage = benchmark.source.footage(benchmark.items[0].asked.video)
    model = session.run(session.method(BASELINE), footage)["vlm"].card
    if model.context is None or model.picture_tokens is None:
        return None
    # 4,096 tokens stay for the prompt's words and the reply, 10 for the time before each picture
    return max(1, (model.context - 4096) // (model.picture_tokens + 10))


def _scored(solver: Solver, benchmark: Benchmark, workers: int, ask_all: AskAll | None) -> Scored:
    """The results of a method; raises if every question ended in an error."""
    scored = evaluate(solver, benchmark, workers=workers, ask_all=ask_all)
    # a figure of 0 % would look like a measurement
    errors = scored.errors
    if scored.rows and errors.total() == len(scored.rows):
        listed = "; ".join(list_errors(errors))
        models = ", ".join(solver.session.assignment.models)
        detail = f"{solver.method}: every question ended in an error ({listed})"
        raise ModelError(models, "unavailable", detail)
    return scored
