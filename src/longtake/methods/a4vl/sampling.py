"""Block-based perception sampling (Algorithm 1, lines 10 to 19): which frames an agent sees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from longtake.algorithms import allocate, sampling
from longtake.events import ScoresSet, emit
from longtake.footage.look import Look, look_at, rows_within
from longtake.footage.protocol import Footage
from longtake.steps.run import Agent
from longtake.types import Segment

if TYPE_CHECKING:
    from longtake.methods.a4vl.method import A4VL

RHO = "block_logit"
"""Name of the threshold ρ on an encoder's card."""


@dataclass(frozen=True)
class View:
    """What one agent looks for in one round."""

    agent: Agent
    clue: str
    whole: bool
    """Look over the whole film, whatever the clue."""
    chance: Random
    """Draws frames anew for each agent and round."""


def perceive(settings: A4VL, footage: Footage, blocks: Sequence[Segment], view: View) -> Look:
    """Lines 11 to 19: the frames of the blocks that fit the clue."""
    rows = [rows_within(footage, block) for block in blocks]
    total = settings.n2(footage.duration)
    if view.whole:
        everything = np.concatenate(rows)
        spread = sampling.one_per_bin(len(everything), total, view.chance)
        return look_at(footage, everything[spread].tolist())
    logits = similarity(settings, footage, rows, view.clue)  # 11
    share = allocate.shares(logits, threshold(settings, footage))  # 12 to 14, 17, 18
    values = tuple(np.round(share, 4).tolist())
    emit(ScoresSet(label=f"share: {view.clue}", segments=tuple(blocks), values=values))
    counts = allocate.counts(share, total, [len(row) for row in rows])  # 15
    chosen = [
        row[sampling.one_per_bin(len(row), count, view.chance)]
        for row, count in zip(rows, counts, strict=True)
    ]  # 16, 19
    return look_at(footage, np.concatenate(chosen).tolist())


def similarity(
    settings: A4VL, footage: Footage, rows: Sequence[NDArray[np.int64]], clue: str
) -> list[float]:
    """``Sim(B_k, P)``: logit scale × mean of the best cosines of moments spread over the block."""
    scale = footage.encoder.logit_scale or settings.logit_scale
    closeness = footage.embeddings() @ footage.encode([clue])[0]
    logits = []
    for row in rows:
        spread = row[sampling.uniform(len(row), settings.block_frames)]
        best = np.sort(closeness[spread])[-settings.block_best :]
        logits.append(scale * float(best.mean()))
    return logits


def threshold(settings: A4VL, footage: Footage) -> float | None:
    """ρ on this encoder's scale; ``None`` excludes no block."""
    if settings.rho is not None:
        return settings.rho
    known = footage.encoder.thresholds.get(RHO)
    return None if known is None else float(known)
