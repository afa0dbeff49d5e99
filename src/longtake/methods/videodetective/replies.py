"""The forms in which VideoDetective's models reply. They read the field descriptions."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class Parts(BaseModel):
    """Entities and an event."""

    entities: list[str] = Field(description="2 to 5 of them")
    event_query: str = Field(description="one event")


class OptionParts(Parts):
    """What would be seen if an option were right."""

    option: str = Field(description="the letter of the option")


class Decomposition(BaseModel):
    """A question in parts."""

    query_keywords: list[str]
    general_query: str
    temporal_plan: str = ""
    vlm_query: str = ""


class OptionDecomposition(Decomposition):
    """A multiple-choice question in parts, one for each option."""

    options: list[OptionParts]


class OpenDecomposition(Decomposition):
    """An open-ended question in parts."""

    facets: list[Parts]


class TimelineEvent(BaseModel):
    """An event of the timeline."""

    model_config = ConfigDict(coerce_numbers_to_str=True)

    start: str = Field(description="when it begins, such as 00:12:31")
    end: str = Field(description="when it ends, such as 00:12:31")
    description: str


class TimelineReply(BaseModel):
    """A film as events."""

    events: list[TimelineEvent]


class ReportReply(BaseModel):
    """What a look at a scene showed."""

    reasoning: str = Field(default="", description="one or two sentences")
    caption: str
    needs_more_info: bool
    missing_keyword: str = Field(default="", description="empty if nothing is missing")
