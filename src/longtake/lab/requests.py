"""Reads chat-completion requests; what the laboratory cannot do is refused, never ignored."""

from __future__ import annotations

import base64
import binascii
import io
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image as Picture
from PIL import UnidentifiedImageError

from longtake.algorithms import sampling
from longtake.errors import MediaError
from longtake.media.video import Video
from longtake.models.chat import Image, Message, Options, Part, Text, ToolCall, ToolSpec
from longtake.types import Frame

MAX_PIXELS = 16_000_000
"""Maximum size of a picture in pixels, checked before it is decoded."""
FRAMES = 32
"""Frames taken from a video for which a request names no number, as in vLLM."""
MOST_FRAMES = 256
ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
HONOURED = """
messages model stream stream_options max_tokens max_completion_tokens stop response_format
tools tool_choice logprobs top_logprobs media_io_kwargs
"""
# the same request always gets the same reply, so these have nothing to change
WITHOUT_EFFECT = """
temperature top_p top_k min_p seed presence_penalty frequency_penalty repetition_penalty user store
metadata parallel_tool_calls service_tier reasoning_effort mm_processor_kwargs safety_identifier
prompt_cache_key
"""
ACCEPTED = frozenset((HONOURED + WITHOUT_EFFECT).split())
"""Parameters that a request may have."""


class BadRequest(ValueError):
    """The request is invalid; the message is returned with status 400."""


@dataclass(frozen=True)
class Request:
    """What a client asks for."""

    messages: list[Message]
    options: Options
    most: int | None = None
    """Most tokens in the reply."""
    stream: bool = False
    usage_chunk: bool = False
    """Whether a stream ends with a chunk that holds the usage."""
    logprobs: bool = False
    top_logprobs: int = 0


def read_request(body: Mapping[str, Any]) -> Request:
    """The messages and options of a request."""
    _refuse(body)
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise BadRequest("messages: must be a list with at least one message")
    tools = tuple(_tool(tool) for tool in body.get("tools") or ())
    if body.get("tool_choice") == "none":
        tools = ()
    video = body.get("media_io_kwargs") or {}
    try:
        read = [_message(message, video.get("video") or {}) for message in messages]
    except (KeyError, TypeError, AttributeError) as error:
        raise BadRequest(f"malformed message: {type(error).__name__}: {error}") from error
    stop = body.get("stop") or ()
    stops = (stop,) if isinstance(stop, str) else tuple(str(word) for word in stop)
    options = Options(schema=_schema(body.get("response_format")), tools=tools, stop=stops)
    streams = body.get("stream_options") or {}
    return Request(
        read,
        options,
        _most(body),
        bool(body.get("stream")),
        bool(streams.get("include_usage")),
        bool(body.get("logprobs")),
        int(body.get("top_logprobs") or 0),
    )


def _refuse(body: Mapping[str, Any]) -> None:
    """Refuse what is not supported."""
    for name, value in body.items():
        if name not in ACCEPTED and not _neutral(name, value):
            raise BadRequest(f"{name}: not supported")
    if body.get("stream_options") is not None and not body.get("stream"):
        raise BadRequest("stream_options: only allowed together with stream")
    if not isinstance(body.get("stream_options") or {}, dict):
        raise BadRequest("stream_options: must be an object")
    if body.get("tool_choice") not in (None, "auto", "none"):
        raise BadRequest("tool_choice: only auto and none are supported")
    if not isinstance(body.get("media_io_kwargs") or {}, dict):
        raise BadRequest("media_io_kwargs: must be an object")
    top = body.get("top_logprobs")
    if top is not None and (not isinstance(top, int) or not 0 <= top <= 20):
        raise BadRequest("top_logprobs: must be between 0 and 20")
    if top and not body.get("logprobs"):
        raise BadRequest("top_logprobs: only allowed together with logprobs")


def _neutral(name: str, value: Any) -> bool:
    """Whether a parameter asks for nothing beyond what happens without it."""
    if name == "n":
        return value in (None, 1)
    if name == "modalities":
        return value in (None, ["text"])
    return value in (None, [], {}, False)


def _most(body: Mapping[str, Any]) -> int | None:
    """Most tokens of the reply, under its old name or its new one."""
    for name in ("max_completion_tokens", "max_tokens"):
        value = body.get(name)
        if value is None:
            continue
        if not isinstance(value, int) or value < 1:
            raise BadRequest(f"{name}: must be 1 or more")
        return value
    return None


def _schema(response_format: Any) -> Mapping[str, Any] | None:
    if response_format is None:
        return None
    kind = response_format.get("type") if isinstance(response_format, dict) else None
    if kind == "text":
        return None
    if kind != "json_schema":
        raise BadRequest("response_format: type must be text or json_schema")
    inner = response_format.get("json_schema")
    schema = inner.get("schema") if isinstance(inner, dict) else None
    if not isinstance(schema, dict):
        raise BadRequest("response_format: json_schema needs a schema")
    return schema


def _tool(tool: Any) -> ToolSpec:
    try:
        function = tool["function"]
        description = function.get("description", "")
        return ToolSpec(function["name"], description, function.get("parameters") or {})
    except (KeyError, TypeError, AttributeError) as error:
        raise BadRequest("tools: each tool needs a function with a name") from error


def _message(data: Mapping[str, Any], video: Mapping[str, Any]) -> Message:
    content = data.get("content")
    parts: list[Part] = []
    if isinstance(content, str):
        parts = [Text(content)]
    elif isinstance(content, list):
        for part in content:
            parts += _parts(part, video)
    calls = tuple(_call(call) for call in data.get("tool_calls") or ())
    role = data["role"]
    if role == "tool":
        return Message("tool", tuple(parts), calls, str(data.get("tool_call_id") or ""))
    if role not in ROLES:
        raise BadRequest(f"role: {role!r} is not one of {', '.join(ROLES)}, tool")
    return Message(ROLES[role], tuple(parts), calls)  # type: ignore[arg-type]


def _call(call: Mapping[str, Any]) -> ToolCall:
    function = call["function"]
    return ToolCall(str(call.get("id", "")), function["name"], function.get("arguments") or "{}")


def _parts(part: Mapping[str, Any], video: Mapping[str, Any]) -> list[Part]:
    kind = part.get("type")
    if kind == "text":
        return [Text(str(part["text"]))]
    if kind == "image_url":
        return [Image(_picture(_data(part, "image_url", "image/")[1]))]
    if kind == "video_url":
        head, data = _data(part, "video_url", "video/")
        return [Image(frame) for frame in _video(head, data, video)]
    raise BadRequest(f"content: type must be text, image_url or video_url, not {kind!r}")


def _data(part: Mapping[str, Any], key: str, kind: str) -> tuple[str, str]:
    """Head and body of a data URL."""
    given = part[key]
    url = given["url"] if isinstance(given, dict) else given
    head, comma, data = str(url).partition(",")
    if not head.startswith(f"data:{kind}") or not comma or not head.endswith(";base64"):
        raise BadRequest(f"{key}: only base64 data URLs are supported; nothing is fetched")
    return head, data


def _decoded(data: str, key: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except binascii.Error as error:
        raise BadRequest(f"{key}: not base64") from error


def _picture(data: str, time: float = 0.0) -> Frame:
    try:
        with Picture.open(io.BytesIO(base64.b64decode(data, validate=True))) as picture:
            if picture.width * picture.height > MAX_PIXELS:
                raise BadRequest(f"image_url: {picture.width}×{picture.height} is too large")
            pixels = np.asarray(picture.convert("RGB"))
    except (binascii.Error, UnidentifiedImageError, OSError) as error:
        raise BadRequest("image_url: not a picture") from error
    return Frame(time, pixels)


def _video(head: str, data: str, how: Mapping[str, Any]) -> list[Frame]:
    """Frames of a video; ``data:video/jpeg`` is a list of pictures, as vLLM sends it."""
    if head.startswith("data:video/jpeg"):
        listed = data.split(",")
        if len(listed) > MOST_FRAMES:
            raise BadRequest(f"video_url: more than {MOST_FRAMES} frames")
        return [_picture(each, float(number)) for number, each in enumerate(listed)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "video"
        path.write_bytes(_decoded(data, "video_url"))
        try:
            video = Video(path)
            rate = float(how.get("fps") or 1.0)
            grid = video.grid(min(rate, 30.0))
            count = int(how.get("num_frames") or (len(grid) if how.get("fps") else FRAMES))
            if not 1 <= count <= MOST_FRAMES:
                raise BadRequest(f"media_io_kwargs: 1 to {MOST_FRAMES} frames, not {count}")
            chosen = sampling.uniform(len(grid), min(count, len(grid)))
            return video.at(grid[chosen].tolist())
        except (MediaError, ValueError) as error:
            raise BadRequest(
                f"video_url: not a video ({error})".replace(str(path), "it")
            ) from error
