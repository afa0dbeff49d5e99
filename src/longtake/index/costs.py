"""What indexing a film has cost, part by part, kept with the film."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from longtake.index.store import FilmFolder, Store, write_atomically

FILE = "costs.json"


@dataclass(frozen=True)
class Cost:
    """What a part took."""

    seconds: float
    """Wall time."""
    cpu_seconds: float | None
    """Processor time; ``None`` if it is not known."""
    film_seconds: float = 0.0
    """How much of the film was missing before."""

    def plain(self) -> dict[str, float | None]:
        """As JSON has it."""
        cpu = None if self.cpu_seconds is None else round(self.cpu_seconds, 3)
        return {"seconds": round(self.seconds, 3), "cpu_seconds": cpu}

    def __add__(self, other: Cost) -> Cost:
        """What two runs took."""
        known = self.cpu_seconds is not None and other.cpu_seconds is not None
        return Cost(
            self.seconds + other.seconds,
            (self.cpu_seconds or 0.0) + (other.cpu_seconds or 0.0) if known else None,
            self.film_seconds + other.film_seconds,
        )


def known_costs(folder: FilmFolder) -> dict[str, Cost]:
    """What each part has taken so far, over all runs; empty if nothing is recorded."""
    try:
        stored: Any = json.loads((folder.path / FILE).read_text())
        return {str(name): _cost(entry) for name, entry in stored.items()}
    # a note on the side: a damaged one is worth no error
    except (OSError, ValueError, AttributeError, TypeError, KeyError):
        return {}


def _cost(entry: Any) -> Cost:
    # earlier versions recorded nothing but wall time
    if isinstance(entry, int | float):
        return Cost(float(entry), None)
    cpu = entry["cpu_seconds"]
    known = None if cpu is None else float(cpu)
    return Cost(float(entry["seconds"]), known, float(entry["film_seconds"]))


def add_costs(folder: FilmFolder, costs: Mapping[str, Cost]) -> None:
    """Add what a run took to what is recorded."""
    if not costs:
        return
    total = known_costs(folder)
    for name, cost in costs.items():
        total[name] = total[name] + cost if name in total else cost
    rows = {}
    for name, cost in total.items():
        rows[name] = {**cost.plain(), "film_seconds": round(cost.film_seconds, 3)}
    write_atomically(folder.path / FILE, json.dumps(rows).encode())


def usual_costs(store: Store) -> dict[str, float]:
    """CPU seconds per minute of film of each part, over all films in a store."""
    total: dict[str, Cost] = {}
    for use in store.films():
        for name, cost in known_costs(store.film(use.fingerprint)).items():
            if cost.cpu_seconds is not None and cost.film_seconds > 0:
                total[name] = total[name] + cost if name in total else cost
    rates = {}
    for name, cost in total.items():
        rates[name] = round(60 * (cost.cpu_seconds or 0.0) / cost.film_seconds, 2)
    return rates
