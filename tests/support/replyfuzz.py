"""Replies whose truth is known, written as models write them: well, badly, cut off, contradictory.

::

    for case in cases(seed=1, number=1000):
        case.text, case.kind, case.question, case.cut
        case.truth      the decisive fields, or None if the reply must be refused

Pieces of replies are one a line; ``⏎`` is a line break, ``<one>`` and ``<two>`` are letters of two
options, ``<own>`` and ``<other>`` their texts, and ``<beyond>`` is a letter that is no option.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, Field

from longtake.llm.structured.reader import UnreadableReply, parse_reply
from longtake.llm.structured.schema import Brief, Letter, decisive_fields
from longtake.types import LETTERS, Question


def _lines(text: str) -> tuple[str, ...]:
    return tuple(line.replace("⏎", "\n") for line in text.strip("\n").split("\n"))


OPTIONS = _lines("""
A man in a hat
the red dog
the dog
a dog
yes
no
3 cups
two cups
12
I am here
both A and C
option C
B side of the record
none of the above
the answer is unknown
at the station
a cup, a map and a lamp
it's broken
the "STOP" sign
nobody
walks away
Zürich
""")
"""Texts of options, some of which look like letters, statements or numbers."""

REASONS = _lines("""

it barks at the man
The sign reads STOP
she says "go" and leaves
it's the dog's ball
at 00:01:30 the man, who wears a hat, sits
first he runs; then he stops
Because of the light.
nothing else fits
it could be <other>, but the light is off
unlike <other>, it moves
option <two> is wrong
not <two>
the screen shows {"choice": "<two>"}
the sign says choice: <two>
someone shouts that the answer is <two>
they say "<other>" twice
the list reads:⏎choice: <two>⏎and more
a⏎b⏎c
see above [1, 2]
score 3 of 5
A cup and A hat
\\frac{a}{b}
Ein Hund bellt – laut…
""")
"""Explanations that speak for ``<one>``, some of them of ``<two>``."""

ANNOUNCED = _lines("""
<one>
(<one>)
<own>
<one> <own>
<one>. <own>
Option <one>
Answer: <one>
Answer: <one>. <own>
Final answer: <one>
**Final answer:** **<one>**
\\boxed{<one>}
The answer is <one>.
The best option is <one>
The correct answer is (<one>) <own>.
So the answer must be <one>.
I would choose option <one>.
""")

SPELT = _lines("""
<one>
<one>
<one>
<one>
<one>
<one>
(<one>)
<one>.
**<one>**
<one>. <own>
<one>) <own>
<one>: <own>
<one> <own>
<own>
Option <one>
""")

CONTRADICTING = _lines("""
<one> or <two>
<one>/<two>
<one> and <two>
(<one>) or (<two>)
<one>, <two>
<one>? <two>?
<one>. No wait, <two>.
<one>. <other>
Answer: <one>. <other>
Answer: <one> or <two>
The answer is (<one>) <other>.
The answer is <one>. No, the answer is <two>.
The answer is <one>? No, <two>.
The answer is not <one>.
The answer <one> is wrong.
If the answer is <one>, he runs.
\\boxed{<one>} \\boxed{<two>}
choice: <one>⏎choice: <two>
choice: <one> or <two>
{"choice": "<one> or <two>"}
{"choice": ["<one>", "<two>"]}
{"choice": "<one>" or "<two>"}
{"choice": "<one>"} {"choice": "<two>"}
{"choice": "<one>", "choice": "<two>"}
{"choice": "<one>", "answer": "<two>"}
{"choice": "<one>"}⏎The answer is <two>.
{"reason": "<one>", "choice": "<two> or <one>"}
{"properties": {"choice": {"enum": ["<one>"]}}}
<beyond>
Answer: <beyond>
The answer is <beyond>.
{"choice": "<beyond>"}
I do not know.
The film does not show it.
A man
{}
{"reason": "it barks"}

""")
"""Replies that name two options, none, or one that there is not."""

CUT_SHORT = _lines("""
<one>
<one> or
(<one>) or
The answer is <one>
The answer is <one> o
The answer <one> is
Answer: <one>
choice: <one>
{"choice": "<one>
{"choice": "<one> o
{"choice": "<one>" or
{"reason": "so", "choice": <one>
{"reason": "the sign says choice: <one>
reason: the list reads⏎choice: <one>⏎and then
""")
"""Replies cut off where another option may have been about to be named."""

BEFORE = _lines("""



Sure!
Here is my reply:⏎⏎
I looked at all {frames}.⏎
Let me see.⏎⏎
Based on the notes,
**Reply**⏎⏎
""")
"""Prose before a reply …"""

AFTER = _lines("""



⏎
⏎⏎I hope this helps!
 Let me know if you need more.
⏎⏎---⏎
 👍
""")
"""… and after it."""

PROSE = _lines("""


The man waves.
A dog barks.⏎⏎
He holds a cup, and then he leaves.⏎
I see a lamp.⏎
""")

CAPTIONS = _lines("""
a dog barks
A man, in a hat, waves
the sign reads "OPEN"
two cups on a table
""")


Layout: TypeAlias = Callable[[Random, dict[str, Any]], str]


def as_json(chance: Random, fields: dict[str, Any]) -> str:
    return json.dumps(
        named(chance, fields),
        indent=chance.choice((None, None, 2)),
        ensure_ascii=chance.random() < 0.5,
    )


def as_python(chance: Random, fields: dict[str, Any]) -> str:
    return repr(named(chance, fields))


def as_unescaped_json(chance: Random, fields: dict[str, Any]) -> str:
    """Quotes and line breaks inside texts as they come."""
    quote = chance.choice('""\'')
    pairs = [f"{quote}{key}{quote}: {quote}{value}{quote}" for key, value in fields.items()]
    return "{" + ", ".join(pairs) + "}"


def as_broken_json(chance: Random, fields: dict[str, Any]) -> str:
    text = json.dumps(fields, ensure_ascii=False)
    faults: list[Callable[[str], str]] = [
        lambda text: text[:-1],
        lambda text: text[1:],
        lambda text: text.replace(', "', ' "', 1),
        lambda text: text.replace(', "', '\n"', 1),
        lambda text: text.replace("}", ",}"),
        lambda text: text.replace('": "', '" = "'),
        lambda text: text.replace('"choice"', "choice").replace('"reason"', "reason"),
    ]
    return chance.choice(faults)(text)


def as_wrapped_json(chance: Random, fields: dict[str, Any]) -> str:
    wrappers: list[Callable[[dict[str, Any]], Any]] = [
        lambda inner: {"properties": inner},
        lambda inner: {"type": "object", "properties": inner, "required": list(inner)},
        lambda inner: {"properties": {key: {"value": value} for key, value in inner.items()}},
        lambda inner: {"reply": inner},
        lambda inner: {"answer": inner},
        lambda inner: {"name": "reply", "arguments": inner},
        lambda inner: {"name": "reply", "arguments": json.dumps(inner)},
        lambda inner: [inner],
        lambda inner: json.dumps(inner),
    ]
    return json.dumps(chance.choice(wrappers)(fields))


def as_lines(chance: Random, fields: dict[str, Any]) -> str:
    style = chance.choice(
        ("{k}: {v}", "{K}: {v}", "**{K}:** {v}", "- {k}: {v}", "{k} = {v}", '"{k}": "{v}",')
    )
    lines = [style.format(k=key, K=key.title(), v=value) for key, value in fields.items()]
    return "\n".join(lines)


def as_two_objects(chance: Random, fields: dict[str, Any]) -> str:
    if chance.random() < 0.5:
        return "\n".join(json.dumps({key: value}) for key, value in fields.items())
    return json.dumps(fields) + "\n" + json.dumps({**fields, "reason": "so it seems"})


LAYOUTS: tuple[Layout, ...] = (
    *[as_json, as_unescaped_json, as_broken_json, as_lines] * 2,
    as_python,
    as_wrapped_json,
    as_two_objects,
)


def named(chance: Random, fields: dict[str, Any]) -> dict[str, Any]:
    """Other names and another order, now and then."""
    names = {
        "choice": chance.choice(("choice",) * 4 + ("answer", "Choice", "letter", "final_answer")),
        "reason": chance.choice(("reason",) * 4 + ("Reason", "REASON", "explanation", "why")),
    }
    pairs = [(names.get(key, key), value) for key, value in fields.items()]
    if chance.random() < 0.3:
        pairs.reverse()
    if chance.random() < 0.2:
        pairs.append(("sure", True))
    return dict(pairs)


class Reasoned(BaseModel):
    reason: Brief
    choice: Letter = None


class Alone(BaseModel):
    choice: Letter = None


class Graded(BaseModel):
    confidence: int = Field(ge=1, le=3)


class Scored(BaseModel):
    reason: str = ""
    caption: str
    score: int = Field(ge=1, le=10)


class Gate(BaseModel):
    whole_video: bool


class Plan(BaseModel):
    reason: str = ""
    agent: Literal["grounding", "visual_perception", "subtitles", "finish"]


class Wish(BaseModel):
    segment: int
    description: str


class Wishes(BaseModel):
    missing: list[Wish]


class Names(BaseModel):
    missing: list[str]


@dataclass(frozen=True)
class Case:
    """A reply, what was asked, and what was meant."""

    text: str
    kind: type[BaseModel]
    question: Question | None
    truth: dict[str, Any] | None
    how: str
    """The layout and the faults, for whoever looks at a misreading."""
    cut: bool = False


@dataclass(frozen=True)
class Outcome:
    """How a reply was read."""

    case: Case
    read: dict[str, Any] | None

    @property
    def misread(self) -> bool:
        """Whether something was read that was not meant."""
        if self.read is None or self.read == self.case.truth:
            return False
        return not (self.case.cut and self.case.truth and _is_part(self.read, self.case.truth))

    @property
    def abstained(self) -> bool:
        """Whether something that was meant was not read."""
        return self.read is None and self.case.truth is not None


def _is_part(parse_reply: dict[str, Any], truth: dict[str, Any]) -> bool:
    """Whether a reply that was cut off was read as far as it goes."""
    for name, value in parse_reply.items():
        whole = truth[name]
        if isinstance(value, list) and value:
            same = value == whole[: len(value)]
        else:
            same = value == whole or (
                isinstance(value, str) and len(value) > 1 and whole.startswith(value)
            )
        if not same:
            return False
    return True


def outcomes(seed: int, number: int) -> Iterator[Outcome]:
    """Cases, and what the reader makes of them."""
    for case in cases(seed, number):
        try:
            reply = parse_reply(case.text, case.kind, case.question, cut=case.cut)
        except UnreadableReply:
            yield Outcome(case, None)
            continue
        plain = reply.model_dump()
        yield Outcome(
            case, {name: plain[name] for name in decisive_fields(case.kind, case.question)}
        )


def cases(seed: int, number: int) -> Iterator[Case]:
    """So many cases; the same for the same seed."""
    for index in range(number):
        chance = Random(f"{seed}, {index}")
        case = chance.choice(MAKERS)(chance)
        # what is left of a contradiction may be one clear answer
        if chance.random() < 0.25 and case.text and case.truth is not None:
            # the end is lost, as when the tokens run out
            at = chance.randrange(len(case.text))
            case = replace(case, text=case.text[:at], cut=True, how=f"{case.how}, cut at {at}")
        yield case


# ---- letters


def letter_case(chance: Random) -> Case:
    """A multiple-choice reply that means one option."""
    question = _question(chance)
    letter = chance.choice(question.letters)
    reason = _filled(chance, REASONS, question, letter)
    kind = chance.choice((Reasoned, Reasoned, Alone))
    layout = chance.choice(LAYOUTS)
    text = layout(chance, {"reason": reason, "choice": _spelt(chance, letter, question)})
    return Case(_noisy(chance, text), kind, question, {"choice": letter}, layout.__name__)


def announced_case(chance: Random) -> Case:
    """Prose that ends in an announcement."""
    question = _question(chance)
    letter = chance.choice(question.letters)
    text = _before(chance, PROSE) + _filled(chance, ANNOUNCED, question, letter)
    return Case(text, Reasoned, question, {"choice": letter}, "announced")


def contradicting_case(chance: Random) -> Case:
    """A reply that names two options, or none that there is."""
    question = _question(chance)
    letter = chance.choice(question.letters)
    text = _filled(chance, CONTRADICTING, question, letter)
    # an option's own words may make one of these a clear answer after all
    if any(option in text for option in question.options):
        text = f"{question.letters[0]} or {question.letters[1]}"
    kind = chance.choice((Reasoned, Alone))
    return Case(_noisy(chance, text), kind, question, None, "contradicting")


def cut_short_case(chance: Random) -> Case:
    """A reply that was cut off where another option may have been about to be named."""
    question = _question(chance)
    letter = chance.choice(question.letters)
    text = _before(chance, BEFORE) + _filled(chance, CUT_SHORT, question, letter)
    return Case(text, Reasoned, question, None, "cut short", cut=True)


def _question(chance: Random) -> Question:
    return Question("Which?", tuple(chance.sample(OPTIONS, chance.randint(2, 6))))


def _filled(chance: Random, templates: Sequence[str], question: Question, one: str) -> str:
    """One of the templates with its letters and options set in."""
    two = chance.choice([letter for letter in question.letters if letter != one])
    texts = dict(zip(question.letters, question.options, strict=True))
    beyond = LETTERS[len(question.letters) + chance.randrange(3)]
    values = {"<own>": texts[one], "<other>": texts[two], "<beyond>": beyond}
    text = chance.choice(templates)
    for slot, value in {"<one>": one, "<two>": two, **values}.items():
        text = text.replace(slot, value)
    return text


def _spelt(chance: Random, letter: str, question: Question) -> str:
    if chance.random() < 0.15:
        return chance.choice((letter.lower(), chr(ord(letter) + 0xFEE0)))
    return _filled(chance, SPELT, question, letter)


def _noisy(chance: Random, text: str) -> str:
    if chance.random() < 0.2:
        text = f"```{chance.choice(('', 'json', 'yaml'))}\n{text}\n```"
    return _before(chance, BEFORE) + text + chance.choice(AFTER)


def _before(chance: Random, prose: Sequence[str]) -> str:
    said = chance.choice(prose)
    return f"{said} " if said and not said.endswith("\n") else said


# ---- other types


def grade_case(chance: Random) -> Case:
    grade = chance.randint(1, 3)
    level = {1: "low", 2: "medium", 3: "high"}[grade]
    meant = [grade, str(grade), f"{grade}/3", f"{grade} out of 3", level, f"level {grade}"]
    meant += [f"{grade}: the notes hold it", float(grade), [grade], {"value": grade}]
    unclear = [f"{grade} or {grade % 3 + 1}", f"{grade}-{grade + 1}", f"{grade}/5", grade + 3]
    unclear += [f"{grade * 30}%", True, "unsure", grade + 0.5]
    clear = chance.random() < 0.6
    value = chance.choice(meant if clear else unclear)
    text = json.dumps({"confidence": value})
    if isinstance(value, str) and chance.random() < 0.6:
        text = chance.choice((f"Confidence: {value}", value))
    noisy = text if text == value else _noisy(chance, text)
    return Case(noisy, Graded, None, {"confidence": grade} if clear else None, "grade")


def score_case(chance: Random) -> Case:
    score, caption = chance.randint(1, 10), chance.choice(CAPTIONS)
    said = chance.choice((score, str(score), f"{score}/10", f"{score} out of 10"))
    layout = chance.choice((as_json, as_python, as_unescaped_json, as_lines))
    text = layout(chance, {"reason": "because", "caption": caption, "score": said})
    truth = {"caption": caption, "score": score}
    return Case(_noisy(chance, text), Scored, None, truth, f"score {layout.__name__}")


def gate_case(chance: Random) -> Case:
    truth = chance.random() < 0.5
    word = chance.choice(("true", "yes") if truth else ("false", "no"))
    word = chance.choice((word, word.title()))
    templates = [word, f"{word}.", f"whole_video: {word}", f'{{"whole_video": "{word}"}}']
    templates += [f'{{"Whole Video": {word}}}', repr({"whole_video": truth})]
    return Case(chance.choice(templates), Gate, None, {"whole_video": truth}, "gate")


def plan_case(chance: Random) -> Case:
    agent, other = chance.sample(("grounding", "visual_perception", "subtitles", "finish"), 2)
    spelt = chance.choice((agent, agent, agent.upper(), agent.replace("_", " ").title()))
    unclear = (f"{agent} or {other}", f"{agent}, {other}", "somebody", "")
    clear = chance.random() < 0.8
    fields = {
        "reason": f"{other} has been done",
        "agent": spelt if clear else chance.choice(unclear),
    }
    layout = chance.choice(LAYOUTS[:4] + LAYOUTS[8:])
    text = _noisy(chance, layout(chance, fields))
    return Case(text, Plan, None, {"agent": agent} if clear else None, f"plan {layout.__name__}")


def wishes_case(chance: Random) -> Case:
    wishes, written = [], list[Any]()
    for _ in range(chance.randint(0, 3)):
        number, what = chance.randint(1, 9), chance.choice(CAPTIONS)
        wishes.append({"segment": number, "description": what})
        spelt = (number, number, str(number), f"Segment {number}", f"{number}-{number + 1}")
        written.append({"segment": chance.choice(spelt), "description": what})
    if written and chance.random() < 0.3:
        unusable = ({"segment": None, "description": "x"}, {"description": "x"}, {}, 7, "a dog")
        written.insert(chance.randrange(len(written) + 1), chance.choice(unusable))
    whole: list[Any] = [{"missing": written}, {"frames": written}, {"reply": {"missing": written}}]
    whole.append(written or {"missing": None})
    if len(written) == 1:
        whole.append({"missing": written[0]})
    text = _noisy(chance, json.dumps(chance.choice(whole)))
    return Case(text, Wishes, None, {"missing": wishes}, "wishes")


def names_case(chance: Random) -> Case:
    names = chance.sample(CAPTIONS, chance.randint(1, 3))
    bullets = "\n".join(f"- {name}" for name in names)
    numbers = "\n".join(f"{number}. {name}" for number, name in enumerate(names, 1))
    texts = [json.dumps({"missing": names}), json.dumps({"Missing": names}), json.dumps(names)]
    texts += [repr({"missing": names}), bullets, numbers, f"missing:\n{bullets}"]
    return Case(chance.choice(texts), Names, None, {"missing": names}, "names")


MAKERS = (
    *[letter_case] * 4,
    *[announced_case, contradicting_case] * 2,
    cut_short_case,
    grade_case,
    score_case,
    gate_case,
    plan_case,
    wishes_case,
    names_case,
)
