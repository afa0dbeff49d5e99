"""The forms in which VideoAgent's models reply."""

from __future__ import annotations

from pydantic import BaseModel, Field


class CaptionReply(BaseModel):
    """A picture in words."""

    caption: str


class ConfidenceReply(BaseModel):
    """How well the notes support the answer."""

    confidence: int = Field(ge=1, le=3)


class Wish(BaseModel):
    """A picture that would help."""

    segment: int
    description: str


class WishesReply(BaseModel):
    """Everything that is missing, each in one of the listed segments."""

    missing: list[Wish]


class DescriptionsReply(BaseModel):
    """Everything that is missing, anywhere in the film."""

    missing: list[str]
