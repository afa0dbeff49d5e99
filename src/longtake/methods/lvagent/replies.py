"""The forms in which agents of LVAgent reply. Field descriptions are part of what a model reads."""

from __future__ import annotations

from pydantic import BaseModel, Field


class GateReply(BaseModel):
    """Whether part of the film is enough."""

    whole_video: bool = Field(description="true: all of the film must be watched")


class KeyReply(BaseModel):
    """What to look for."""

    key_information: str


class ReasonReply(BaseModel):
    """What led to an answer."""

    reason: str
    """Without a description: a reason that was cut at the limit of tokens is used as it stands."""
