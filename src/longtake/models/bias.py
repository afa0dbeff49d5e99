"""Whether a model prefers a letter, whatever the letter stands for.

The questions have no answer, and every option stands at every letter once: a model without a
preference gives each letter a quarter.
"""

from __future__ import annotations

from longtake.models.chat import Chat, Options, say
from longtake.models.manners import manner_of
from longtake.models.replies.letters import read_letter
from longtake.types import LETTERS, Question

QUESTIONS = (
    ("Which object is in the closed box?", ("a key", "a coin", "a button", "a ring")),
    ("What does the man in the film do next?", ("he sits", "he waves", "he turns", "he waits")),
    ("Why does the woman leave the room?", ("a call", "a noise", "a friend", "a smell")),
    ("What colour is the car behind the house?", ("red", "blue", "green", "white")),
    ("Where did the child put the ball?", ("a shelf", "a chair", "a bag", "a table")),
    ("Which day was the picture taken?", ("Monday", "Tuesday", "Thursday", "Friday")),
)
"""Each with four options, none of which can be known."""


def measure_bias(chat: Chat) -> dict[str, float]:
    """The share of each letter over all questions and orders; remembered with the model."""
    letters = LETTERS[:4]
    shares = dict.fromkeys(letters, 0.0)
    for text, options in QUESTIONS:
        for shift in range(len(options)):
            question = Question(text, options[shift:] + options[:shift])
            for letter, share in _preferred(chat, question).items():
                shares[letter] += share
    total = sum(shares.values())
    if not total:
        return {}
    measured = {letter: round(share / total, 3) for letter, share in shares.items()}
    manner = manner_of(chat)
    if manner is not None:
        manner.learn(bias=measured)
    return measured


def _preferred(chat: Chat, question: Question) -> dict[str, float]:
    """The odds of each letter where the endpoint tells them, else the letter that it names."""
    lines = [
        f"{letter}. {option}" for letter, option in zip(LETTERS, question.options, strict=False)
    ]
    asked = "\n".join([question.text, *lines, "Choose one. Reply with the letter only."])
    wanted = tuple(question.letters) if chat.card.letters else ()
    tokens = 1 if wanted else 64
    reply = chat.complete([say("user", asked)], Options(max_tokens=tokens, letters=wanted))
    if reply.odds:
        total = sum(reply.odds.values())
        return {letter: odds / total for letter, odds in reply.odds.items()}
    letter = read_letter(reply.text, question)
    return {} if letter is None else {letter: 1.0}
