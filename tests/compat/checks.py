"""What is asked of a running server."""

import tempfile
from collections.abc import Callable, Iterator

import numpy as np
from pydantic import BaseModel

from longtake.config import CacheSettings, Settings
from longtake.errors import ModelError
from longtake.llm.capabilities import capabilities_of
from longtake.llm.catalog import ModelCatalog
from longtake.llm.chat import Chat, Image, Options, ToolSpec, Unavailable, Unsupported, say
from longtake.llm.probe import probe
from longtake.llm.structured.ask import ask
from longtake.llm.structured.schema import Letter
from longtake.types import Frame, Question

QUESTION = Question("Who barks?", ("the man", "the dog"))


class Guess(BaseModel):
    """A form with an optional field."""

    reason: str = ""
    choice: Letter = None


def asked(chat: Chat) -> str:
    """A typed question; a tiny model may fail to answer, but the server must not fail."""
    told = {"question": QUESTION, "manner": "", "max_tokens": 64}
    said = ask(chat, "baselines/blind", Guess, default=None, **told)
    capabilities = capabilities_of(chat)
    assert capabilities is not None
    result = "read" if said else "not readable"
    return f"{result}, refused: {capabilities.known.refused}"


def letters(chat: Chat) -> str:
    """One letter by log-probability; what a tiny model makes of it is another matter."""
    options = Options(max_tokens=1, letters=("A", "B"))
    odds = chat.complete([say("user", "A or B? Reply with the letter only.")], options).odds
    told = {letter: round(value, 3) for letter, value in odds.items()}
    return f"told {told}" if odds else "not told"


def tools(chat: Chat) -> str:
    """A tool that may be called."""
    look = ToolSpec("look", "Looks.", {"type": "object", "properties": {"at": {"type": "string"}}})
    try:
        reply = chat.complete([say("user", "Look.")], Options(max_tokens=16, tools=(look,)))
    except Unsupported:
        return "refused, and asked in words"
    return f"accepted, {len(reply.tool_calls)} calls"


def too_long(chat: Chat) -> str:
    """A prompt that is longer than the context."""
    words = 2 * (chat.card.context or 2500)
    try:
        chat.complete([say("user", "word " * words)], Options(max_tokens=8))
    except Unavailable as error:
        return f"FAILED: retried ({error})"
    except ModelError as error:
        return error.problem
    return "accepted, and cut by the server"


def usage(chat: Chat) -> str:
    """What the server says it used."""
    used = chat.complete([say("user", "Hello?")], Options(max_tokens=8)).usage
    return f"{used.tokens_in} in, {used.tokens_out} out"


def pictures(chat: Chat) -> str:
    """How a prompt grows with a picture."""
    picture = Image(Frame(0.0, np.full((56, 56, 3), 90, np.uint8)))
    try:
        plain, shown = (
            chat.complete([say("user", *parts, "Which colour?")], Options(max_tokens=8)).usage
            for parts in ((), (picture,))
        )
    except ModelError as error:
        return f"refused: {error.detail[:80]}"
    grown = shown.tokens_in - plain.tokens_in
    return f"{grown} tokens for a picture" if grown > 0 else "accepted, and left out by the server"


def probed(chat: Chat) -> str:
    """What ``models probe`` reports."""
    report = probe(chat)
    if not report.reachable:
        return f"FAILED: {report.problem}"
    dropped = " (pictures are left out)" if report.drops_pictures else ""
    return f"schema {report.json_schema}, vision {report.vision}{dropped}, context {report.context}"


CHECKS: dict[str, Callable[[Chat], str]] = {
    "typed": asked,
    "letters": letters,
    "tools": tools,
    "usage": usage,
    "too long": too_long,
    "pictures": pictures,
    "probe": probed,
}


def check(address: str) -> Iterator[tuple[str, str]]:
    """What came of each check, one after another."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(cache=CacheSettings(folder=folder))
        chat = ModelCatalog(settings).bare(address)
        for name, step in CHECKS.items():
            try:
                yield name, step(chat)
            except ModelError as error:
                yield name, f"FAILED: {str(error)[:300]}"
