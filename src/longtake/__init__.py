"""Answers questions about long videos, with evidence you can check."""

from __future__ import annotations

import importlib
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
    from longtake._util.cancellation import Cancelled, Stop
    from longtake.api import AsyncFilm, OpenFilm, Still, open  # noqa: A004
    from longtake.config import BudgetSettings
    from longtake.tracing.events import Event

# onnxruntime (1.31) sends usage data unless this is set before anybody imports it, rapidocr
# included; worker processes inherit it. The hub's client then leaves machine details out, too.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"

__version__ = "0.3.0"

_LAZY = {
    "AsyncFilm": "longtake.api",
    "BudgetSettings": "longtake.config",
    "Cancelled": "longtake._util.cancellation",
    "Event": "longtake.tracing.events",
    "OpenFilm": "longtake.api",
    "Still": "longtake.api",
    "Stop": "longtake._util.cancellation",
    "open": "longtake.api",
}
"""Names that are loaded when they are first used, and the modules that define them."""

__all__ = [
    "Answer",
    "AsyncFilm",
    "BudgetSettings",
    "BudgetSpent",
    "Cancelled",
    "ConfigError",
    "Event",
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
    "Still",
    "Stop",
    "Usage",
    "__version__",
    "open",
]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    """Load ``longtake.open`` and the like when they are first used (PEP 562)."""
    if name in _LAZY:
        # decoders and model runtimes take seconds to import; `import longtake` must not
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'longtake' has no attribute {name!r}")
