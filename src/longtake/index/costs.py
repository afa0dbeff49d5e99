"""What indexing a film has cost, part by part, kept with the film."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from longtake.index.store import FilmFolder, write_atomically

FILE = "costs.json"


@dataclass(frozen=True)
class Cost:
    """What a part took."""

    seconds: float
    """Wall time."""
    cpu_seconds: float | None
    """Processor time of the process; ``None`` if it ran beside other parts."""

    def plain(self) -> dict[str, float | None]:
        """As JSON has it."""
        cpu = None if self.cpu_seconds is None else round(self.cpu_seconds, 3)
        return {"seconds": round(self.seconds, 3), "cpu_seconds": cpu}


def known_costs(folder: FilmFolder) -> dict[str, float]:
    """Seconds that each part has taken so far, over all runs; empty if nothing is recorded."""
    try:
        stored: Any = json.loads((folder.path / FILE).read_text())
        return {str(name): float(seconds) for name, seconds in stored.items()}
    # a note on the side: a damaged one is worth no error
    except (OSError, ValueError, AttributeError, TypeError):
        return {}


def add_costs(folder: FilmFolder, costs: Mapping[str, Cost]) -> None:
    """Add what a run took to what is recorded."""
    if not costs:
        return
    total = known_costs(folder)
    for name, cost in costs.items():
        total[name] = round(total.get(name, 0.0) + cost.seconds, 3)
    write_atomically(folder.path / FILE, json.dumps(total).encode())
