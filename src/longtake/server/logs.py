"""The log: one JSON object per line on standard error."""

from __future__ import annotations

import json
import logging


class _Json(logging.Formatter):
    """One JSON object per line: what happened, and its figures; never what was asked."""

    def format(self, record: logging.LogRecord) -> str:
        fields = {key: value for key, value in vars(record).items() if key not in _STANDARD}
        line = {"time": round(record.created, 3), "level": record.levelname.lower()}
        line |= {"message": record.getMessage(), **fields}
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


_STANDARD = {*vars(logging.makeLogRecord({})), "message", "asctime"}
"""Attributes that every record has."""


def log_as_json() -> None:
    """Write the logs of this process as JSON."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Json())
    for name, level in (("longtake.serve", logging.INFO), ("uvicorn", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.setLevel(level)
        logger.propagate = False
