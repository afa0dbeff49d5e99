"""Answers questions about long videos, with evidence you can check."""

from __future__ import annotations

import os
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

# onnxruntime (1.31) sends usage data unless this is set before anybody imports it, rapidocr
# included; worker processes inherit it. The hub's client then leaves machine details out, too.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"

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
    """Load ``longtake.open`` when it is first used (PEP 562)."""
    if name in ("OpenFilm", "open"):
        # decoders and model runtimes take seconds to import; `import longtake` must not
        from longtake import api

        return getattr(api, name)
    raise AttributeError(f"module 'longtake' has no attribute {name!r}")
