"""Questions about long videos, answered with evidence one can check."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from longtake.errors import (
    BudgetSpent,
    ConfigError,
    LongtakeError,
    MediaError,
    MissingExtra,
    ModelError,
    RunError,
)
from longtake.types import Answer, Evidence, Frame, Line, Question, Result, Segment, Usage

if TYPE_CHECKING:
    from longtake.api import OpenFilm, open  # noqa: A004

__version__ = "0.1.0.dev0"

__all__ = [
    "Answer",
    "BudgetSpent",
    "ConfigError",
    "Evidence",
    "Frame",
    "Line",
    "LongtakeError",
    "MediaError",
    "MissingExtra",
    "ModelError",
    "OpenFilm",
    "Question",
    "Result",
    "RunError",
    "Segment",
    "Usage",
    "__version__",
    "open",
]


def __getattr__(name: str) -> Any:
    """``longtake.open`` loads media and models when it is first used; importing the package does not."""
    if name in ("OpenFilm", "open"):
        from longtake import api

        return getattr(api, name)
    raise AttributeError(f"module 'longtake' has no attribute {name!r}")
