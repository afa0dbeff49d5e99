"""Every shape in which models were seen to write a letter: read as it was meant, or refused."""

from __future__ import annotations

import pytest
from support.replyfuzz import Reasoned

from longtake.llm.structured.reader import UnreadableReply, parse_reply
from longtake.types import Question

QUESTION = Question("Who barks?", ("the man", "the dog", "the cat", "nobody at all"))


LETTER_B = [
    # nothing but the letter
    "B", "b", "(B)", "[B]", "**B**", "`B`", '"B"', "B.", "Ｂ", "（Ｂ）", "B the dog", "B. the dog",
    "B) The dog.", "the dog", "The dog.", "\\boxed{B}", "$\\boxed{\\text{B}}$",
    # an announcement
    "Answer: B", "Answer: B. the dog", "The answer is B.", "The correct answer is (B) the dog.",
    "**Final answer:** **B**", "**Final Answer**: B", "Final answer: \\boxed{B}",
    "The answer is the dog.", "I would choose option B.",
    "It could not be the cat, since it is asleep.\n\nThe answer is B.",
    "A man is seen first. Then a dog barks.\n\nB",
    # lines, YAML, tags, tables
    "reason: it barks\nchoice: B", "Reason: it barks.\nChoice: B", "choice: B\nreason: it barks",
    "**Reason:** it barks\n**Choice:** B", "- reason: it barks\n- choice: B",
    "reason = it barks\nchoice = B", "reason: >\n  it barks\n  all night\nchoice: B",
    "```yaml\nreason: it barks\nchoice: B\n```", "<reason>it barks</reason>\n<choice>B</choice>",
    "<answer>B</answer>", "<reply><reason>it barks</reason><choice>B</choice></reply>",
    "| reason | choice |\n|---|---|\n| it barks | B |",
    "| field | value |\n|---|---|\n| reason | it barks |\n| choice | B |",
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
