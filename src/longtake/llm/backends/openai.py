"""Any server that speaks the OpenAI chat-completions protocol.

Servers differ in what they accept. A feature that a server refuses (a schema, a temperature, a
seed) is left out from then on, with an event: it is tried once and remembered
(:mod:`longtake.llm.capabilities`).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from longtake.config.entries import ModelEntry, OpenAIEntry
from longtake.errors import ConfigError, ModelError
from longtake.llm.backend import Backend, ModelRequest
from longtake.llm.budget import REAL, Clock, another_try
from longtake.llm.capabilities import Capabilities, card_with, remembered
from longtake.llm.catalog import bound_key
from longtake.llm.chat import Card, Chat, Message, Options, Reply, Unavailable, Unsupported, images
from longtake.llm.http import Endpoint, Response, check_url, is_loopback, redacted
from longtake.llm.openai_protocol import (
    LIKELY,
    REFUSALS,
    StreamedReply,
    estimated_usage,
    is_loading,
    read_reply,
    refused_feature,
    reported,
    show_as,
    wire_body,
)
from longtake.llm.structured.fit import measure, thin, without_clips
from longtake.tracing import events
from longtake.types import Usage

LOOPBACK_SECONDS = 900.0
"""A model on this machine may take this long for a reply: asking again would not be quicker."""


class OpenAIBackend(Backend[OpenAIEntry]):
    """Models on OpenAI-compatible servers."""

    name = "openai"
    settings = OpenAIEntry

    def host(self, model: ModelRequest[OpenAIEntry]) -> str:
        """The server's host."""
        return check_url(model.name, _base_url(model), keyed=False).hostname or ""

    def open(self, model: ModelRequest[OpenAIEntry]) -> Chat:
        """The model, with the key that is bound to its server."""
        entry = model.entry
        self.check(model)
        base_url = _base_url(model)
        key_env = entry.api_key_env or bound_key(base_url, model.models.entries.values())
        endpoint = Endpoint(
            model.name, base_url, key_env=key_env, timeout=_timeout(entry, base_url)
        )
        card = model.card(model=entry.model or model.name, host=endpoint.host)
        capabilities = remembered(model.folder, f"{endpoint.url.geturl()}#{card.model}")
        capabilities.declare(images=entry.images, form=entry.form, video=entry.video)
        return OpenAIChat(card, endpoint, capabilities)

    def check(self, model: ModelRequest[OpenAIEntry]) -> None:
        """Reject an entry whose key is not there."""
        key_env = model.entry.api_key_env
        # a key that is only bound may be missing: many local servers need none
        if key_env and not os.environ.get(key_env):
            raise ConfigError(
                f"{model.name}: the environment variable {key_env} holds no key", key=key_env
            )

    def endpoint(self, model: ModelRequest[OpenAIEntry]) -> str:
        """Models of one server share its limit."""
        return model.entry.base_url

    def state(self, model: ModelRequest[OpenAIEntry]) -> str:
        """Where the key comes from."""
        return f"key from ${model.entry.api_key_env}" if model.entry.api_key_env else ""


def _timeout(entry: OpenAIEntry, base_url: str) -> float:
    """Seconds for one try: more for a model on this machine, unless the entry sets them."""
    usual = ModelEntry().timeout
    here = is_loopback(check_url("", base_url, keyed=False).netloc)
    return LOOPBACK_SECONDS if here and entry.timeout == usual else entry.timeout


def _base_url(model: ModelRequest[OpenAIEntry]) -> str:
    key = f"models.{model.name}.base_url"
    if not model.entry.base_url:
        raise ConfigError(f"{key} is not set", key=key)
    return model.entry.base_url


class OpenAIChat:
    """A model behind an OpenAI-compatible endpoint."""

    def __init__(
        self,
        card: Card,
        endpoint: Endpoint,
        capabilities: Capabilities | None = None,
        *,
        clock: Clock = REAL,
    ) -> None:
        self._card = card
        self._endpoint = endpoint
        self.capabilities = capabilities or Capabilities()
        self._clock = clock
        self._counts = True
        self._discovered = False

    @property
    def card(self) -> Card:
        """What is known about it, including what its endpoint reported."""
        return card_with(self._card, self.capabilities)

    def complete(self, messages: Sequence[Message], options: Options) -> Reply:
        """Ask; a feature that the server refuses is left out from then on."""
        # tools cannot be left out: the caller has to describe them in words instead
        if options.tools and self.capabilities.has_refused("tools"):
            raise Unsupported(self._card.name, "tools")
        request = _Request(messages, options, began=self._clock.now())
        while True:
            request.messages = self._sendable(messages, request.max_images)
            body = wire_body(self._card, request.messages, options, self.capabilities)
            response, streamed = self._post(body, request)
            if response.status < 300:
                return self._reply(response, request, streamed)
            change = self._adapt(response, body, request)
            if change:
                another_try(change)

    def count(self, text: str) -> int | None:
        """Count tokens with the server's own tokenizer; llama.cpp and vLLM offer one."""
        if not self._counts:
            return None
        # llama.cpp reads "content", vLLM reads "prompt" and "model"
        body = {"content": text, "prompt": text, "model": self._model}
        try:
            response = self._endpoint.post("../tokenize", body, 10.0)
            answer = response.json() if response.status == 200 else None
        except ModelError:
            answer = None
        tokens = answer.get("tokens") if isinstance(answer, dict) else None
        if isinstance(tokens, list):
            return len(tokens)
        # no tokenizer here: asking again before every prompt would cost a request each time
        self._counts = False
        return None

    def discover(self) -> None:
        """Learn the context length, unless it is known or the server was asked before."""
        if self.card.context is not None or self._discovered:
            return
        self._discovered = True
        try:
            self.context()
        except ModelError as error:
            events.note("not_met", model=self._card.name, why=error.detail)

    def context(self) -> int | None:
        """The context length that the server reports, if it does."""
        found = reported(self._endpoint, self._model)
        self.capabilities.learn(**found)
        return found.get("context")

    @property
    def _model(self) -> str:
        return self._card.model or self._card.name

    def _left(self, request: _Request) -> float | None:
        deadline = request.options.deadline
        return None if deadline is None else deadline - (self._clock.now() - request.began)

    def _post(self, body: dict[str, Any], request: _Request) -> tuple[Response, StreamedReply]:
        """The response, and what was streamed of it, if the body asks for that."""
        on_text = request.options.on_text or (lambda _: None)
        hidden = partial(self._endpoint.redact, partial=True)
        streamed = StreamedReply(lambda text: on_text(hidden(text)))
        on_text("")  # an earlier try may have written something
        feed = streamed.feed if "stream" in body else None
        try:
            left = self._left(request)
            return self._endpoint.post("chat/completions", body, left, feed), streamed
        except Unavailable as error:
            # what the model wrote before the connection broke was not free
            if streamed.text:
                error.used = self._estimated(streamed.text, request)
            raise

    def _estimated(self, text: str, request: _Request) -> Usage:
        seconds = self._clock.now() - request.began
        return estimated_usage(self._card, request.messages, text, seconds)

    def _sendable(self, messages: Sequence[Message], max_fitting: int | None) -> Sequence[Message]:
        """The messages with as many pictures as the server takes and as are likely to fit."""
        if show_as(self._card, self.capabilities) == "pictures":
            messages = without_clips(messages)
        # known before sending, so a limit costs one refused request in all
        number = len(images(messages))
        if number and self.card.vision is False:
            raise ModelError(self._card.name, "refused", "the model takes no pictures")
        limits = (number, max_fitting, self.capabilities.images)
        limit = min(limit for limit in limits if limit is not None)
        if number <= limit:
            return messages
        events.note("pictures_left_out", model=self._card.name, shown=limit, wanted=number)
        return thin(messages, limit)

    def _reply(self, response: Response, request: _Request, streamed: StreamedReply) -> Reply:
        """The reply in a response."""
        seconds = self._clock.now() - request.began
        options = request.options
        try:
            whole = streamed.whole(self._card.name)
            data = response.json() if whole is None else redacted(whole, response.key)
            reply = read_reply(self.card, data, request.messages, seconds, options.letters)
        except Unavailable as error:
            # the model replied, so the try was not free, whatever became of the reply
            error.used = self._estimated(streamed.text or response.text, request)
            raise
        # the server can spread the key over parts that only join in the reply; before any of it is
        # quoted in an event
        hidden = self._endpoint.redact
        calls = [replace(call, arguments=hidden(call.arguments)) for call in reply.tool_calls]
        text, thinking = hidden(reply.text), hidden(reply.thinking)
        reply = replace(reply, text=text, thinking=thinking, tool_calls=tuple(calls))
        if options.letters:
            self._judge_letters(reply)
        return reply

    def _judge_letters(self, reply: Reply) -> None:
        """Remember whether letters can be asked for by log-probability."""
        offered = sum(reply.odds.values()) >= LIKELY
        if not offered and self.capabilities.known.letters is not False:
            events.note("letters_not_offered", model=self._card.name, odds=dict(reply.odds))
        self.capabilities.learn(letters=offered)

    def _adapt(self, response: Response, body: dict[str, Any], request: _Request) -> str:
        """Adapt the request to a refusal; return the change. Empty: only time had to pass."""
        status, text, name = response.status, response.text, self._card.name
        if is_loading(status, text):
            self._wait_for_loading(response, request)
            return ""
        failure = self._endpoint.failure(response)
        if failure.problem == "context":
            # a prompt that is too long stays so, whatever else the complaint names
            if not self._can_show_fewer(request):
                raise failure
            return "the pictures do not fit"
        shown = len(images(request.messages))
        is_video = show_as(self._card, self.capabilities) == self.capabilities.video_part
        feature = refused_feature(status, text, body)
        if feature is None and is_video and shown > 1 and status in REFUSALS:
            feature = "video"
        if feature is None or self.capabilities.has_refused(feature):
            if shown and failure.problem == "refused":
                limits = f"it was shown {shown} pictures, which 'images' in its entry limits"
                raise ModelError(name, "refused", f"{failure.detail}; {limits}") from failure
            raise failure
        self.capabilities.refuse(name, feature, text)
        if feature == "tools":
            raise Unsupported(name, "tools")
        return f"the server refuses {feature}"

    def _can_show_fewer(self, request: _Request) -> bool:
        """Whether a prompt whose text alone would fit shows pictures that can be left out."""
        context, number = self.card.context, len(images(request.messages))
        if context is None or number < 2:
            return False
        # servers differ in how many tokens a picture takes, so the number is found by trying
        request.max_images = number * 3 // 4
        return measure(self, thin(request.messages, 0)) < context

    def _wait_for_loading(self, response: Response, request: _Request) -> None:
        waited, left = self._clock.now() - request.began, self._left(request)
        # loading the largest models from a slow disk takes minutes
        if waited > 600.0:
            raise self._endpoint.failure(response)
        # a server may name any time: it is asked again after 20 s at the latest, as Retrying does
        pause = min(max(2.0, response.retry_after or 0.0), 20.0)
        if left is not None and left <= pause:
            detail = "the server was still loading the model"
            raise Unavailable(self._card.name, detail, status=503, out_of_time=True)
        if not request.waiting:
            events.note("loading", model=self._card.name, why=" ".join(response.text.split())[:200])
            request.waiting = True
        self._clock.sleep(pause)


@dataclass
class _Request:
    """One request, while it is adapted to what the server accepts."""

    messages: Sequence[Message]
    options: Options
    began: float
    waiting: bool = False
    max_images: int | None = None
    """The pictures that may fit, once more of them did not."""
