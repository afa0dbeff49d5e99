"""Every shape in which models were seen to write a letter: read as it was meant, or refused."""

from typing import Any

import pytest
from pydantic import BaseModel, Field
from support.replyfuzz import Gate, Graded, Names, Plan, Reasoned, Wishes

from longtake.llm.structured.reader import UnreadableReply, parse_reply
from longtake.llm.structured.schema import Brief
from longtake.types import Question

QUESTION = Question("Who barks?", ("the man", "the dog", "the cat", "nobody at all"))


LETTER_B = [
    # nothing but the letter
    "B", "b", "(B)", "[B]", "**B**", "`B`", '"B"', "B.", "Ｂ", "（Ｂ）", "B the dog", "B. the dog",
    "B) The dog.", "the dog", "The dog.", "\\boxed{B}", "$\\boxed{\\text{B}}$",
    # an announcement
    "Answer: B", "Answer: B. the dog", "The answer is B.", "The correct answer is (B) the dog.",
    "**Final answer:** **B**", "**Final Answer**: B", "Final answer: \\boxed{B}",
    "The answer is the dog.", "I would choose option B.", "answer: b", "Option B",
    "The best option is B, because of the bark.", "B\n\nBecause of the bark.",
    "It wears a collar.\n\nB The dog", "It is not A; the answer is B.",
    "It could not be the cat, since it is asleep.\n\nThe answer is B.",
    "A man is seen first. Then a dog barks.\n\nB",
    # lines that announce the letter; the reason is lost
    "reason: so\nchoice: B", "Reason: so.\nChoice: B", "choice: B\nreason: so",
    "**Reason:** so\n**Choice:** B", "- reason: so\n- choice: B", "reason = so\nchoice = B",
    "```yaml\nreason: so\nchoice: B\n```",
    # JSON
    '{"choice": "B"}', '{"reason": "it barks", "choice": "B"}',
    '{"reason": "it barks", "choice": "B", "sure": true}', '{"reason": "it barks", "choice": "b"}',
    '{"reason": "it barks", "choice": "(B)"}', '{"reason": "it barks", "choice": "B. the dog"}',
    '{"reason": "it barks", "choice": "B the dog"}', '{"reason": "it barks", "choice": "the dog"}',
    '{"reason": "it barks", "choice": "Ｂ"}', '{"reason": "it barks", "choice": ["B"]}',
    '{"reason": "it barks", "choice": {"letter": "B"}}', '{"reason": null, "choice": "B"}',
    '{"reason": ["it barks", "all night"], "choice": "B"}',
    '```json\n{"reason": "it barks", "choice": "B"}\n```',
    'Sure!\n```json\n{"reason": "it barks", "choice": "B"}\n```\nI hope this helps.',
    '{"Reason": "it barks", "Choice": "B"}', '{"REASON": "it barks", "CHOICE": "B"}',
    '{"reason": "it barks", "answer": "B"}', '{"reason": "it barks", "letter": "B"}',
    '{"reason": "it barks", "final_answer": "B"}', '{"reasoning": "it barks", "Final Answer": "B"}',
    '{"choice": "B", "answer": "the dog"}',
    # wrapped
    '{"properties": {"reason": "it barks", "choice": "B"}}',
    '{"type": "object", "properties": {"reason": "it barks", "choice": "B"}, "required": []}',
    '{"properties": {"reason": {"type": "string", "value": "it barks"}, "choice": {"value": "B"}}}',
    '{"properties": {"choice": {"enum": ["A", "B"]}}, "reason": "it barks", "choice": "B"}',
    '{"answer": {"reason": "it barks", "choice": "B"}}',
    '{"reply": {"reason": "it barks", "choice": "B"}}',
    '{"reply": "{\\"reason\\": \\"it barks\\", \\"choice\\": \\"B\\"}"}',
    '{"name": "reply", "arguments": {"reason": "it barks", "choice": "B"}}',
    '{"name": "reply", "arguments": "{\\"choice\\": \\"B\\"}"}',
    '[{"reason": "it barks", "choice": "B"}]', '["B"]',
    '"{\\"reason\\": \\"it barks\\", \\"choice\\": \\"B\\"}"',
    # two objects
    '{"reason": "so"}\n{"choice": "B"}',
    '{"reason": "it barks", "choice": "B"}\n{"reason": "it barks", "choice": "B"}',
    '{"reason": "it barks", "choice": "B"}\n{"reason": "so I heard", "choice": "B"}',
    # broken
    '{"reason": "he says "sit" and it barks", "choice": "B"}',
    '{"reason": "the "dog" barks", "choice": "B"}', "{'reason': 'it's barking', 'choice': 'B'}",
    '{"reason": it barks, "choice": B}', '{"reason": "it barks" "choice": "B"}',
    '{"reason": "it barks"\n"choice": "B"}', '{"reason": "it barks", "choice": "B"',
    '{"reason" = "it barks", "choice" = "B"}', '{reason: "it barks", choice: "B",}',
    '{"reason": "it barks", "choice": "B",}', '{"reason": "it barks", /* sure */ "choice": "B"}',
]  # fmt: skip


@pytest.mark.parametrize("text", LETTER_B)
def test_b_in_many_shapes(text: str) -> None:
    reply = parse_reply(text, Reasoned, QUESTION)
    assert reply.choice == "B"
    if "it barks" in text and "properties" not in text:
        assert reply.reason.startswith("it bark") or '"' in reply.reason


NO_LETTER = [
    "", "A or B", "A/B", "A, B", "A and B", "(A) or (B)", "either the man or the dog",
    "Answer: A or B", "Answer: B or C", "The answer is A. No, the answer is B.",
    "The answer is B? No, C.", "The answer is not B.", "The answer B is wrong.",
    "If the answer is B, then it barks.", "B? C?", "B. No, C.", "B. the cat", "Answer: B. the cat",
    "E", "Z", "Answer: E", "2", "12", "A man walks in", "The answer is a man", "I am not sure.",
    "nobody knows", "none of them", "choice: A\nchoice: B", "choice: A or B", "choice: E",
    "<choice>A</choice><choice>B</choice>", "| choice |\n|---|\n| A |\n| B |",
    "\\boxed{A} \\boxed{B}", '{"choice": "A or B"}', '{"choice": "E"}', '{"choice": 5}',
    '{"choice": 0}', '{"choice": true}', '{"choice": ["A", "B"]}', '{"choice": null}',
    '{"choice": "A", "answer": "B"}', '{"choice": "A", "choice": "B"}',
    '{"choice": "A"} {"choice": "B"}', '{"answer": {"choice": "A"}, "final": {"choice": "B"}}',
    '{"choice": "A"}\nThe answer is B.', '{"choice": "one of \\"A\\", \\"B\\""}',
    '{"reason": "text, at most 25 words", "choice": "one of A, B, C, D"}',
    '{"properties": {"reason": {"type": "string"}, "choice": {"enum": ["A", "B", "C", "D"]}}}',
    '{"properties": {"choice": {"type": "string", "enum": ["B"]}}}', '{"reason": "it barks"}',
    '{"reason": "it barks", "choice": "B', '{"reason": "it barks, so the answer is B',
    '{"reason": "it barks", "choice": ', '{"reason": "the sign says "choice": "A"", ',
    '{"reason": "it barks", "choice": "B"\n\nThat is my answer',
    '"reason": "it barks", "choice": "B"}', '"reason": "it barks", "choice": "B"', '{"choice": 2}',
    '{"choice": "A" or "B"}',
    # other layouts
    "Reason: someone shouts that the answer is A\nChoice: Option",
    "Sure! Reason: someone shouts that the answer is A\nChoice: c Let me know.",
    "<answer>B</answer>", "<reason>so</reason>\n<choice>B</choice>",
    "<reason>the answer is A</reason>\n<choice>B</choice>",
    "| reason | choice |\n|---|---|\n| so | B |", "| reason | so |\n| choice | B |",
    '| reason | the screen shows {"choice": "A"} |\n| choice | B |',
]  # fmt: skip


@pytest.mark.parametrize("text", NO_LETTER)
def test_what_names_no_single_option_is_refused(text: str) -> None:
    with pytest.raises(UnreadableReply):
        parse_reply(text, Reasoned, QUESTION)


@pytest.mark.parametrize("text", ["B", "The answer is B", "Answer: B", "choice: B", "the dog"])
def test_a_bare_letter_at_the_very_end_of_a_cut_reply_is_refused(text: str) -> None:
    with pytest.raises(UnreadableReply):
        parse_reply(text, Reasoned, QUESTION, cut=True)


def test_a_letter_before_the_end_of_a_cut_reply_stands() -> None:
    assert parse_reply("The answer is B. It bar", Reasoned, QUESTION, cut=True).choice == "B"
    assert (
        parse_reply('{"choice": "B", "reason": "it bar', Reasoned, QUESTION, cut=True).choice == "B"
    )


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
    ('{"missing": {"segment": 3, "description": "a dog"}}', Wishes, ONE_DOG),
    ('[{"segment": 3, "description": "a dog"}]', Wishes, ONE_DOG),
    ('Here:\n```json\n[{"segment": 3, "description": "a dog"}]\n```', Wishes, ONE_DOG),
    ('{"frames": [{"segment": "3", "description": "a dog"}]}', Wishes, ONE_DOG),
    ('{"missing": [{"segment": "Segment 3", "description": "a dog"}]}', Wishes, ONE_DOG),
    ('{"missing": [{"segment": "3-4", "description": "a dog"}]}', Wishes, ONE_DOG),
    ('{"missing": [{"segment": 3-4, "description": "a dog"}]}', Wishes, ONE_DOG),
    ('{"missing": [{"segment": "00:12:00", "description": "a dog"}]}', Wishes, None),
    (
        '{"missing": [{"segment": null, "description": "a cat"},'
        ' {"segment": 3, "description": "a dog"}, 7]}',
        Wishes,
        ONE_DOG,
    ),
    ('{"missing": ["Segment 3: a dog"]}', Wishes, None),
    ("3 | a dog", Wishes, None),
    ("missing:\n  - segment: 3\n    description: a dog", Wishes, None),
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
    ("reason: late\nanswer: the dog barks", Said, None),
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
