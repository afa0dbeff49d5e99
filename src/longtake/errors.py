"""The errors longtake raises; each message says what to do next.

::

    LongtakeError           exit code 1
    ├─ ConfigError          2   carries the key and the nearest valid one
    ├─ MediaError           2   not found, not a video, no video stream, truncated, encrypted
    ├─ ModelError           4   unavailable, refused, unreadable reply, context too long
    ├─ MissingExtra         2   gives the install command
    ├─ BudgetSpent          3   carries the best answer so far
    └─ RunError             2   a run folder or trace that cannot be used
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from pathlib import Path

    from longtake.types import Answer


class LongtakeError(Exception):
    """Base class of every error that longtake raises on purpose; its message is meant for users."""

    exit_code = 1

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the message and the attributes; subclasses take other arguments than these."""
        return _restored, (type(self), self.args), vars(self)


def _restored(kind: type[LongtakeError], args: tuple[object, ...]) -> LongtakeError:
    error = kind.__new__(kind, *args)
    error.args = args
    return error


class ConfigError(LongtakeError):
    """An invalid setting, name or argument."""

    exit_code = 2

    def __init__(self, message: str, *, key: str | None = None, nearest: str | None = None) -> None:
        super().__init__(message)
        self.key = key
        self.nearest = nearest


def unknown(kind: str, name: str, known: Iterable[str], *, where: str = "") -> ConfigError:
    """Return the error for an unknown name; it suggests the nearest known one."""
    known = sorted(known)
    # typing errors seldom change the first letter: "nonsense" does not mean "senses"
    likely = [word for word in known if word[:1].lower() == name[:1].lower() or name in word]
    # more lenient than the default of 0.6, since a wrong suggestion does no harm
    close = difflib.get_close_matches(name, likely, n=1, cutoff=0.5)
    nearest = close[0] if close else None
    if nearest:
        hint = f"did you mean {nearest!r}?"
    elif known:
        hint = f"known: {', '.join(known)}"
    else:
        hint = f"no {kind} is known here"
    place = f" in {where}" if where else ""
    return ConfigError(f"unknown {kind} {name!r}{place}; {hint}", key=name, nearest=nearest)


def check_least(settings: Any, path: str, **least: float) -> None:
    """Reject fields of a dataclass below their minimum: 1 for whole numbers, or what is given."""
    whole = {part.name: 1.0 for part in fields(settings) if part.type in ("int", "int | None")}
    for name, bound in (whole | least).items():
        value = getattr(settings, name)
        if value is not None and value < bound:
            raise ConfigError(f"{path}.{name} must be {bound:g} or more", key=f"{path}.{name}")


def check_limit(name: str, value: float | None) -> None:
    """Reject a limit that is not positive and finite; ``None`` is no limit."""
    # a comparison with NaN is false, so NaN is rejected as well
    if value is not None and not 0 < value < math.inf:
        raise ConfigError(f"{name} {value}: a budget must be positive and finite", key=name)


MediaProblem: TypeAlias = Literal[
    "not_found",
    "not_a_file",
    "not_a_video",
    "no_video",
    "no_audio",
    "truncated",
    "encrypted",
    "too_large",
    "unreadable",
    "out_of_range",
    "changed",
]


class MediaError(LongtakeError):
    """A media file that cannot be used; ``problem`` says why."""

    exit_code = 2

    def __init__(self, path: Path | str, problem: MediaProblem, detail: str) -> None:
        super().__init__(f"{path}: {detail}")
        self.path = path
        self.problem = problem
        self.detail = detail


ModelProblem: TypeAlias = Literal["unavailable", "refused", "unreadable", "context"]


class ModelError(LongtakeError):
    """A model is unavailable, refuses, sends an unreadable reply, or cannot hold the prompt."""

    exit_code = 4

    def __init__(self, model: str, problem: ModelProblem, detail: str) -> None:
        super().__init__(f"{model}: {detail}")
        self.model = model
        self.problem = problem
        self.detail = detail


class MissingExtra(LongtakeError):
    """An optional dependency that is not installed."""

    exit_code = 2

    def __init__(self, extra: str, purpose: str) -> None:
        super().__init__(f'{purpose} needs an extra: pip install "longtake[{extra}]"')
        self.extra = extra


class BudgetSpent(LongtakeError):
    """A budget ran out; ``best`` is the best answer so far, if there is one.

    If it is ``complete``, the run would only have tried to improve it.
    """

    exit_code = 3

    def __init__(
        self, limit: str, spent: str, best: Answer | None = None, *, complete: bool = False
    ) -> None:
        super().__init__(f"budget spent: {limit} ({spent})")
        self.limit = limit
        self.best = best
        self.complete = complete


class RunError(LongtakeError):
    """A run folder or trace that does not match what is asked of it."""

    exit_code = 2
