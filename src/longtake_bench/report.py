"""Runs with their scores, comparisons between them, and reports: Markdown, HTML, a submission file.

The HTML page is self-contained: no scripts, no remote sources, plots as SVG. Questions, answers and
names come from films, files and models; its template escapes all of it and makes control characters
visible.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longtake._util import on_one_line, visible
from longtake._util.timecode import clock
from longtake.algorithms.calibration import BINS, expected_error
from longtake.errors import ConfigError, LongtakeError, MissingExtra, RunError
from longtake.types import GIVEN
from longtake_bench import plots
from longtake_bench.benchmarks import Benchmark, LabelledQuestion, load
from longtake_bench.lab.profile import PROFILE
from longtake_bench.plots import Mark
from longtake_bench.presets import Published
from longtake_bench.results import QuestionResult
from longtake_bench.runner import Scored, file_name, score
from longtake_bench.runs import ResultFigures, RunFolder, format_mean, list_errors
from longtake_bench.scoring import Difference, Rate, accuracy, by_tag, paired

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MEANS = ("frames", "calls", "tokens_in", "tokens_out", "seconds")
"""Usage figures whose means are part of the JSON output."""


@dataclass(frozen=True)
class CalibrationPoint:
    """How often answers with the same or a similar stated confidence were right."""

    confidence: float
    """Their mean."""
    rate: Rate


@dataclass(frozen=True)
class RunReport(ResultFigures):
    """One run with its scores."""

    folder: Path
    spec: Mapping[str, Any]
    items: Sequence[LabelledQuestion]
    """The questions that have a result."""
    rows: Sequence[QuestionResult]
    """Their results, in the same order."""
    scored: Scored
    """Those of them that have a label."""

    @property
    def name(self) -> str:
        """The name of the run's folder."""
        return self.folder.name

    @property
    def benchmark(self) -> str:
        """The benchmark's name."""
        return str(self.spec["benchmark"]["name"])

    @property
    def method(self) -> str:
        """The method's name."""
        return str(self.spec["method"]["name"])

    @property
    def models(self) -> str:
        """The models that answered, each once; a team is listed by its members."""
        roles = dict(self.spec["models"])
        members = [member["model"] for member in roles.pop("team", [])]
        return ", ".join(dict.fromkeys([*roles.values(), *members]))

    @property
    def differences(self) -> list[str]:
        """How the run differs from the paper whose experiment it repeats, as its spec says."""
        given = self.spec.get("differences")
        return [str(each) for each in given] if isinstance(given, list) else []

    @property
    def total(self) -> int:
        """Questions of the run, including those without a result if it is unfinished."""
        return int(self.spec["questions"])

    @property
    def given(self) -> int:
        """Questions that were answered, whether or not the answer found support."""
        return sum(self.counts[status] for status in GIVEN)

    @property
    def ended(self) -> str:
        """How questions ended, in words: ``3 abstained, 12 answered``."""
        return ", ".join(f"{count} {status}" for status, count in sorted(self.counts.items()))

    @property
    def cost(self) -> float | None:
        """Cost of all questions in US dollars; ``None`` if any price is unknown."""
        # runs of earlier versions have errors without usage
        costs = [row.usage.cost for row in self.rows if row.usage is not None]
        return None if None in costs else float(sum(filter(None, costs)))

    @property
    def cost_text(self) -> str:
        """The cost as it is shown."""
        return "unknown" if self.cost is None else f"${self.cost:.4f}"

    @property
    def accuracy(self) -> str:
        """Accuracy with its interval, or the reason why there is none."""
        if not self.rows:
            return "no results yet"
        return str(self.scored.accuracy) if self.scored.items else "no public labels"

    @property
    def verdicts(self) -> list[str]:
        """For each question ``right`` or ``wrong`` or, without a label, how it ended."""
        named = {True: "right", False: "wrong"}
        right = self.scored.by_question()
        verdicts = []
        for item, row in zip(self.items, self.rows, strict=True):
            key = item.asked.id
            verdicts.append(named[right[key]] if key in right else row.status)
        return verdicts

    @property
    def f1_text(self) -> str:
        """F1 of the cited seconds as it is shown."""
        citations = self.scored.citations
        return "–" if citations is None else citations.f1_text

    @property
    def summary(self) -> list[str]:
        """The run as a row of a table with :data:`COLUMNS`."""
        return [show(self) for show in COLUMNS.values()]

    def tags(self) -> dict[str, Mapping[str, Rate]]:
        """Accuracy by every tag."""
        scored = self.scored
        names = sorted({tag for item in scored.items for tag in item.tags})
        return {tag: by_tag(scored.items, scored.right, tag) for tag in names}

    @property
    def stated(self) -> tuple[list[float], list[bool]]:
        """Stated confidences, and whether the answers are right."""
        confidences, right = [], []
        for row, is_right in zip(self.scored.rows, self.scored.right, strict=True):
            if row.confidence is not None:
                confidences.append(row.confidence)
                right.append(is_right)
        return confidences, right

    @property
    def calibration_error(self) -> float | None:
        """Expected calibration error of stated confidences; ``None`` if none is stated."""
        confidences, right = self.stated
        return expected_error(confidences, right) if confidences else None

    def calibration(self) -> list[CalibrationPoint]:
        """Accuracy by stated confidence, in ascending order; many different ones are binned."""
        groups: dict[float, list[int]] = {}
        # methods that vote state few different confidences: each is then a separate point
        binned = len(set(self.stated[0])) > 12
        for number, row in enumerate(self.scored.rows):
            stated = row.confidence
            if stated is not None:
                key = min(int(stated * BINS), BINS - 1) if binned else stated
                groups.setdefault(key, []).append(number)
        points = []
        for _, chosen in sorted(groups.items()):
            right = [self.scored.right[number] for number in chosen]
            videos = [self.scored.items[number].asked.video for number in chosen]
            confidences = [self.scored.rows[number].confidence or 0.0 for number in chosen]
            mean = sum(confidences) / len(confidences)
            points.append(CalibrationPoint(round(mean, 6), accuracy(right, videos)))
        return points


COLUMNS: Mapping[str, Callable[[RunReport], str]] = {
    "run": lambda run: run.name,
    "benchmark": lambda run: run.benchmark,
    "method": lambda run: run.method,
    "models": lambda run: run.models,
    "accuracy (95 %)": lambda run: run.accuracy,
    "answered": lambda run: f"{run.given} of {run.total}",
    "frames": lambda run: f"{run.mean('frames'):.1f}",
    "seen": lambda run: format_mean(run.count("seen")),
    "rounds": lambda run: format_mean(run.count("rounds")),
    "calls": lambda run: f"{run.mean('calls'):.1f}",
    "tokens": lambda run: f"{run.tokens:,.0f}",
    "cost": lambda run: run.cost_text,
    "s": lambda run: f"{run.mean('seconds'):.1f}",
}
"""The columns of tables, with what each shows of a run."""
EXPLAINED = (
    "Per question: frames are pictures shown to models (none of captions), seen the distinct"
    " moments that were shown or read as captions, rounds the searches of a method that searches"
    " again; calls, tokens and s are means too, and cost is that of the run."
)
"""What the columns mean."""


def read(folder: RunFolder, benchmark: Benchmark) -> RunReport:
    """Read a run and score it with the benchmark's labels."""
    _check_files(folder, benchmark)
    results = folder.results()
    items = [item for item in benchmark.items if item.asked.id in results]
    rows = [results[item.asked.id] for item in items]
    return RunReport(folder.path, folder.spec(), items, rows, score(benchmark, results))


def _check_files(folder: RunFolder, benchmark: Benchmark) -> None:
    # with other files the labels may belong to other questions
    if folder.spec()["benchmark"]["files"] != dict(benchmark.files):
        name = benchmark.name
        raise RunError(f"{folder.path}: was run on other files of {name} than those given")


def compare(first: RunReport, second: RunReport) -> Difference:
    """The first minus the second, on the questions that both have answered."""
    theirs = second.scored.by_question()
    ours_right, theirs_right, videos = [], [], []
    for item, right in zip(first.scored.items, first.scored.right, strict=True):
        if item.asked.id in theirs:
            ours_right.append(right)
            theirs_right.append(theirs[item.asked.id])
            videos.append(item.asked.video)
    if not videos:
        raise RunError(f"{first.name} and {second.name} have no question in common")
    return paired(ours_right, theirs_right, videos)


def differences(reports: Sequence[RunReport]) -> list[tuple[str, Difference]]:
    """The first run on each benchmark minus every other run on it, with their names."""
    # runs on different benchmarks have no questions in common
    groups: dict[str, list[RunReport]] = {}
    for report in reports:
        if report.scored.items:
            groups.setdefault(report.benchmark, []).append(report)
    pairs = []
    for first, *others in groups.values():
        for other in others:
            pairs.append((f"{first.name} − {other.name}", compare(first, other)))
    return pairs


def plain(reports: Sequence[RunReport]) -> list[dict[str, Any]]:
    """Reports as ``--json`` prints them."""
    return [_plain(report) for report in reports]


def _plain(report: RunReport) -> dict[str, Any]:
    tags, citations = {}, report.scored.citations
    for tag, rates in report.tags().items():
        tags[tag] = {value: vars(rate) for value, rate in rates.items()}
    return {
        "run": report.name,
        "spec": report.spec,
        "accuracy": vars(report.scored.accuracy) if report.scored.items else None,
        "counts": dict(report.counts),
        "citations": None if citations is None else citations.plain(),
        "errors": dict(report.errors.most_common()),
        "by_tag": tags,
        "calibration": [
            {"confidence": point.confidence, **vars(point.rate)} for point in report.calibration()
        ],
        "calibration_error": report.calibration_error,
        "means": {
            **{what: report.mean(what) for what in MEANS},
            **{what: report.count(what) for what in ("seen", "rounds")},
        },
        "cost": report.cost,
    }


def answers(report: RunReport) -> list[tuple[LabelledQuestion, str | None]]:
    """Every question of a run with the letter of its answer, for a submission."""
    have = len(report.rows)
    if have < report.total:
        problem = f"{have} of {report.total} results; a submission needs them all"
        raise RunError(f"{report.name} has {problem}")
    return [(item, row.choice) for item, row in zip(report.items, report.rows, strict=True)]


def markdown(
    reports: Sequence[RunReport], published: Mapping[str, Sequence[Published]] | None = None
) -> str:
    """Accuracy and usage, details of each run, paired differences, and published figures apart."""
    rows = [[cell(text) for text in report.summary] for report in reports]
    blocks = [table(list(COLUMNS), rows), EXPLAINED]
    for report in reports:
        if report.differences:
            lines = [f"**{cell(report.name)}** differs from the paper:"]
            blocks.append("\n".join([*lines, *(f"- {cell(text)}" for text in report.differences)]))
    for report in reports:
        blocks += _details(report)
    pairs = differences(reports)
    if pairs:
        head = (
            "difference on the same questions",
            "(95 %, bootstrap over videos; McNemar's exact p)",
        )
        blocks.append(table(head, [(cell(names), str(gap)) for names, gap in pairs]))
    known = []
    for preset, figures in (published or {}).items():
        for figure in figures:
            known.append([cell(text) for text in figure.row(preset)])
    if known:
        blocks.append(table(("published, not measured here", "accuracy", "source"), known))
    return "\n\n".join(blocks)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of cells that are already escaped."""
    lines = [head, *rows]
    texts = [f"| {' | '.join(cells)} |" for cells in lines]
    # Markdown separates the head from the rows by a line of dashes
    texts.insert(1, "|" + "---|" * len(head))
    return "\n".join(texts)


def cell(text: str) -> str:
    """Escape text that would break out of its cell."""
    return on_one_line(text).replace("|", "\\|").replace("<", "&lt;")


def _details(report: RunReport) -> list[str]:
    """How the questions of a run ended, accuracy by tag, and calibration."""
    lines = [f"**{cell(report.name)}**: {report.ended}"]
    lines += [f"- {cell(line)}" for line in list_errors(report.errors)]
    blocks = ["\n".join(lines)]
    for tag, rates in report.tags().items():
        rows = [(cell(value), str(rate)) for value, rate in rates.items()]
        if len(rates) > 1:
            # MLVU's M-avg, for example, is the mean over its tasks
            mean = sum(rate.value for rate in rates.values()) / len(rates)
            rows.append((f"mean of {len(rates)} groups", f"{mean:.1%}"))
        blocks.append(table((cell(tag), "accuracy (95 %)"), rows))
    citations = report.scored.citations
    if citations is not None:
        rows = [(name, f"{value:.3f}") for name, value in citations.figures().items()]
        blocks.append(table((f"citations, {citations.questions} questions", "mean"), rows))
    points = report.calibration()
    if points:
        rows = [(f"{point.confidence:.2f}", str(point.rate)) for point in points]
        blocks.append(table(("stated confidence", "accuracy (95 %)"), rows))
        blocks.append(f"Expected calibration error: {report.calibration_error or 0.0:.3f}")
    return blocks


def read_labelled(path: Path, data: Sequence[Path]) -> RunReport:
    """Score a run with the labels of its benchmark, from the first folder that holds its files."""
    folder = RunFolder(path.resolve())
    return read(folder, questions_of(folder, data))


def questions_of(folder: RunFolder, data: Sequence[Path]) -> Benchmark:
    """The questions of a run, from the first data folder that holds the files it was run on."""
    spec = folder.spec()
    asked = spec["benchmark"]
    if "audit" in asked:
        raise RunError(f"{folder.path}: belongs to an audit; 'longtake audit' scores it")
    problems: list[LongtakeError] = []
    for files in data or (None,):
        try:
            benchmark = load(asked["name"], files, recorded_options(asked))
            _check_files(folder, benchmark)
            drawn = {key: asked.get(key) for key in ("limit", "sample", "videos")}
            return benchmark.draw(**drawn, seed=spec["seed"])
        except (ConfigError, RunError) as problem:
            problems.append(problem)
    # with a single folder, its problem is more specific
    if len(problems) == 1:
        raise problems[0]
    raise RunError(
        f"{folder.path}: no --data folder holds the files of {asked['name']} it was run on"
    )


def recorded_options(asked: Mapping[str, Any]) -> dict[str, str]:
    """The options that a run's benchmark was loaded with."""
    options = dict(asked["options"])
    # version 0.2 had two editions of the laboratory, and an option for the one it used
    edition = options.pop("profile", asked.get("profile", PROFILE.name))
    if edition != PROFILE.name:
        raise RunError(f"run on the questions of {edition}; score it with the version that ran it")
    return options


@dataclass(frozen=True)
class ReportPlot:
    """A plot of the page; ``heading`` is empty if it belongs to the section of the one before."""

    heading: str
    alt: str
    figure: Figure

    @property
    def source(self) -> str:
        """The plot as a data URL: browsers run no scripts inside images."""
        encoded = base64.b64encode(plots.as_svg(self.figure)).decode()
        return f"data:image/svg+xml;base64,{encoded}"


def html_report(
    reports: Sequence[RunReport], *, beside: Path, published: Mapping[str, Sequence[Published]]
) -> str:
    """The page; links to traces are relative to ``beside``, the folder it will be written to."""
    # the same colour for a run in every plot
    colours = {report.name: number for number, report in enumerate(reports)}
    errors = [(report.name, report.calibration_error) for report in reports]
    return render(
        "report.html.j2",
        columns=list(COLUMNS),
        summaries=[report.summary for report in reports],
        published=[figure.row(preset) for preset in published for figure in published[preset]],
        plots=[
            *_against_usage(reports, colours),
            *_by_tag(reports, colours),
            *_calibration(reports, colours),
        ],
        calibration_errors=[(name, error) for name, error in errors if error is not None],
        differences=differences(reports),
        runs=[
            {
                "name": report.name,
                "differences": report.differences,
                "questions": list(_questions(report, beside)),
                "spec": "\n".join(f"{key} = {value}" for key, value in _flat(report.spec)),
            }
            for report in reports
        ],
    )


def render(template: str, **values: Any) -> str:
    """A page from one of the templates beside this file; all values are escaped."""
    try:
        from jinja2 import Environment, FileSystemLoader
    except ImportError as error:
        raise MissingExtra("report", "a web page") from error
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        # makes control characters visible; output of macros is escaped already
        finalize=lambda value: value if hasattr(value, "__html__") else visible(str(value)),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(template).render(**values)


def _against_usage(
    reports: Sequence[RunReport], colours: Mapping[str, int]
) -> Iterator[ReportPlot]:
    scored = [report for report in reports if report.scored.items]
    # runs whose price is unknown are left out of the plot against money, free ones too
    paid = {r.name: r.cost / len(r.rows) for r in scored if r.cost}
    measures = {
        "frames per question": {r.name: r.mean("frames") for r in scored},
        "tokens per question": {r.name: r.tokens for r in scored},
        "US$ per question": paid,
    }
    heading = "Accuracy against usage"
    for name, values in measures.items():
        marks = [
            _mark(values[report.name], report.scored.accuracy, report.name, colours[report.name])
            for report in scored
            if report.name in values
        ]
        if marks:
            yield ReportPlot(heading, f"accuracy against {name}", plots.scatter(marks, x_name=name))
            heading = ""


def _by_tag(reports: Sequence[RunReport], colours: Mapping[str, int]) -> Iterator[ReportPlot]:
    marks: dict[str, dict[str, list[Mark]]] = {}
    for report in reports:
        for tag, rates in report.tags().items():
            for value, rate in rates.items():
                # bars have no x
                mark = _mark(0.0, rate, report.name, colours[report.name])
                marks.setdefault(tag, {}).setdefault(value, []).append(mark)
    for tag, groups in sorted(marks.items()):
        yield ReportPlot(f"By {tag}", f"accuracy by {tag}", plots.bars(sorted(groups.items())))


def _calibration(reports: Sequence[RunReport], colours: Mapping[str, int]) -> Iterator[ReportPlot]:
    marks = []
    for report in reports:
        for point in report.calibration():
            marks.append(_mark(point.confidence, point.rate, report.name, colours[report.name]))
    if marks:
        figure = plots.scatter(marks, x_name="stated confidence", diagonal=True)
        yield ReportPlot("Calibration", "accuracy against stated confidence", figure)


def _questions(report: RunReport, beside: Path) -> Iterator[dict[str, Any]]:
    for item, row, verdict in zip(report.items, report.rows, report.verdicts, strict=True):
        asked = item.asked
        trace = report.folder / "traces" / f"{file_name(asked.id)}.jsonl"
        yield {
            "id": asked.id,
            "text": asked.question.text,
            "verdict": verdict,
            "lines": _question_lines(item, row),
            "trace": os.path.relpath(trace, beside) if trace.is_file() else "",
        }


def _question_lines(item: LabelledQuestion, row: QuestionResult) -> list[str]:
    """The lines below a question: options, label, answer, evidence and notes."""
    question = item.asked.question
    options = zip(question.letters, question.options, strict=True)
    lines = [f"{letter}. {option}" for letter, option in options]
    if item.label is not None:
        lines.append(f"label: {item.label}")
    lines.append(f"answer: {_answer(row)}")
    if row.evidence:
        lines.append("seen at " + ", ".join(clock(cited.start) for cited in row.evidence))
    lines += [f"{count} × {label}" for label, count in row.notes.items()]
    return lines


def _flat(data: Any, path: str = "") -> list[tuple[str, Any]]:
    """Nested data as pairs of a dotted path and a value."""
    if not isinstance(data, Mapping):
        return [(path, data)]
    pairs = []
    for key, value in data.items():
        pairs += _flat(value, f"{path}.{key}" if path else str(key))
    return pairs


def _answer(row: QuestionResult) -> str:
    if row.failed:
        return f"error: {row.error}"
    answer = ". ".join(filter(None, (row.choice, row.text))) or "none"
    return f"{answer} ({row.status})"


def _mark(x: float, rate: Rate, name: str, colour: int) -> Mark:
    return Mark(x, rate.value, rate.low, rate.high, name, colour)
