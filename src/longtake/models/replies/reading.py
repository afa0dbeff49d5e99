"""What a model wrote, read as a reply type.

Replies come as JSON, broken JSON, JSON wrapped in other JSON, labelled lines, or as nothing but the
value that was asked for. All of these are read, under three rules:

- The decisive fields must be in the reply. An explanation that is missing is left empty; nothing
  else is filled in.
- Where a reply says a thing more than once, it must say the same each time. Which of two answers
  was meant is not guessed: a wrong reading is worse than none.
- What was cut off counts only as far as its missing end could not change it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from longtake import events
from longtake.models.replies.fields import Fields
from longtake.models.replies.forms import letter_fields
from longtake.models.replies.letters import plain, stated_letters
from longtake.models.replies.lines import Contradiction, labelled_values
from longtake.models.replies.tolerant_json import Found, NotJson, lists, objects, parse
from longtake.types import Question

M = TypeVar("M", bound=BaseModel)
Object = dict[str, Any]

_FENCED = re.compile(r"```[\w-]*\s*\n(.*?)\n?\s*```", re.DOTALL)
_LABELLED = re.compile(
    r"""\b(?:[Cc]hoice|[Aa]nswer|[Ll]etter)["'*_`]{0,3}[ \t]?[:=][\s"'*_`(]{0,4}([A-Z])\b"""
)
_DECLINES = re.compile(
    r"""\W{0,3}(?:(?:I['’]?m|I\ am)\s+(?:sorry|unable|not\ able)|sorry\b|unfortunately
        |as\ an?\ (?:AI|language\ model)
        |I\s+(?:can\s?not|can['’]?t|could\ not|do\ not|don['’]?t)\b)""",
    re.IGNORECASE | re.VERBOSE,
)
"""How a model begins that does not answer."""


class Unreadable(ValueError):
    """A reply that does not hold what was asked for; its text says why, for the model to read."""


def read(text: str, kind: type[M], question: Question | None = None, *, cut: bool = False) -> M:
    """The reply in a text, or :class:`Unreadable` with the reason.

    ``cut`` says that the text has lost its end.
    """
    if not text.strip():
        raise Unreadable("the reply was empty")
    fields = Fields(kind, question, cut=cut)
    try:
        candidates, prose = _candidates(text.strip(), fields)
    except NotJson as error:
        raise Unreadable(f"the reply holds a JSON object that cannot be read: {error}") from error
    except Contradiction as error:
        raise Unreadable(f"the reply contradicts itself: {error}") from error
    value: M = _agreed(candidates, fields)
    _check_prose(prose, value, fields)
    return value


def glean(text: str, kind: type[BaseModel], question: Question | None = None) -> Object:
    """The fields of a reply that lacks others; none where what it holds is invalid."""
    fields = Fields(kind, question, cut=True)
    try:
        candidates, _ = _candidates(text.strip(), fields)
    except (NotJson, Contradiction):
        return {}
    return fields.valid_parts(candidates[0]) if len(candidates) == 1 else {}


def assemble(members: Mapping[str, Any], kind: type[M], question: Question | None = None) -> M:
    """A reply from fields that were read one by one, or :class:`Unreadable`."""
    value: M = _agreed([dict(members)], Fields(kind, question))
    return value


def explain(error: ValidationError) -> str:
    """What is wrong with a reply, one line per field."""
    lines = []
    for problem in error.errors(include_url=False, include_input=False)[:5]:
        where = ".".join(str(step) for step in problem["loc"]) or "reply"
        lines.append(f"{where}: {problem['msg'].removeprefix('Value error, ')}")
    return "\n".join(lines)


def _candidates(text: str, fields: Fields) -> tuple[list[Object], str]:
    """The objects that may be the reply, and the prose around them."""
    text = _unquoted(text, fields)
    found = _json_in(text, fields)
    if found:
        # a fence is no sign of being meant: a reply that quotes a film can fence what it shows
        outside = _outside(text, found)
        if any(map(fields.labels, outside)):
            raise Contradiction("an object stands among fields that are given otherwise")
        return _unwrapped(found, fields), "\n".join(outside)
    members = _labelled(text, fields)
    if members is None and _DECLINES.match(text) is None:
        members = fields.bare(text)
    return [members] if members is not None else [], text


def _unquoted(text: str, fields: Fields) -> str:
    """A text without the code fence, the quotes or the brackets that are around all of it."""
    fence = _FENCED.fullmatch(text)
    if fence and "```" not in fence.group(1):
        text = fence.group(1).strip()
    if not text.startswith(('"', "[")):
        return text
    try:
        value = parse(text)
    except NotJson:
        return text
    if isinstance(value, list) and len(value) == 1 and not fields.sole_list:
        value = value[0]
    return value.strip() if isinstance(value, str) else text


def _json_in(text: str, fields: Fields) -> list[Found]:
    """The JSON in a text: objects, or lists where the only decisive field is one."""
    found = objects(text)
    if not fields.sole_list or any(_holds_list(one.value, fields) for one in found):
        return found
    return [one for one in lists(text) if one.value]


def _holds_list(value: Object, fields: Fields) -> bool:
    """Whether an object holds the field that is a list, under whatever name."""
    inside = fields.unwrapped(value)
    parts = [part for one in inside for part in one.values() if isinstance(part, list)]
    return len(parts) == 1 or any(map(fields.named_in, inside))


def _unwrapped(found: Sequence[Found], fields: Fields) -> list[Object]:
    candidates: list[Object] = []
    for one in found:
        if isinstance(one.value, list) and fields.sole_list:
            candidates.append({fields.sole_list: one.value})
        else:
            candidates += fields.unwrapped(one.value)
    return candidates


def _outside(text: str, found: Sequence[Found]) -> list[str]:
    """The prose before, between and after the JSON in a text."""
    pieces, at = [], 0
    for one in found:
        # "Answer:" right before an object announces it
        pieces.append(re.sub(r"\s*(?:```\w*\s*)?$", "", text[at : one.start]))
        at = one.end
    return [*pieces, text[at:]]


def _labelled(text: str, fields: Fields) -> Object | None:
    """What labelled lines, tags and tables say, where they name every decisive field."""
    if fields.cut and not fields.sole_text:
        # later lines may be part of a text whose end is lost
        first, line_break, _ = text.partition("\n")
        text = first if line_break else ""
    members = labelled_values(text, fields.resolve)
    return members if members.keys() >= {*fields.needed} else None


def _agreed(candidates: Sequence[Object], fields: Fields) -> Any:
    """The one reply that all readable candidates give."""
    fits: dict[tuple[Any, ...], Any] = {}
    problem = "the reply holds no JSON object"
    for candidate in candidates:
        try:
            value, dropped = fields.validate(candidate)
        except ValidationError as error:
            problem = explain(error)
            continue
        except ValueError as error:
            problem = str(error)
            continue
        if dropped:
            events.note("entries_dropped", entries=dropped)
        fits.setdefault(_decisive_values(value, fields), value)
    if len(fits) > 1:
        raise Unreadable(f"the reply holds {len(fits)} different answers; give exactly one")
    if not fits:
        raise Unreadable(problem)
    return next(iter(fits.values()))


def _decisive_values(value: BaseModel, fields: Fields) -> tuple[Any, ...]:
    """What two readings must share to be the same; wording apart where it is a text."""
    values = [getattr(value, name) for name in fields.needed]
    return tuple(plain(one) if isinstance(one, str) else repr(one) for one in values)


def _check_prose(prose: str, value: BaseModel, fields: Fields) -> None:
    """Refuse a reply whose prose announces another letter than its fields do."""
    if fields.question is None or not fields.letters:
        return
    letters = {getattr(value, name) for name in letter_fields(fields.kind)}
    stated = stated_letters(prose, fields.question) | set(_LABELLED.findall(prose))
    if letters and stated - letters:
        raise Unreadable("the reply announces more than one answer; give exactly one")
