"""What a model wrote, read as a reply type.

Replies come as JSON, broken JSON, JSON wrapped in other JSON, lines, tags, tables, or as nothing
but the value that was asked for. All of these are read, under three rules:

- The decisive fields must be in the reply. An explanation that is missing is left empty; nothing
  else is filled in.
- Where a reply says a thing more than once, it must say the same each time. Which of two answers
  was meant is not guessed: a wrong reading is worse than none.
- What was cut off counts only as far as its missing end could not change it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from longtake import events
from longtake.models.replies.fields import Fields
from longtake.models.replies.forms import decisive, letter_fields
from longtake.models.replies.layouts import Contradiction, layouts
from longtake.models.replies.letters import plain, stated_letters
from longtake.models.replies.loose_json import NotJson, Parsed, lists, objects, parse
from longtake.types import Question, Segment

M = TypeVar("M", bound=BaseModel)

_FENCED = re.compile(r"```[\w-]*\s*\n(.*?)\n?\s*```", re.DOTALL)
_FIRST_KEY = re.compile(r"""^(?:"[\w -]{1,40}"|'[\w -]{1,40}')[ \t]*[:=]""", re.MULTILINE)
_LABELLED = re.compile(
    r"""\b(?:[Cc]hoice|[Aa]nswer|[Ll]etter)["'*_`]{0,3}[ \t]?[:=][\s"'*_`(]{0,4}([A-Z])\b"""
)
_DECLINES = re.compile(
    r"""\W{0,3}(?:
        (?:I['’]?m|I\ am|we\ are)\s+(?:very\s+)?(?:sorry|unable|not\ able)
        |sorry\b|unfortunately|as\ an?\ (?:AI|language\ model)
        |I\s+(?:can\s?not|can['’]?t|could\ not|couldn['’]?t|do\ not|don['’]?t)\b
    )""",
    re.IGNORECASE | re.VERBOSE,
)
"""How a model begins that does not answer."""


class Unreadable(ValueError):
    """A reply that does not hold what was asked for; its text says why, for the model to read."""


def read(
    text: str,
    kind: type[M],
    question: Question | None = None,
    *,
    cut: bool = False,
    numbered: Mapping[int, Segment] | None = None,
) -> M:
    """The reply in a text, or :class:`Unreadable` with the reason.

    ``cut`` says that the text has lost its end. ``numbered`` are the segments that the prompt
    lists, by which a reply may name one by its time.
    """
    if not text.strip():
        raise Unreadable("the reply was empty")
    fields = Fields(kind, question, numbered or {}, cut=cut)
    try:
        candidates, prose = _candidates(text.strip(), fields)
    except NotJson as error:
        raise Unreadable(f"the reply holds a JSON object that cannot be read: {error}") from error
    except Contradiction as error:
        raise Unreadable(f"the reply contradicts itself: {error}") from error
    value: M = _agreed(candidates, fields)
    _check_prose(prose, value, fields)
    return value


def glean(text: str, kind: type[BaseModel], question: Question | None = None) -> dict[str, Any]:
    """The fields of a reply that lacks others; none where what it holds is invalid."""
    fields = Fields(kind, question, {}, cut=True)
    try:
        candidates, _ = _candidates(text.strip(), fields)
    except (NotJson, Contradiction):
        return {}
    return fields.valid_parts(candidates[0]) if len(candidates) == 1 else {}


def assemble(members: Mapping[str, Any], kind: type[M], question: Question | None = None) -> M:
    """A reply from fields that were read one by one, or :class:`Unreadable`."""
    value: M = _agreed([Parsed(dict(members))], Fields(kind, question, {}))
    return value


def explain(error: ValidationError) -> str:
    """What is wrong with a reply, one line per field."""
    lines = []
    for problem in error.errors(include_url=False, include_input=False)[:5]:
        where = ".".join(str(step) for step in problem["loc"]) or "reply"
        lines.append(f"{where}: {problem['msg'].removeprefix('Value error, ')}")
    return "\n".join(lines)


def _candidates(text: str, fields: Fields) -> tuple[list[Parsed], str]:
    """The values that may be the reply, and the prose around them."""
    body = _only_block(text)
    try:
        whole = parse(body)
    except NotJson:
        whole = None
    if whole is not None and isinstance(whole.value, str) and "{" in whole.value:
        return _candidates(whole.value.strip(), fields)  # JSON inside a JSON string
    scalar = whole.value if whole is not None else None
    if isinstance(scalar, list) and len(scalar) == 1 and not fields.sole_list:
        scalar = scalar[0]  # ["B"]
    if isinstance(scalar, dict | list) and whole is not None:
        return list(_inside(whole, fields)), ""
    if isinstance(scalar, str):
        text = scalar.strip()
    elif isinstance(scalar, bool | int | float):
        text = body  # a value alone in a fence
    # a fence is no sign of being meant: a reply that quotes a film can fence what the film shows
    inside = list(objects(text))
    if not inside:
        inside = _without_brace(text, fields)
    if fields.sole_list and not any(fields.holds_list(parsed.value) for parsed in inside):
        inside = [parsed for parsed in lists(text) if parsed.value]
    if inside:
        candidates = [found for parsed in inside for found in _inside(parsed, fields)]
        outside = _outside(text, inside)
        laid_out = _laid_out(" ".join(outside), fields)
        # what quotes an object has a say too, and must be readable for that
        readable = all(_validated(parsed, fields, []) is not None for parsed in laid_out)
        if not readable or (not laid_out and any(map(fields.labels, outside))):
            raise Contradiction("an object stands among fields that are given otherwise")
        return [*(candidates or inside), *laid_out], "\n".join(outside)
    laid_out = _laid_out(text, fields)
    if laid_out:
        return laid_out, text
    bare = fields.bare(text)
    if bare is not None and _DECLINES.match(text) is None:
        return [Parsed(bare)], text
    return [], text


def _laid_out(text: str, fields: Fields) -> list[Parsed]:
    """What lines, tags and tables say, where they name every decisive field."""
    # in a cut reply, later lines may be part of a text whose end is lost
    first, line_break, _ = text.partition("\n")
    complete = text if not fields.cut or fields.sole_text else first if line_break else ""
    found = layouts(complete, fields.resolve_line)
    return [Parsed(members) for members in found if fields.sufficient(members)]


def _only_block(text: str) -> str:
    """The inside of a code fence where the text is nothing else."""
    match = _FENCED.fullmatch(text)
    return match.group(1).strip() if match and "```" not in match.group(1) else text


def _without_brace(text: str, fields: Fields) -> list[Parsed]:
    """Members of an object whose opening brace is missing."""
    key = _FIRST_KEY.search(text)
    if key is None:
        return []
    try:
        parsed = parse("{" + text[key.start() :])
    except NotJson:
        return []
    if not fields.names(parsed.value):
        return []
    return [Parsed(parsed.value, parsed.cut, key.start(), len(text))]


def _outside(text: str, inside: Sequence[Parsed]) -> list[str]:
    """The prose before, between and after the objects in a text."""
    pieces, at = [], 0
    for parsed in inside:
        # "Answer:" right before an object announces it
        pieces.append(re.sub(r"\s*(?:```\w*\s*)?$", "", text[at : parsed.start]))
        at = parsed.end
    return [*pieces, text[at:]]


def _inside(parsed: Parsed, fields: Fields) -> Iterator[Parsed]:
    """The objects with our fields in a JSON value: itself, or those that it wraps."""
    listed = isinstance(parsed.value, list) and not any(map(fields.names, parsed.value))
    if listed and fields.sole_list:
        cut = None if parsed.cut is None else (fields.sole_list, *parsed.cut)
        yield Parsed({fields.sole_list: parsed.value}, cut)
        return
    for value, path in fields.unwrapped(parsed.value):
        cut = parsed.cut
        if cut is not None:
            # a string that was cut off elsewhere does not concern this object
            cut = cut[len(path) :] if cut[: len(path)] == path else None
        yield Parsed(value, cut)


def _agreed(candidates: Sequence[Parsed], fields: Fields) -> Any:
    """The one reply that all readable candidates give."""
    fits: dict[tuple[Any, ...], Any] = {}
    problems: list[str] = []
    joined = _joined(candidates) if len(candidates) > 1 else None
    # of two objects, each may hold a part
    for parsed in [joined, *candidates] if joined else candidates:
        value = _validated(parsed, fields, problems)
        if value is not None:
            fits.setdefault(_decisive_values(value, fields), value)
    if len(fits) == 1:
        return next(iter(fits.values()))
    if fits:
        raise Unreadable(f"the reply holds {len(fits)} different answers; give exactly one")
    raise Unreadable(problems[-1] if problems else "the reply holds no JSON object")


def _validated(parsed: Parsed, fields: Fields, problems: list[str]) -> Any:
    """A candidate as the reply type, or ``None`` with its problem noted."""
    try:
        value, dropped = fields.validate(parsed)
    except ValidationError as error:
        problems.append(explain(error))
        return None
    except ValueError as error:
        problems.append(str(error))
        return None
    if dropped:
        events.note("entries_dropped", entries=dropped)
    return value


def _joined(candidates: Sequence[Parsed]) -> Parsed | None:
    """Objects without a key in common as one."""
    members: dict[str, Any] = {}
    for parsed in candidates:
        if not isinstance(parsed.value, dict) or members.keys() & parsed.value.keys():
            return None
        members |= parsed.value
    return Parsed(members, candidates[-1].cut)


def _decisive_values(value: BaseModel, fields: Fields) -> tuple[Any, ...]:
    """What two readings must share to be the same; wording apart where it is a text."""
    values = [getattr(value, name) for name in decisive(fields.kind, fields.question)]
    return tuple(plain(one) if isinstance(one, str) else repr(one) for one in values)


def _check_prose(prose: str, value: BaseModel, fields: Fields) -> None:
    """Refuse a reply whose prose announces another letter than its fields do."""
    question = fields.question
    if question is None or not question.options or not prose.strip():
        return
    letters = {getattr(value, name) for name in letter_fields(fields.kind)}
    stated = stated_letters(prose, question) | set(_LABELLED.findall(prose))
    if letters and stated - letters:
        raise Unreadable("the reply announces more than one answer; give exactly one")
