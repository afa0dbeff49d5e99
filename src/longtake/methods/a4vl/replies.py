"""The forms in which agents of A4VL reply. Field descriptions are part of what a model reads."""

from __future__ import annotations

from pydantic import BaseModel, Field


class ClueReply(BaseModel):
    """What to look for."""

    clue: str


class ReasonReply(BaseModel):
    """What supports an answer."""

    reason: str = Field(description="two to four sentences")


class ExplanationReply(BaseModel):
    """The winning reasons combined."""

    explanation: str = Field(description="two to four sentences")


class GateReply(BaseModel):
    """Whether part of the film is enough."""

    whole_video: bool = Field(description="true: all of the film must be looked over")
