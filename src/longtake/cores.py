"""How many cores there are to work with."""

from __future__ import annotations

import os


def usable_cores() -> int:
    """Cores that this process may run on: in a container often fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
