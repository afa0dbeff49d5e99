"""What tokens cost, if that is known.

A price is either known, with its source, or ``None``: unknown is never treated as zero. No vendor's
price list is built in, because an outdated one would put wrong numbers into every report. Set
``price_in``, ``price_out`` and ``price_source`` in the entry.
"""

from __future__ import annotations

from dataclasses import dataclass

from longtake.entries import ModelEntry
from longtake.errors import ConfigError

MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens."""

    prompt: float
    reply: float
    cached: float
    source: str

    def of(self, tokens_in: int, tokens_cached: int, tokens_out: int) -> float:
        """The price of a call; ``tokens_cached`` of ``tokens_in`` came from a prefix cache."""
        # a server may report more cached tokens than prompt tokens
        fresh = max(0, tokens_in - tokens_cached)
        total = fresh * self.prompt + tokens_cached * self.cached + tokens_out * self.reply
        return total / MILLION


HERE = Price(0.0, 0.0, 0.0, source="runs on this machine")
"""The price of a model that runs in this process."""


def price_of(name: str, entry: ModelEntry) -> Price | None:
    """The price in an entry, or ``None`` if unknown; half a price is an error."""
    if entry.price_in is None and entry.price_out is None:
        return None
    if entry.price_in is None or entry.price_out is None:
        raise ConfigError(
            f"models.{name}: price_in and price_out go together; "
            "one alone would count the other as zero",
            key=f"models.{name}",
        )
    # without a price for cached tokens, the full one is the safe assumption
    cached = entry.price_in if entry.price_cached is None else entry.price_cached
    if min(entry.price_in, entry.price_out, cached) < 0:
        raise ConfigError(f"models.{name}: a price cannot be negative", key=f"models.{name}")
    source = entry.price_source or "set in the configuration, undated"
    return Price(entry.price_in, entry.price_out, cached, source)
