"""The folder of a run: its specification and its results on disk, and what they amount to."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from longtake.errors import RunError
from longtake.types import Usage
from longtake_bench.results import QuestionResult

SPEC, RESULTS = "spec.json", "results.jsonl"
SPEC_KEYS = {"benchmark", "method", "models", "questions", "seed"}
"""Keys without which a file is not the spec of a run."""
FORMAT = 1
"""Version of the files, which docs/upgrades.md describes; specs of 0.2 do not state it."""


@dataclass(frozen=True)
class RunFolder:
    """The folder of one run."""

    path: Path

    def open(self, spec: Mapping[str, Any], *, resume: bool) -> dict[str, QuestionResult]:
        """Start or continue a run; returns the results that it already has, by question.

        A folder with a different spec is rejected, and the error names the differences.
        """
        plain = plain_spec(spec)
        if (self.path / SPEC).exists():
            self._check(plain, resume=resume)
        elif (self.path / RESULTS).exists():
            raise RunError(f"{self.path}: contains results of unknown origin (no {SPEC})")
        else:
            self.write(SPEC, plain)
        self._drop_partial_line()
        return self.results()

    def _check(self, spec: Mapping[str, Any], *, resume: bool) -> None:
        """Reject a run whose spec differs, and results that nobody asked to continue."""
        changed = differences(self.spec(), spec)
        if changed:
            listed = "; ".join(changed[:4])
            raise RunError(f"{self.path}: contains a run with a different spec ({listed})")
        if not resume and self.results():
            advice = "pass --resume to continue, or choose another folder"
            raise RunError(f"{self.path}: contains results; {advice}")

    def write(self, name: str, content: Mapping[str, Any]) -> None:
        """Write a JSON file, whole or not at all."""
        self.path.mkdir(parents=True, exist_ok=True)
        # written beside and renamed, so that a killed run never leaves half a spec
        draft = self.path / f".{name}"
        draft.write_text(json.dumps(content, indent=2, sort_keys=True))
        draft.rename(self.path / name)

    @contextmanager
    def working(self) -> Iterator[None]:
        """Lock the folder, created if missing, so that no question is asked twice.

        A second process that tries to lock it gets an error.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise RunError(f"{self.path}: a run needs a folder, and this is a file") from None
        lock = FileLock(self.path / ".lock")
        try:
            # waiting is pointless: the other process is already doing the work
            lock.acquire(timeout=0)
        except Timeout:
            raise RunError(f"{self.path}: another process is working on this run") from None
        try:
            yield
        finally:
            lock.release()

    def spec(self) -> dict[str, Any]:
        """What was run, and how."""
        try:
            spec = json.loads((self.path / SPEC).read_text())
        except FileNotFoundError:
            raise RunError(f"{self.path}: does not contain a run") from None
        except (OSError, ValueError, RecursionError) as error:
            raise RunError(f"{self.path}: does not contain a run ({error})") from error
        if not isinstance(spec, dict) or not spec.keys() >= SPEC_KEYS:
            raise RunError(f"{self.path / SPEC}: is not the spec of a run")
        if spec.setdefault("format", FORMAT) != FORMAT:
            versions = f"format {spec['format']!r}; this longtake reads format {FORMAT}"
            raise RunError(f"{self.path / SPEC}: {versions}")
        return spec

    def results(self) -> dict[str, QuestionResult]:
        """The last result of each question."""
        results = {}
        for number, row in self.rows():
            try:
                result = QuestionResult.of_row(row)
            except (ValueError, TypeError) as error:
                raise self._not_a_result(number) from error
            results[result.id] = result
        return results

    def rows(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """The lines of the file with their numbers; an incomplete last one is ignored."""
        file = self.path / RESULTS
        if not file.exists():
            return
        # a complete line ends with a newline, so what follows the last one is incomplete
        lines = file.read_bytes().split(b"\n")[:-1]
        for number, line in enumerate(lines, start=1):
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise self._not_a_result(number) from error
            if not isinstance(row, dict):
                raise self._not_a_result(number)
            yield number, row

    def _not_a_result(self, number: int) -> RunError:
        advice = "delete the line to continue without it"
        return RunError(f"{self.path / RESULTS}:{number}: is not a result; {advice}")

    def append(self, result: QuestionResult) -> None:
        """Add a result; it is on disk when this returns."""
        with (self.path / RESULTS).open("ab") as file:
            file.write(json.dumps(result.row, ensure_ascii=False).encode() + b"\n")
            file.flush()
            # each answer may have cost money: it must survive a power failure
            os.fsync(file.fileno())

    def _drop_partial_line(self) -> None:
        """Remove an incomplete last line, which the next result would be appended to."""
        file = self.path / RESULTS
        if not file.exists():
            return
        data = file.read_bytes()
        if not data.endswith(b"\n"):
            os.truncate(file, data.rfind(b"\n") + 1)


def plain_spec(spec: Mapping[str, Any]) -> dict[str, Any]:
    """A spec as it is on disk, where it has been through JSON."""
    plain: dict[str, Any] = json.loads(json.dumps(spec, default=str))
    return plain


def differences(before: Any, now: Any, path: str = "") -> list[str]:
    """Where two specs differ: ``method.fields.frames was 8, is 16``."""
    if isinstance(before, dict) and isinstance(now, dict):
        changed = []
        for key in sorted(before.keys() | now.keys()):
            place = f"{path}.{key}" if path else key
            changed += differences(before.get(key), now.get(key), place)
        return changed
    if before == now:
        return []
    return [f"{path} was {json.dumps(before)}, is {json.dumps(now)}"]


class ResultFigures:
    """What the results of a run amount to."""

    rows: Sequence[QuestionResult]

    def mean(self, what: str) -> float:
        """Mean of a usage figure per question, without those that ended in an error."""
        usages = [row.usage or Usage() for row in self.rows if not row.failed]
        values = [getattr(usage, what) or 0.0 for usage in usages]
        return sum(values) / len(values) if values else 0.0

    def count(self, what: str) -> float | None:
        """Mean of ``seen`` (distinct frames, shown or read as captions) or ``rounds``.

        ``None`` for runs from before it was counted.
        """
        counts = [getattr(row, what) for row in self.rows]
        values: list[float] = [count for count in counts if count is not None]
        return sum(values) / len(values) if values else None

    @property
    def tokens(self) -> float:
        """Mean tokens per question, in and out."""
        return self.mean("tokens_in") + self.mean("tokens_out")

    @property
    def counts(self) -> Counter[str]:
        """How many questions ended in which status."""
        return Counter(row.status for row in self.rows)

    @property
    def errors(self) -> Counter[str]:
        """How many questions ended in which error."""
        return Counter(row.error for row in self.rows if row.failed)


def format_mean(value: float | None) -> str:
    """A mean as tables show it."""
    return "–" if value is None else f"{value:.1f}"


def list_errors(errors: Counter[str], max_listed: int = 5) -> list[str]:
    """Errors with their counts, the most frequent first; beyond ``max_listed``, only how many."""
    listed = errors.most_common(max_listed)
    lines = [f"{count} × {text}" for text, count in listed]
    rest = errors.total() - sum(count for _, count in listed)
    if rest:
        lines.append(f"{rest} × something else")
    return lines
