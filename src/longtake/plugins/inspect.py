"""Every method as a solver of inspect_ai (extra ``inspect``)::

    inspect eval task.py --solver longtake/videoagent -S model=http://127.0.0.1:8000/v1#qwen2.5-vl

The film of a sample is the path in ``metadata["film"]``, or else a ``ContentVideo`` of its input,
which inspect_ai loads into memory. Further ``-S`` arguments are those of :meth:`OpenFilm.ask`.
"""

from __future__ import annotations

import base64
import string
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from inspect_ai.model import ModelOutput, ModelUsage
from inspect_ai.solver import Generate, Solver, TaskState, solver

import longtake
from longtake import registry
from longtake.errors import ConfigError
from longtake.types import Answer, Result

PACKAGE = "longtake"


def _solver(method: str) -> Callable[..., Solver]:
    def build(**arguments: Any) -> Solver:
        async def solve(state: TaskState, _generate: Generate) -> TaskState:
            options = [choice.value for choice in state.choices]
            with _film(state) as path:
                film = longtake.open(path)
                question = state.user_prompt.text
                result = await film.aio.ask(question, options, method=method, **arguments)
            _mark(state, result.answer)
            state.output = _output(f"{PACKAGE}/{method}", result)
            state.messages.append(state.output.message)
            return state

        return solve

    return build


@contextmanager
def _film(state: TaskState) -> Iterator[Path]:
    """The film as a file; one that was sent as data lasts as long as the question."""
    sent = state.metadata.get("film") or _video(state)
    if not sent:
        raise ConfigError('the sample has no film: set metadata["film"], or send a ContentVideo')
    head, separator, data = sent.partition(";base64,")
    if not separator:
        yield Path(sent.removeprefix("file://"))
        return
    with tempfile.TemporaryDirectory(prefix="longtake-") as folder:
        path = Path(folder, "film").with_suffix(f".{head.rpartition('/')[2]}")
        path.write_bytes(base64.b64decode(data))
        yield path


def _video(state: TaskState) -> str | None:
    parts: list[Any] = []
    for message in state.messages:
        if not isinstance(message.content, str):
            parts += message.content
    return next((part.video for part in parts if part.type == "video"), None)


def _mark(state: TaskState, answer: Answer) -> None:
    """Tell the ``choice`` scorer which option was chosen; none is marked without an answer."""
    for number, _ in enumerate(state.choices):
        letter = string.ascii_uppercase[number]
        state.choices.mark_choice(number, letter == answer.choice)


def _output(model: str, result: Result) -> ModelOutput:
    answer, usage = result.answer, result.usage
    # the form that inspect_ai's own multiple_choice asks for, which its log viewer shows
    text = f"ANSWER: {answer.choice}" if answer.choice else answer.text
    output = ModelOutput.from_content(model, text)
    output.usage = ModelUsage(
        input_tokens=usage.tokens_in - usage.tokens_cached,
        input_tokens_cache_read=usage.tokens_cached,
        output_tokens=usage.tokens_out,
        total_tokens=usage.tokens_in + usage.tokens_out,
        total_cost=usage.cost,
    )
    output.metadata = {
        "status": answer.status,
        "reason": answer.reason,
        "confidence": answer.confidence,
        "evidence": [asdict(evidence) for evidence in answer.evidence],
    }
    return output


for _name in registry.methods.names():
    solver(name=_name)(_solver(_name))
