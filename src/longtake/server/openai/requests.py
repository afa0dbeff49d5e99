"""Reads requests of OpenAI's protocol: the question, what it is about, and its limits.

Multiple-choice questions are recognised in the prompts that harnesses write::

    Select the best answer to the following question …    instruction, left out
    What is on the table?                                 the question
    A. a cup                                              options: "A.", "(A)", "A)", "1.", "-",
    B. a hat                                              (A) … (B) … on one line, or one a line
    The best answer is:                                   after "Options:"

Only known instructions are left out; other text around the options stays part of the question. A
prompt in which no options are recognised is asked as it is, open-ended.
"""

from __future__ import annotations

import json
import re
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, takewhile
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, ValidationError

from longtake._util.timecode import SHORT_CLOCK, parse_time
from longtake.config import BudgetSettings
from longtake.errors import ConfigError, check_limit, unknown

MAX_OPTIONS = len(string.ascii_uppercase)
_NUMBERS = tuple(str(number) for number in range(1, MAX_OPTIONS + 1))
_LABELLED = re.compile(
    r"\s*(?:(?:\(([A-Z])\)|([A-Z])\s?[.):])\s*|(?:\((\d{1,2})\)|(\d{1,2})[.)])\s+)(\S.*?)\s*$"
)
_BULLET = re.compile(r"^\s*[-*•]\s+")
_HEADER = re.compile(r"\s*(?:possible |answer )?(?:options?|choices|candidates)\s*:\s*$", re.I)
_INLINE = re.compile(r"\(([A-Z])\)\s*")
_QUESTION = re.compile(r"^\s*question\s*:\s*", re.I)
_SUBTITLES = re.compile(
    r"this video's subtitles are listed below\s*:\s*(.*?)(?=^select the best answer|\Z)",
    re.I | re.S | re.M,
)
_INSTRUCTION = re.compile(
    r"""(?:these\ are\ the\ frames\ of\ a\ video
    |(?:please\ )?select\ the\ (?:best|correct)\ (?:answer|option)
    |(?:please\ )?(?:respond|answer|reply)\ with\ (?:only\ |just\ )?(?:the\ |a\ |an\ )?
        (?:option'?s?\b|letter|single|one)
    |(?:please\ )?(?:directly\ )?(?:give|choose|provide|output|pick)\ (?:only\ )?
        (?:the\ )?(?:best|correct|right|letter)
    |only\ give\ the\ best\ option
    |(?:carefully\ )?watch\ (?:this|the)\ video
    |based\ on\ your\ observations,?\ select
    |the\ (?:best|correct|final)?\ ?answer\ is\s*:?\s*$
    |(?:best\ option|your\ (?:answer|choice)|answer|best\ answer)\s*:\s*\(?\s*$
    |answer\ the\ question\ (?:with|using|by)
    |you\ are\ an?\ (?:helpful|expert)\b[^\n]{0,80}assistant
    |(?:you\ (?:should|must)\ )?(?:do\ not|don't)\ (?:give|output|include|explain)\b
    )""",
    re.IGNORECASE | re.VERBOSE,
)
"""The beginning of a sentence about the form of the answer."""
_SENTENCE = re.compile(r"(?<=[.!])\s+(?=[A-Z])")


@dataclass(frozen=True)
class ParsedQuestion:
    """A question, and its options if there are any."""

    text: str
    options: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    """What the client calls the options; empty if they have no names, or there are none."""
    material: str = ""
    """Subtitles that the prompt contained."""

    @property
    def form(self) -> str:
        """``multiple choice`` or ``open-ended``."""
        return "multiple choice" if self.options else "open-ended"

    def reply_text(self, choice: str | None, text: str) -> str:
        """The answer in the client's form: the label of the option, else its text."""
        if choice is None or not self.options:
            return text
        number = string.ascii_uppercase.index(choice)
        return self.labels[number] if self.labels else self.options[number]


def read_question(prompt: str) -> ParsedQuestion:
    """Read the question and its options from a prompt."""
    material = ""
    subtitles = _SUBTITLES.search(prompt)
    if subtitles:
        material = subtitles[1].strip()
        prompt = prompt[: subtitles.start()] + prompt[subtitles.end() :]
    lines = prompt.splitlines()
    # the most explicit form first
    block = _labelled(lines) or _headed(lines) or _inline(lines)
    if block is None:
        return ParsedQuestion(without_instructions(prompt), material=material)
    before, after = lines[: block.start], lines[block.end :]
    if before and _HEADER.match(before[-1]):
        before = before[:-1]
    text = without_instructions("\n".join([*before, *block.rest, *after]))
    # options alone are no question
    if not text:
        return ParsedQuestion(prompt.strip(), material=material)
    return ParsedQuestion(text, tuple(block.options), tuple(block.labels), material)


def without_instructions(text: str) -> str:
    """The text without sentences about the form of the answer."""
    kept = []
    for line in text.splitlines():
        sentences = [s for s in _SENTENCE.split(line) if not _INSTRUCTION.match(s.strip())]
        if sentences or not line.strip():
            kept.append(" ".join(sentences))
    joined = _QUESTION.sub("", "\n".join(kept).strip())
    return re.sub(r"\n{3,}", "\n\n", joined).strip()


@dataclass(frozen=True)
class _Block:
    """Lines that are options."""

    start: int
    end: int
    options: Sequence[str]
    labels: Sequence[str]
    rest: Sequence[str] = ()
    """Other text in these lines."""


def _labelled(lines: Sequence[str]) -> _Block | None:
    """The last run of lines with consecutive letters or numbers, blank lines aside."""
    best, start = None, 0
    options: list[str] = []
    names: Sequence[str] = ()
    for number, line in enumerate(lines):
        if options and not line.strip():
            continue
        match = _LABELLED.match(line)
        *labels, text = match.groups() if match else ("", "")
        label = "".join(filter(None, labels))
        # a question may contain a numbered list before the options
        if label in ("A", "1"):
            options, start = [], number
            names = string.ascii_uppercase if label == "A" else _NUMBERS
        # text between the options ends the run
        options = [*options, text] if label and label in names[len(options) :][:1] else []
        # a single labelled line is an item of a list, not an option
        if len(options) > 1:
            best = _Block(start, number + 1, tuple(options), names[: len(options)])
    return best


def _headed(lines: Sequence[str]) -> _Block | None:
    """Options without names, one a line, after a line such as ``Options:``."""
    for start, line in enumerate(lines):
        if not _HEADER.match(line):
            continue
        listed = list(takewhile(_is_option, lines[start + 1 :]))
        if 2 <= len(listed) <= MAX_OPTIONS:
            options = [_BULLET.sub("", line).strip() for line in listed]
            return _Block(start, start + 1 + len(listed), options, ())
    return None


def _is_option(line: str) -> bool:
    return bool(line.strip()) and not _INSTRUCTION.match(line)


def _inline(lines: Sequence[str]) -> _Block | None:
    """``(A) a cup (B) a hat`` on one line, perhaps after the question."""
    for number, line in enumerate(lines):
        marks = list(_INLINE.finditer(line))
        letters = "".join(mark[1] for mark in marks)
        if len(marks) < 2 or not string.ascii_uppercase.startswith(letters):
            continue
        ends = [mark.start() for mark in marks[1:]] + [len(line)]
        spans = zip(marks, ends, strict=True)
        options = [line[mark.end() : end].strip().rstrip(",;") for mark, end in spans]
        before = line[: marks[0].start()].strip()
        # "does he take (A) or (B)?" has no options
        worded = all(re.search(r"\w", option) for option in options)
        if worded and (not before or before[-1] in "?.:!"):
            return _Block(number, number + 1, options, letters, [before])
    return None


PREFIX = "longtake/"
"""Prefix of the names of our models."""
MAX_FRAMES = 4096
MAX_SECONDS = 1e7
"""Latest time of a picture, four months: it bounds what is computed for every second."""
_FILM = re.compile(r'(?<!\w)film:(?:"([^"\n]+)"|(\S+?))(?=[.,;:!?)\]]*(?:\s|$))')
_TIME = re.compile(
    rf"(?P<clock>{SHORT_CLOCK})|(?P<seconds>\d+(?:\.\d+)?)\s*(?:s|sec|secs|second|seconds)\b", re.I
)
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_LABEL = 80
"""Characters before a picture that may hold its time."""
# not ignored, because they would change the reply
_REFUSED = ("tools", "functions", "logprobs", "audio", "prediction", "web_search_options")


class BadRequest(ConfigError):
    """The request is invalid; ``key`` names the parameter."""


@dataclass(frozen=True)
class SentVideo:
    """A film by address: ``file:``, ``data:``, ``http:`` or ``https:``."""

    url: str


@dataclass(frozen=True)
class NamedFilm:
    """A film by its name on the server."""

    name: str


@dataclass(frozen=True)
class SentFrames:
    """Pictures without a film."""

    urls: tuple[str, ...]
    """Data URLs."""
    times: tuple[float, ...] | None = None
    """Seconds, if the client sends them."""


Footage: TypeAlias = SentVideo | NamedFilm | SentFrames


@dataclass(frozen=True)
class FilmRequest:
    """What a client asks for."""

    model: str
    method: str
    asked: ParsedQuestion
    footage: Footage
    budget: BudgetSettings = field(default_factory=BudgetSettings)
    carried: str = ""
    """Earlier turns, and subtitles in the prompt."""
    models: tuple[str, ...] = ()
    seed: int = 0
    fresh: bool = False
    stream: bool = False
    usage_chunk: bool = False


def read_json(body: bytes) -> Any:
    """Parse a JSON body without NaN, infinities and lone surrogates."""

    def refuse_constant(name: str) -> None:
        raise BadRequest(f"the body is not JSON ({name})")

    try:
        data = json.loads(body, parse_constant=refuse_constant)
        # encoded only if an escape may be half a character, because a body may hold a film
        if _SURROGATE.search(body):
            json.dumps(data, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"the body is not JSON ({error})") from error
    return data


def read_request(body: Any, methods: Sequence[str]) -> FilmRequest:
    """Read a request body; ``methods`` are the names that models may have."""
    if not isinstance(body, dict):
        raise BadRequest("the body must be a JSON object")
    # first, so that a refused request costs little
    refuse(body, _REFUSED)
    shape = body.get("response_format")
    if shape is not None and (not isinstance(shape, dict) or shape.get("type") != "text"):
        raise BadRequest("response_format: only text is supported", key="response_format")
    model = body.get("model")
    if not isinstance(model, str) or not model:
        raise BadRequest("model: name one, such as longtake/videoagent", key="model")
    method, limits = read_model(model, methods)
    messages = _messages(body.get("messages"))
    question, carried = _turns(messages)
    if _FILM.search(question):
        question = re.sub(r"[ \t]{2,}", " ", _FILM.sub("", question, count=1)).strip()
    asked = read_question(question)
    if not asked.text:
        raise BadRequest("messages: the last user message asks nothing", key="messages")
    subtitles = f"subtitles: {asked.material}" if asked.material else ""
    seed = body.get("seed") or 0
    if not isinstance(seed, int):
        raise BadRequest("seed: must be an integer", key="seed")
    try:
        extras = Extras.model_validate(body.get("longtake") or {})
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(["longtake", *map(str, first["loc"])])
        raise BadRequest(f"{key}: {first['msg']}", key=key) from None
    return FilmRequest(
        model=model,
        method=method,
        asked=asked,
        footage=_footage(messages, body),
        budget=_strictest(limits, extras.budget),
        carried="\n".join(part for part in (carried, subtitles) if part),
        models=extras.models,
        seed=seed,
        fresh=extras.fresh,
        stream=bool(body.get("stream")),
        usage_chunk=bool((body.get("stream_options") or {}).get("include_usage")),
    )


def read_model(model: str, methods: Sequence[str]) -> tuple[str, dict[str, str]]:
    """Method and limits of ``longtake/videoagent:calls=20+cost=0.5``."""
    name, _, suffix = model.removeprefix(PREFIX).partition(":")
    if name not in methods:
        known = [PREFIX + method for method in methods]
        raise unknown("model", model, known)
    pieces = (piece.partition("=") for piece in re.split(r"[,;+\s]+", suffix) if piece)
    return name, {limit: value for limit, _, value in pieces}


def _strictest(*given: Mapping[str, Any]) -> BudgetSettings:
    """The lowest of each limit: the body cannot raise one that the model's name has."""
    known = {"cost": float, "tokens": int, "frames": int, "seconds": float, "calls": int}
    limits: dict[str, Any] = {}
    for name, value in chain.from_iterable(limits.items() for limits in given):
        # an ignored typing error would mean no limit
        if name not in known:
            raise unknown("limit", name, list(known))
        try:
            limit = float(str(value))
        except ValueError as error:
            raise BadRequest(f"{name}={value}: a limit must be a number", key=name) from error
        check_limit(name, limit)
        limits[name] = known[name](min(limit, limits.get(name, limit)))
    return BudgetSettings(**limits)


class Extras(BaseModel):
    """The ``longtake`` key of a request."""

    model_config = ConfigDict(extra="forbid")

    models: tuple[str, ...] = ()
    fresh: bool = False
    budget: dict[str, Any] = {}


def refuse(body: Mapping[str, Any], names: Sequence[str]) -> None:
    """Raise if a request has parameters that are not supported."""
    for name in names:
        if body.get(name):
            raise BadRequest(f"{name}: not supported", key=name)
    if body.get("n") not in (None, 1):
        raise BadRequest("n: only one answer is given", key="n")
    options = body.get("stream_options")
    if options is not None and not (isinstance(options, dict) and body.get("stream")):
        raise BadRequest("stream_options: only allowed together with stream", key="stream_options")


@dataclass(frozen=True)
class SentPart:
    """A part of a message."""

    kind: Literal["text", "image", "video"]
    text: str
    """The words, or the address."""


@dataclass(frozen=True)
class _Turn:
    role: str
    parts: tuple[SentPart, ...]

    @property
    def text(self) -> str:
        return "\n".join(part.text for part in self.parts if part.kind == "text").strip()


def _messages(messages: Any) -> list[_Turn]:
    turns = []
    for message in read_messages(messages):
        role = message.get("role")
        if role not in ("system", "developer", "user", "assistant"):
            raise BadRequest(f"messages: role {role!r} is not supported", key="messages")
        turns.append(_Turn(role, tuple(read_parts(message.get("content")))))
    if turns[-1].role != "user":
        raise BadRequest("messages: the last one must be the user's", key="messages")
    return turns


def read_messages(messages: Any) -> list[dict[str, Any]]:
    """The messages of a request."""
    if not isinstance(messages, list) or not messages:
        raise BadRequest("messages: must be a list with at least one message", key="messages")
    if not all(isinstance(message, dict) for message in messages):
        raise BadRequest("messages: each must be an object", key="messages")
    return messages


def read_parts(content: Any) -> list[SentPart]:
    """The parts of a message's content."""
    # an assistant message that only called tools has no content
    if content is None:
        return []
    if isinstance(content, str):
        return [SentPart("text", content)]
    if not isinstance(content, list):
        raise BadRequest("content: must be text or a list of parts", key="messages")
    return [_part(part) for part in content]


def _part(part: Any) -> SentPart:
    kind = part.get("type") if isinstance(part, dict) else None
    if kind == "text":
        return SentPart("text", str(part.get("text") or ""))
    if kind in ("image_url", "video_url"):
        given = part.get(kind)
        # an object with the URL and extras such as nframes and fps, or the URL itself
        url = given.get("url") if isinstance(given, dict) else given
        if not isinstance(url, str) or not url:
            raise BadRequest(f"{kind}: an address is missing", key="messages")
        return SentPart("image" if kind == "image_url" else "video", url)
    raise BadRequest(f"content: parts of type {kind!r} are not supported", key="messages")


def _turns(turns: Sequence[_Turn]) -> tuple[str, str]:
    """The question, and the conversation that it continues."""
    # only the last message asks
    *earlier, last = turns
    lines = []
    for turn in earlier:
        text = turn.text
        # harnesses use it only for the form of the answer
        if turn.role in ("system", "developer"):
            text = without_instructions(text)
        if text:
            lines.append(f"{turn.role}: {_FILM.sub('', text).strip()}")
    pictured = any(part.kind == "image" for part in last.parts)
    return (_untimed(last) if pictured else last.text), "\n".join(lines)


def _untimed(turn: _Turn) -> str:
    """The text of a turn without the labels that give the times of its pictures."""
    kept = []
    following = [*turn.parts[1:], None]
    for part, after in zip(turn.parts, following, strict=True):
        labels = after is not None and after.kind == "image" and _time_in(part) is not None
        if part.kind == "text" and not (labels and len(part.text) <= _LABEL):
            kept.append(part.text)
    return "\n".join(kept).strip()


def _footage(turns: Sequence[_Turn], body: Mapping[str, Any]) -> Footage:
    """What the question is about: the last video or pictures, or else a film's name."""
    for turn in reversed(turns):
        videos = [part.text for part in turn.parts if part.kind == "video"]
        images = [part for part in turn.parts if part.kind == "image"]
        if len(videos) > 1:
            raise BadRequest("messages: send one film per question", key="messages")
        if videos and images:
            raise BadRequest("messages: send a film or pictures, not both", key="messages")
        if videos:
            return _video(videos[0], body)
        if images:
            return SentFrames(tuple(part.text for part in images), _checked_times(_times(turn)))
    # an earlier turn may have named it
    for turn in reversed(turns):
        match = _FILM.search(turn.text)
        if match is not None:
            return NamedFilm(match[1] or match[2])
    raise BadRequest(
        "messages: no film; send a video_url part, or write film:NAME in the text", key="messages"
    )


def listed_frames(url: str) -> tuple[str, ...]:
    """The pictures of a ``data:video/jpeg`` URL, vLLM's list of frames; else none."""
    head, _, data = url.partition(",")
    if not head.startswith("data:video/jpeg"):
        return ()
    # vLLM puts the base64 of all frames into one URL, with commas between them
    pictures = data.split(",")
    if len(pictures) > MAX_FRAMES:
        raise BadRequest(f"video_url: more than {MAX_FRAMES} frames", key="messages")
    return tuple(f"data:image/jpeg;base64,{picture}" for picture in pictures)


def _video(url: str, body: Mapping[str, Any]) -> Footage:
    urls = listed_frames(url)
    if not urls:
        return SentVideo(url)
    how = body.get("media_io_kwargs")
    video = how.get("video") if isinstance(how, dict) else None
    times = frame_times(len(urls), video if isinstance(video, dict) else {})
    return SentFrames(urls, _checked_times(times))


def frame_times(count: int, how: Mapping[str, Any]) -> tuple[float, ...] | None:
    """When frames were taken, as far as ``media_io_kwargs.video`` says."""
    fps, duration = _positive(how.get("fps")), _positive(how.get("duration"))
    numbers, total = how.get("frames_indices"), _positive(how.get("total_num_frames"))
    if isinstance(numbers, list) and len(numbers) == count:
        # clients send the rate, or the figures from which it follows
        rate = fps or (total / duration if total and duration else None)
        valid = all(isinstance(number, int) and 0 <= number < 1e12 for number in numbers)
        if rate and valid and sorted(set(numbers)) == numbers:
            return tuple(number / rate for number in numbers)
    if duration:
        return tuple(number * duration / count for number in range(count))
    return None


def _checked_times(times: tuple[float, ...] | None) -> tuple[float, ...] | None:
    if times and not times[-1] <= MAX_SECONDS:
        raise BadRequest(f"messages: a picture later than {MAX_SECONDS:g} s", key="messages")
    return times


def _positive(value: Any) -> float | None:
    # compared first, because an integer may be too large for a float
    return float(value) if isinstance(value, int | float) and 0 < value < 1e12 else None


def _times(turn: _Turn) -> tuple[float, ...] | None:
    """The times in the texts before the pictures, if every picture has one and they increase."""
    times: list[float] = []
    before: SentPart | None = None
    for part in turn.parts:
        if part.kind == "image":
            time = _time_in(before)
            if time is None or (times and time <= times[-1]):
                return None
            times.append(time)
        before = part
    return tuple(times)


def _time_in(part: SentPart | None) -> float | None:
    if part is None or part.kind != "text":
        return None
    matches = list(_TIME.finditer(part.text[-_LABEL:]))
    if not matches:
        return None
    match = matches[-1]
    if match["seconds"]:
        return float(match["seconds"])
    return parse_time(match["clock"])
