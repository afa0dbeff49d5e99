"""``longtake eval``, ``longtake report`` and ``longtake audit``."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from longtake import config
from longtake._util import on_one_line, visible
from longtake.agents.team import Member
from longtake.cli.jobs import on
from longtake.cli.options import (
    COUNT,
    FILE,
    PATH,
    check_models,
    common,
    question_method_option,
    session_options,
)
from longtake.cli.output import (
    PAGE,
    Kind,
    Output,
    check_place,
    say,
    time_left,
    worth_a_line,
    write_text,
)
from longtake.cluster.backends import BackendAddress
from longtake.config import Settings
from longtake.errors import ConfigError, LongtakeError, RunError
from longtake.methods.base import FULL
from longtake.registry import methods
from longtake.runner.assignment import ModelAssignment
from longtake.runner.session import Session
from longtake_bench import leaderboard, presets
from longtake_bench import report as reports
from longtake_bench.audit import COLUMNS, FLAGS, PASSES, SHOWN, audit_runs
from longtake_bench.benchmarks import Benchmark, BenchmarkInfo, about, load
from longtake_bench.benchmarks import benchmarks as registered
from longtake_bench.benchmarks.files import CaptionSource, FilmSource
from longtake_bench.cli.jobs import asking_on, spend_option
from longtake_bench.cli.options import (
    ablation_option,
    allow_differences,
    benchmark_files,
    benchmark_parts,
    retry_errors,
    workers,
)
from longtake_bench.experiment import LAB
from longtake_bench.presets import EvalPreset, Published
from longtake_bench.report import (
    RunReport,
    cell,
    html_report,
    markdown,
    questions_of,
    read,
    read_labelled,
    render,
    table,
)
from longtake_bench.results import QuestionResult, Results
from longtake_bench.runner import Solver, collect, evaluate, specify
from longtake_bench.runs import RunFolder, differences, plain_spec
from longtake_bench.scoring import correct


@click.command("eval")
@click.argument("name", metavar="[BENCHMARK]", required=False)
@click.option(
    "--list",
    "listing",
    is_flag=True,
    help="List benchmarks: what to download, where to put it, under which terms.",
)
@click.option("--preset", metavar="NAME", help="A paper's experiment; --list shows them.")
@ablation_option
@allow_differences
@benchmark_files("The benchmark's files.")
@benchmark_parts
@question_method_option
@click.option("--limit", type=COUNT, metavar="N", help="Only the first N questions.")
@click.option("--sample", type=COUNT, metavar="N", help="N questions drawn at random by --seed.")
@click.option(
    "--videos", type=COUNT, metavar="N", help="One question about each of N videos, likewise."
)
@workers(1)
@on
@spend_option
@click.option("--out", type=PATH, metavar="RUN", help="The run's folder.")
@click.option("--resume", is_flag=True, help="Continue the run in that folder.")
@retry_errors
@click.option("--traces", is_flag=True, help="Keep a trace of every question, without pictures.")
@common
@session_options
def eval_command(
    name: str | None,
    listing: bool,
    data: Path | None,
    parts: dict[str, str],
    session: Session,
    **given: Any,
) -> Output:
    """Run a method on a benchmark and score it.

    Every result is saved before the next question is asked: stop and resume at any time.
    Abstentions and errors count as wrong. With --preset, answers are checked only with --verify,
    since no paper does that, and encoders are the paper's or the nearest ones. Methods run in
    processes that never hold a label. Earlier replies are never reused, so that every run shows
    what it costs.

    With --list nothing is run: it lists the benchmarks and the papers' experiments, or describes
    one benchmark; with --data it reads the benchmark's files, and lists what is missing.

    \b
    Example:
      longtake eval --list
      longtake eval --list videomme --data Video-MME --of subtitles=yes
      longtake eval nextqa-captions --data nextqa --method videoagent --limit 50 --out runs/first
      longtake eval --preset symphony-lvbench --data LVBench --model gpt-4o --out runs/paper
      longtake eval lab --on ray://head:6379 --max-spend 50 --out runs/cluster
    """
    if not listing:
        return _evaluate(EvalOptions(name, data, parts, **given), session)
    if data is None:
        return _list(name)
    if name is None:
        raise ConfigError("--data needs a benchmark: longtake eval --list BENCHMARK --data DIR")
    return _check_files(name, data, parts)


@dataclass(frozen=True)
class EvalOptions:
    """What is run, and how; the fields are named after the options."""

    name: str | None
    data: Path | None
    parts: Mapping[str, str]
    method: str | None
    preset: str | None
    ablation: str | None
    allow_differences: bool
    limit: int | None
    sample: int | None
    videos: int | None
    workers: int
    where: BackendAddress | None
    max_spend: float | None
    out: Path | None
    resume: bool
    retry_errors: bool
    traces: bool

    def with_preset(self, planned: EvalPreset) -> EvalOptions:
        """The options with the benchmark and the method of a paper's experiment."""
        if self.name is not None or self.method is not None:
            raise ConfigError(
                f"--preset {self.preset} sets the benchmark and the method; omit them"
            )
        parts = {**planned.options, **self.parts}
        return replace(self, name=planned.benchmark, method=planned.method, parts=parts)

    def benchmark(self, seed: int) -> Benchmark:
        """The questions that are asked."""
        if self.name is None:
            raise ConfigError("missing a benchmark (see 'longtake eval --list') or a --preset")
        return load(self.name, self.data, self.parts).draw(
            limit=self.limit, sample=self.sample, videos=self.videos, seed=seed
        )


def _evaluate(options: EvalOptions, session: Session) -> Output:
    """Run a method on a benchmark."""
    out = options.out
    if out is None:
        raise ConfigError("missing --out: a folder for the run")
    differences: tuple[str, ...] = ()
    if options.preset is not None:
        planned = presets.read(options.preset, options.ablation)
        options = options.with_preset(planned)
        allowed = options.allow_differences
        session, differences = _with_preset(session, planned, allow=allowed)
    elif options.ablation or options.allow_differences:
        raise ConfigError("--ablation and --allow-differences need a --preset")
    method = options.method or session.assignment.default_method
    benchmark = options.benchmark(session.seed)
    roles = methods.get(method).roles
    check_benchmark(benchmark, session, roles)
    # a reply from another run would cost nothing in this one
    session = replace(session, assignment=replace(session.assignment, replies=False))
    traces = out / "traces" if options.traces else None
    solver = Solver(method, session, traces, options.preset, options.ablation, differences)
    check_models(session, roles, here=options.where is None)
    folder = RunFolder(out)
    # of an interrupted run
    earlier = folder.results()
    if options.resume and not earlier:
        say(f"{out}: nothing to resume; starting a new run")
    if traces is not None:
        traces.mkdir(parents=True, exist_ok=True)
    with asking_on(options.where, max_cost=options.max_spend, earlier=earlier) as ask_all:
        evaluate(
            solver,
            benchmark,
            folder,
            workers=options.workers,
            ask_all=ask_all,
            resume=options.resume or options.retry_errors,
            retry_errors=options.retry_errors,
            progress=_announcing(benchmark, len(earlier)),
        )
    report = read(folder, benchmark)
    folder.write(leaderboard.SUMMARY, leaderboard.summarize(report))
    # every question failed, for example because the server is down
    code = 4 if report.counts.keys() == {"error"} else 0
    text = markdown([report], _published([report]))
    return Output({"reports": reports.plain([report])}, [text], code)


def check_benchmark(benchmark: Benchmark, session: Session, roles: Sequence[str]) -> None:
    """Raise if no video is there, or if a simulated model would have to read real captions."""
    simulated = [model for model in session.models(roles) if model.startswith(LAB)]
    if simulated and isinstance(benchmark.source, CaptionSource):
        raise ConfigError(
            f"{simulated[0]} is simulated and cannot read the real captions of {benchmark.name};"
            " ask it about lab or lab-captions"
        )
    # other sources make their videos or hold them
    films = isinstance(benchmark.source, FilmSource)
    missing, videos = missing_videos(benchmark) if films else [], _videos(benchmark)
    if missing:
        listed = f"{len(missing)} of {len(videos)} videos are missing: {_some(missing)}"
        if len(missing) == len(videos):
            how = f"see 'longtake eval --list {benchmark.name}' for where to put them"
            raise ConfigError(f"{benchmark.name}: {listed}; {how}")
        say(f"{benchmark.name}: {listed}; their questions count as wrong")


def missing_videos(benchmark: Benchmark) -> list[str]:
    """The videos whose files or captions are not there."""
    source, missing = benchmark.source, []
    for video in _videos(benchmark):
        try:
            source.path(video) if isinstance(source, FilmSource) else source.footage(video)
        except ConfigError:
            missing.append(video)
    return missing


def _videos(benchmark: Benchmark) -> list[str]:
    return sorted({item.asked.video for item in benchmark.items})


def _some(names: Sequence[str]) -> str:
    """The first names of a list."""
    return ", ".join(names[:10]) + (", …" if len(names) > 10 else "")


def _with_preset(
    session: Session, planned: EvalPreset, *, allow: bool
) -> tuple[Session, tuple[str, ...]]:
    """The session with the paper's fields, models and encoders, and how it differs from the paper.

    The user's settings take precedence. Other encoders than the paper's must be allowed.
    """
    perception, different, missing = planned.perception(
        session.settings.perception, config.cache_folder(session.settings)
    )
    if different and not allow:
        listed = "; ".join(different)
        raise ConfigError(
            f"{planned.name} would use {listed}: {planned.advice(different, missing)}"
        )
    differences = (*([planned.departs] if planned.departs else []), *different)
    say(f"{'; '.join((planned.title, *differences))}; the paper used {planned.used}")
    session = replace(session, settings=replace(session.settings, perception=perception))
    # the paper's settings apply to every model, even to small ones
    fields = {"preset": FULL, **planned.fields, **session.settings.methods.get(planned.method, {})}
    assignment = _models_of_preset(planned, session)
    session = replace(session.with_fields(planned.method, fields), assignment=assignment)
    if click.get_current_context().params["verify"]:
        return session, differences
    # no paper checks answers, and the check may change them
    answers = replace(session.settings.answers, verify=False)
    return replace(session, settings=replace(session.settings, answers=answers)), differences


def _models_of_preset(planned: EvalPreset, session: Session) -> ModelAssignment:
    """The user's models, or else the paper's if they can be found by name."""
    assignment = session.assignment
    if assignment.models or assignment.team:
        return assignment
    roster = tuple(Member(name=model, model=model) for model in planned.team)
    named = replace(assignment, models=planned.models, roster=roster)
    try:
        replace(session, assignment=named).hosts(methods.get(planned.method).roles)
    except ConfigError as error:
        raise ConfigError(
            f"{planned.name}: {error}; the paper used {planned.used}. Choose other models with "
            "--model or --team, or define these names in config.toml"
        ) from error
    return named


def _announcing(benchmark: Benchmark, before: int) -> Callable[[QuestionResult], None]:
    """Announces results: the accuracy so far, the cost, and the time left."""
    items = {item.asked.id: item for item in benchmark.items}
    # without earlier results, which may come from another machine
    began, right, done, cost = time.monotonic(), 0, 0, 0.0

    def announce(row: QuestionResult) -> None:
        nonlocal right, done, cost
        item = items[row.id]
        labelled = item.label is not None
        right += labelled and correct(item, row.choice, row.text)
        done += 1
        cost += row.cost
        left = len(items) - before - done
        if worth_a_line(done, left):
            share = f"{right / done:.1%} right so far" if labelled else "no public labels"
            money = f"  ${cost:.2f}" if cost else ""
            rest = time_left(began, done, left)
            say(f"{before + done}/{len(items)}  {share}{money}  {rest}")

    return announce


def _list(name: str | None) -> Output:
    """The benchmarks and presets, or one of them."""
    listed = registered.names() if name is None else [name]
    described = {each: about(each) for each in listed}
    planned = [presets.read(each) for each in presets.names()]
    planned = [preset for preset in planned if preset.benchmark in described]
    keys = ("title", "get", "layout", "licence", "verified")
    benchmarks = []
    for each, info in described.items():
        facts = {key: getattr(info, key) for key in keys}
        benchmarks.append({"name": each, **facts, "options": dict(info.options)})
    experiments = [{**dataclasses.asdict(each), "used": each.used} for each in planned]
    lines = [line for each, info in described.items() for line in _described(each, info)]
    lines.append("\nExperiments of the papers, for 'longtake eval --preset NAME':")
    for preset in planned:
        lines.append(f"{preset.name}: {preset.title}")
        lines.append(f"  used     {preset.used}")
        lines.append(f"  encoders {preset.perceives or 'none'}")
        for figure in preset.published:
            lines.append(f"  published  {figure.accuracy:.1f} % {figure.system} ({figure.where})")
    return Output({"benchmarks": benchmarks, "presets": experiments}, lines)


def _check_files(name: str, data: Path, parts: Mapping[str, str]) -> Output:
    """Check the files of a benchmark; exit code 1 if videos are missing."""
    benchmark = load(name, data, parts)
    missing, videos = missing_videos(benchmark), _videos(benchmark)
    labels = sum(item.label is not None for item in benchmark.items)
    verified = about(name).verified
    others = []
    for file, digest in benchmark.files.items():
        if verified.get(Path(file).name, digest) != digest:
            others.append(file)
    counts = {"questions": len(benchmark.items), "labels": labels, "videos": len(videos)}
    lines = [f"{len(benchmark.items)} questions, {labels} with labels, {len(videos)} videos"]
    lines += [f"{file}: not the file that the loader was tested on" for file in others]
    if missing:
        lines.append(f"missing: {len(missing)} videos ({_some(missing)})")
    data_found = {"benchmark": name, **counts, "missing": missing, "other_files": others}
    return Output(data_found, lines, exit_code=1 if missing else 0)


def _described(name: str, described: BenchmarkInfo) -> Iterator[str]:
    yield f"{name}: {described.title}"
    yield f"  get      {described.get}"
    yield f"  layout   {described.layout}"
    yield f"  licence  {described.licence}"
    if not described.made:
        tested = "files of the same form, not on the real ones"
        if described.verified:
            tested = f"the real {', '.join(described.verified)}"
        yield f"  tested on  {tested}"
    for option, meaning in described.options.items():
        yield f"  --of {option}=…  {meaning}"


labels = click.option(
    "--data",
    multiple=True,
    type=PATH,
    metavar="DIR",
    help="The benchmark's files, since a run holds no labels; repeatable for several benchmarks.",
)


@click.command()
@click.argument("runs", nargs=-1, required=True, type=PATH, metavar="RUN...")
@labels
@click.option("--html", type=FILE, help="Write one self-contained page with plots (extra: report).")
@click.option(
    "--submission", type=FILE, help="Write the answers in the format of the benchmark's authors."
)
@click.option(
    "--site", type=PATH, metavar="DIR", help="Write a leaderboard of these runs (extra: report)."
)
@click.option("--check", is_flag=True, help="Only say whether a leaderboard can take each run.")
@common
def report(
    runs: tuple[Path, ...],
    data: tuple[Path, ...],
    html: Path | None,
    submission: Path | None,
    site: Path | None,
    check: bool,
    settings: Settings,  # noqa: ARG001
) -> Output:
    """Score runs and compare them, as Markdown, JSON or a web page.

    The first run on a benchmark is compared with each other run on it, on the questions that both
    answered. Figures from papers are shown separately.

    \b
    Example:
      longtake report runs/videoagent runs/uniform --data nextqa --html report.html
      longtake report runs/* --data nextqa --site leaderboard
    """
    if check or site is not None:
        return _leaderboard(runs, data, site)
    if html is not None:
        check_place(html, PAGE, inputs=(submission,))
    scored = [read_labelled(path, data) for path in runs]
    published = _published(scored)
    if submission is not None:
        _submit(scored, submission)
    if html is not None:
        write_text(html, html_report(scored, beside=html.resolve().parent, published=published))
    shown = {"reports": reports.plain(scored), "published": published}
    return Output(shown, [markdown(scored, published)])


def _leaderboard(runs: Sequence[Path], data: Sequence[Path], folder: Path | None) -> Output:
    """Check runs, say what is wrong with each, and write the pages of the valid ones."""
    checked: list[RunReport] = []
    refused: dict[str, str] = {}
    for path in runs:
        try:
            checked.append(leaderboard.check_run(path, data))
        except LongtakeError as error:
            refused[str(path)] = on_one_line(str(error))
    if folder is not None and checked:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"{folder}: cannot be created ({error.strerror})") from error
        for name, text in leaderboard.site(checked):
            check_place(folder / name, PAGE)
            write_text(folder / name, text)
    accepted = [{"run": each.folder, **leaderboard.summarize(each)} for each in checked]
    lines = []
    for each in checked:
        spec = leaderboard.spec_hash(each.spec)[:12]
        lines.append(visible(f"{each.folder}: ok, spec {spec}, {each.accuracy.strip()} right"))
    lines += [f"refused: {problem}" for problem in refused.values()]
    return Output({"accepted": accepted, "refused": refused}, lines, 2 if refused else 0)


def _published(scored: Sequence[RunReport]) -> Mapping[str, Sequence[Published]]:
    """The papers' figures for what was run, by preset and ablation."""
    published = {}
    for each in scored:
        preset, ablation = each.spec.get("preset"), each.spec.get("ablation")
        if preset:
            name = f"{preset}, {ablation}" if ablation else preset
            published[name] = presets.read(preset, ablation).published
    return published


def _submit(scored: Sequence[RunReport], file: Path) -> None:
    name = scored[0].spec["benchmark"]["name"]
    write = about(name).submission
    if write is None:
        raise ConfigError(f"{name} has no submission format")
    if len(scored) > 1:
        raise ConfigError("--submission takes one run")
    text = write(reports.answers(scored[0]))
    # the column names, or the first question
    begins = text.splitlines()[0].partition(":")[0]
    check_place(file, Kind("a submission", (begins.encode(),)))
    write_text(file, text)


@click.command()
@click.argument("runs", nargs=-1, required=True, type=PATH, metavar="RUN...")
@labels
@click.option("--html", type=FILE, help="Write a page (extra: report).")
@workers(1)
@common
@session_options
def audit(
    runs: tuple[Path, ...],
    data: tuple[Path, ...],
    html: Path | None,
    workers: int,
    session: Session,
) -> Output:
    """Show how much answers depend on the footage, on citations and on option letters.

    Each run is repeated four times: with its options under other letters, without any footage,
    without what it cites, and without random stretches of the same lengths. Give the models and
    limits of the run again; questions that were asked before are not asked again. One of the runs
    on each benchmark must use the method blind, with --no-verify.

    \b
    Example:
      longtake audit runs/blind runs/lookup --data nextqa --model ollama/qwen2.5:7b
    """
    if html is not None:
        check_place(html, PAGE)
    session = replace(session, assignment=replace(session.assignment, replies=False))

    def ask(report: RunReport, changed: Benchmark, folder: RunFolder) -> Results:
        preset, ablation = report.spec.get("preset"), report.spec.get("ablation")
        ours, unlike_paper = session, tuple[str, ...]()
        if preset:
            ours, unlike_paper = _with_preset(session, presets.read(preset, ablation), allow=True)
        settled = ours.settled(report.method)
        solver = Solver(report.method, settled, None, preset, ablation, unlike_paper)
        spec = plain_spec(specify(solver, changed))
        same = {key: spec[key] for key in ("benchmark", "questions")}
        if unlike := differences({**report.spec, **same}, spec):
            listed = "; ".join(unlike[:4])
            raise RunError(f"{report.folder} was run with other settings ({listed})")
        check_models(ours, methods.get(report.method).roles)
        say(f"{folder.path}: {len(changed.items) - len(folder.results())} questions")
        return collect(solver, changed, folder, workers=workers, resume=True)

    asked = []
    for path in runs:
        folder = RunFolder(path.resolve())
        leaderboard.checked_results(folder)
        benchmark = questions_of(folder, data)
        asked.append((read(folder, benchmark), benchmark))
    audits = audit_runs(asked, ask)
    if html is not None:
        rows = [each.row for each in audits]
        page = render(
            "audit.html.j2",
            columns=list(COLUMNS),
            rows=rows,
            passes=PASSES,
            flags=FLAGS,
            shown=SHOWN,
        )
        write_text(html, page)
    lines = [table(list(COLUMNS), [[cell(text) for text in each.row] for each in audits])]
    flagged = {name for each in audits for name in each.flags}
    lines += [f"\n{name}: {meaning}." for name, meaning in FLAGS.items() if name in flagged]
    plain = [each.plain() for each in audits]
    return Output({"audits": plain, "flags": FLAGS, "shown": SHOWN}, lines)
