"""Every method as a model of ``llm`` (extra ``llm``)::

    llm -m longtake/videoagent -a film.mp4 "Who leaves first?"

Options in the prompt (``A. …``) make it a multiple-choice question, as at the endpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import llm
from pydantic import Field

import longtake
from longtake import registry
from longtake._util.timecode import clock
from longtake.errors import ConfigError
from longtake.server.openai.requests import read_question
from longtake.types import Answer

TYPES = ("mp4", "mpeg", "quicktime", "webm", "x-matroska", "x-msvideo", "mp2t", "x-m4v", "x-flv")

MOST_CITED = 8
"""Moments that are listed; a method may cite every frame it saw."""


class LlmPluginOptions(llm.Options):  # type: ignore[misc]
    """What ``-o`` sets."""

    model: str | None = Field(default=None, description="As longtake ask --model")
    verify: bool | None = Field(default=None, description="Check the answer against the film")
    evidence: bool = Field(default=True, description="List the cited moments after the answer")


class MethodModel(llm.Model):  # type: ignore[misc]
    """A method under the name ``longtake/METHOD``."""

    attachment_types = frozenset(f"video/{name}" for name in TYPES)
    LlmPluginOptions = LlmPluginOptions
    can_stream = False

    def __init__(self, method: str) -> None:
        self.method = method
        self.model_id = f"longtake/{method}"

    def execute(
        self,
        prompt: Any,
        stream: bool,  # noqa: ARG002 - llm passes these by name
        response: Any,
        conversation: Any,  # noqa: ARG002
    ) -> Iterator[str]:
        """Answer the prompt's question about its film."""
        asked = read_question(prompt.prompt)
        film = longtake.open(_film(prompt.attachments))
        given = {"model": prompt.options.model or (), "verify": prompt.options.verify}
        result = film.ask(asked.text, asked.options, method=self.method, **given)
        usage = result.usage
        response.set_usage(input=usage.tokens_in, output=usage.tokens_out)
        response.response_json = {"answer": asdict(result.answer), "usage": asdict(usage)}
        yield asked.reply_text(result.answer.choice, result.answer.text) or result.answer.reason
        if prompt.options.evidence:
            yield from _cited(result.answer)


def _film(attachments: list[Any]) -> Path:
    if len(attachments) != 1 or not attachments[0].path:
        raise ConfigError("attach one film: llm -m longtake/videoagent -a film.mp4 …")
    return Path(attachments[0].path)


def _cited(answer: Answer) -> Iterator[str]:
    for evidence in answer.evidence[:MOST_CITED]:
        yield f"\n[{clock(evidence.segment.start)}] {evidence.source} {evidence.text}".rstrip()
    if len(answer.evidence) > MOST_CITED:
        yield f"\n… and {len(answer.evidence) - MOST_CITED} more"


@llm.hookimpl  # type: ignore[untyped-decorator]
def register_models(register: Callable[[Any], None]) -> None:
    """Offer every method."""
    for name in registry.methods.names():
        register(MethodModel(name))
