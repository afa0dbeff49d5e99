"""A run on disk: what was asked how, and every result, appended as it comes.

::

    runs/<name>/
        spec.json        method, fields, models, prompts, benchmark, code version
        results.jsonl    one line a question, without labels; errors are results
        traces/          one trace a question, where asked for
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from longtake.errors import RunError

SPEC, RESULTS = "spec.json", "results.jsonl"


@dataclass(frozen=True)
class RunFolder:
    """One run's folder."""

    path: Path

    def open(self, spec: Mapping[str, Any], *, resume: bool) -> dict[str, dict[str, Any]]:
        """Begin a run, or go on with it; gives the results that are already there, by question.

        A folder that holds another spec is refused, and the difference named.
        """
        file = self.path / SPEC
        plain = json.loads(json.dumps(spec, default=str))
        if file.exists():
            if changed := differences(self.spec(), plain):
                raise RunError(
                    f"{self.path}: holds a run with another spec ({'; '.join(changed[:4])})"
                )
            if not resume and self.results():
                raise RunError(
                    f"{self.path}: holds results; pass --resume to go on, or choose another folder"
                )
        elif (self.path / RESULTS).exists():
            raise RunError(
                f"{self.path}: holds results of which nobody knows how they came about (no {SPEC})"
            )
        else:
            self.path.mkdir(parents=True, exist_ok=True)
            draft = self.path / f".{SPEC}"
            draft.write_text(json.dumps(plain, indent=2, sort_keys=True))
            draft.rename(file)
        self._mend()
        return self.results()

    @contextmanager
    def working(self) -> Iterator[None]:
        """Hold the folder, made if need be, so that no question is asked twice; a second process is refused."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise RunError(f"{self.path}: a run needs a folder, and there is a file") from None
        lock = FileLock(self.path / ".lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            raise RunError(f"{self.path}: another process is working on this run") from None
        try:
            yield
        finally:
            lock.release()

    def spec(self) -> dict[str, Any]:
        """What was run."""
        try:
            found = json.loads((self.path / SPEC).read_text())
        except (OSError, ValueError) as error:
            raise RunError(f"{self.path}: holds no run ({error})") from error
        if not isinstance(found, dict) or not found.keys() >= {
            "benchmark",
            "method",
            "models",
            "questions",
            "seed",
        }:
            raise RunError(f"{self.path / SPEC}: is not the spec of a run")
        return found

    def results(self) -> dict[str, dict[str, Any]]:
        """The last result of each question; a line that was cut off is left out."""
        found: dict[str, dict[str, Any]] = {}
        file = self.path / RESULTS
        if file.exists():
            for number, line in enumerate(file.read_bytes().split(b"\n")[:-1], start=1):
                try:
                    row = json.loads(line)
                    found[row["id"]] = {"status": row["status"], **row}
                except (ValueError, TypeError, KeyError) as error:
                    raise RunError(
                        f"{file}:{number}: is no result; take the line out to go on without it"
                    ) from error
        return found

    def append(self, row: Mapping[str, Any]) -> None:
        """Add a result; it is on disk when this returns."""
        with (self.path / RESULTS).open("ab") as file:
            file.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def _mend(self) -> None:
        """Drop a last line that was cut off in the middle, so that the next one is whole."""
        file = self.path / RESULTS
        if file.exists() and (data := file.read_bytes()) and not data.endswith(b"\n"):
            os.truncate(file, data.rfind(b"\n") + 1)


def differences(before: Any, now: Any, path: str = "") -> list[str]:
    """Where two specs differ: ``method.fields.frames was 8, is 16``."""
    if isinstance(before, dict) and isinstance(now, dict):
        found = []
        for key in sorted(before.keys() | now.keys()):
            found += differences(before.get(key), now.get(key), f"{path}.{key}" if path else key)
        return found
    return [] if before == now else [f"{path} was {json.dumps(before)}, is {json.dumps(now)}"]
