"""The log: one JSON object per line on standard error."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager


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


@contextmanager
def log_as_json() -> Iterator[None]:
    """Inside the block, write the logs of this process as JSON; afterwards they are as before."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Json())
    levels = {"longtake.serve": logging.INFO, "uvicorn": logging.WARNING}
    loggers = [logging.getLogger(name) for name in levels]
    before = [(logger.handlers[:], logger.level, logger.propagate) for logger in loggers]
    for logger in loggers:
        logger.handlers[:] = [handler]
        logger.setLevel(levels[logger.name])
        logger.propagate = False
    try:
        yield
    finally:
        for logger, (handlers, level, propagate) in zip(loggers, before, strict=True):
            logger.handlers[:] = handlers
            logger.setLevel(level)
            logger.propagate = propagate
