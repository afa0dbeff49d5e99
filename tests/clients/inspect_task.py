"""A lab film as a task of inspect_ai."""

import json
import os
from pathlib import Path

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import choice
from inspect_ai.solver import solver
from inspect_ai.solver._task_state import state_jsonable


@solver
def recording():
    """Keeps what solvers are given."""

    async def solve(state, _generate):
        if "RECORD" in os.environ:
            kept = state_jsonable(state)
            given = {name: kept[name] for name in ("messages", "metadata")}
            given["choices"] = [{"value": choice.value} for choice in state.choices]
            Path(os.environ["RECORD"]).write_text(json.dumps(given))
        return state

    return solve


@task
def lab_film(folder: str):
    rows = json.loads(Path(folder, "questions.json").read_text())
    samples = []
    for row in rows:
        metadata = {"film": row["path"]}
        sample = Sample(
            row["question"], choices=row["candidates"], target=row["letter"], metadata=metadata
        )
        samples.append(sample)
    return Task(MemoryDataset(samples), setup=recording(), scorer=choice())
