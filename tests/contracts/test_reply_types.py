"""Replies of other types than a letter, as models were seen to write them."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, Field
from support.replyfuzz import Gate, Graded, Names, Plan, Wishes

from longtake.llm.structured.reader import UnreadableReply, parse_reply
from longtake.llm.structured.schema import Brief
from longtake.types import Question

OPEN = Question("What happens?")


class Said(BaseModel):
    reason: Brief
    answer: str


class Caption(BaseModel):
    caption: str


class Score(BaseModel):
    caption: str
    score: int = Field(ge=1, le=10)


ONE_DOG = {"missing": [{"segment": 3, "description": "a dog"}]}
OTHERS: list[tuple[str, type[BaseModel], Any]] = [
    # grades
    ("3", Graded, {"confidence": 3}),
    ("3.", Graded, {"confidence": 3}),
    ("3/3", Graded, {"confidence": 3}),
    ("Confidence: 3", Graded, {"confidence": 3}),
    ("confidence: high", Graded, None),
    ("3: the notes hold all of it", Graded, {"confidence": 3}),
    ('{"confidence": "3/3"}', Graded, {"confidence": 3}),
    ('{"confidence": 3/3}', Graded, {"confidence": 3}),
    ('{"confidence": "2 out of 3"}', Graded, {"confidence": 2}),
    ('{"confidence": "high"}', Graded, None),
    ('{"confidence": "3"}', Graded, {"confidence": 3}),
    ('{"confidence": 3.0}', Graded, {"confidence": 3}),
    ('{"confidence": "three"}', Graded, None),
    ('{"grade": 2}', Graded, None),
    ('{"confidence": {"value": 2}}', Graded, {"confidence": 2}),
    ('{"confidence": 4}', Graded, None),
    ('{"confidence": "2-3"}', Graded, None),
    ('{"confidence": "2 or 3"}', Graded, None),
    ('{"confidence": "4/5"}', Graded, None),
    ('{"confidence": 2.5}', Graded, None),
    ('{"confidence": "90%"}', Graded, None),
    ('{"confidence": true}', Graded, None),
    ("I am very confident", Graded, None),
    ('{"caption": "a dog", "score": "8/10"}', Score, {"caption": "a dog", "score": 8}),
    ('{"caption": "a dog", "score": "high"}', Score, None),
    ("a dog barks", Score, None),
    # yes and no
    ("true", Gate, {"whole_video": True}),
    ("```json\ntrue\n```", Gate, {"whole_video": True}),
    ("```\n3\n```", Graded, {"confidence": 3}),
    ("No.", Gate, {"whole_video": False}),
    ('{"whole_video": "yes"}', Gate, {"whole_video": True}),
    ('{"whole video": False}', Gate, {"whole_video": False}),
    ("whole_video: no", Gate, {"whole_video": False}),
    ("maybe", Gate, None),
    # one of several words
    ("grounding", Plan, {"reason": "", "agent": "grounding"}),
    ('{"agent": "Visual Perception"}', Plan, {"reason": "", "agent": "visual_perception"}),
    ("agent: finish", Plan, {"reason": "", "agent": "finish"}),
    ('{"agent": "somebody"}', Plan, None),
    # lists of objects
    ('{"missing": null}', Wishes, {"missing": []}),
    ('{"missing": []}', Wishes, {"missing": []}),
    (
        '{"missing": {"segment": 3, "description": "a dog"}}',
        Wishes,
        ONE_DOG,
    ),
    (
        '[{"segment": 3, "description": "a dog"}]',
        Wishes,
        ONE_DOG,
    ),
    (
        'Here:\n```json\n[{"segment": 3, "description": "a dog"}]\n```',
        Wishes,
        ONE_DOG,
    ),
    (
        '{"frames": [{"segment": "3", "description": "a dog"}]}',
        Wishes,
        ONE_DOG,
    ),
    (
        '{"missing": [{"segment": "Segment 3", "description": "a dog"}]}',
        Wishes,
        ONE_DOG,
    ),
    (
        '{"missing": [{"segment": "3-4", "description": "a dog"}]}',
        Wishes,
        ONE_DOG,
    ),
    (
        '{"missing": [{"segment": 3-4, "description": "a dog"}]}',
        Wishes,
        ONE_DOG,
    ),
    ('{"missing": [{"segment": "00:12:00", "description": "a dog"}]}', Wishes, None),
    (
        '{"missing": [{"segment": null, "description": "a cat"},'
        ' {"segment": 3, "description": "a dog"}, 7]}',
        Wishes,
        ONE_DOG,
    ),
    (
        '{"missing": ["Segment 3: a dog"]}',
        Wishes,
        ONE_DOG,
    ),
    ("3 | a dog", Wishes, ONE_DOG),
    (
        "missing:\n  - segment: 3\n    description: a dog",
        Wishes,
        ONE_DOG,
    ),
    ('{"missing": [{"segment": null, "description": "a cat"}]}', Wishes, None),
    ('{"missing": ["a dog"]}', Wishes, None),
    ("1. a dog\n2. a cat", Wishes, None),
    # lists of texts
    ('{"missing": "a dog"}', Names, {"missing": ["a dog"]}),
    ('{"missing": ["a dog", "a cat"]}', Names, {"missing": ["a dog", "a cat"]}),
    ('["a dog", "a cat"]', Names, {"missing": ["a dog", "a cat"]}),
    ('{"missing": "[\\"a dog\\", \\"a cat\\"]"}', Names, {"missing": ["a dog", "a cat"]}),
    ('{"missing": [{"description": "a dog"}]}', Names, {"missing": ["a dog"]}),
    ("- a dog\n- a cat", Names, {"missing": ["a dog", "a cat"]}),
    ("1. a dog\n2. a cat", Names, {"missing": ["a dog", "a cat"]}),
    ("missing:\n- a dog\n- a cat", Names, {"missing": ["a dog", "a cat"]}),
    # texts
    ("A dog barks at a man.", Caption, {"caption": "A dog barks at a man."}),
    ("Caption: A dog barks.", Caption, {"caption": "A dog barks."}),
    ('"A dog barks."', Caption, {"caption": "A dog barks."}),
    ('{"description": "A dog barks."}', Caption, None),
    ("A sign.\nText: STOP", Caption, {"caption": "A sign.\nText: STOP"}),
    ("I'm sorry, I cannot see the picture.", Caption, None),
    ('{"caption": "text"}', Caption, None),
    ('{"error": "no picture"}', Caption, None),
    ("The dog barks.", Said, {"reason": "", "answer": "The dog barks."}),
    ("reason: late\nanswer: the dog barks", Said, {"reason": "late", "answer": "the dog barks"}),
    ('{"answer": 3}', Said, {"reason": "", "answer": "3"}),
    ('{"reason": "so"}', Said, None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "kind", "expected"), OTHERS)
def test_other_types(text: str, kind: type[BaseModel], expected: Any) -> None:
    if expected is None:
        with pytest.raises(UnreadableReply):
            parse_reply(text, kind, OPEN)
    else:
        assert parse_reply(text, kind, OPEN).model_dump() == expected
