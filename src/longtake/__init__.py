"""Questions about long videos, answered with evidence one can check."""

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
    "Question",
    "Result",
    "RunError",
    "Segment",
    "Usage",
    "__version__",
]
