"""What a model and its server support, learned once and remembered, and which models are small.

A server takes a feature or refuses it: a schema, a temperature, log-probabilities. A small model
reads slowly on the machines it runs on, loses the thread in long prompts, and is always sure of
itself; methods have a preset ``small`` for such models, which is used unless another is named.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from filelock import FileLock

from longtake._util import write_atomically
from longtake.llm.chat import Card
from longtake.tracing import events

SMALL_CONTEXT = 4096
"""Models with at most this context are small."""
_SIZE = re.compile(r"(?<![A-Za-z0-9.])(\d{1,4}(?:\.\d{1,2})?)\s?([bBmM])(?![A-Za-z0-9])")


def why_small(card: Card, *, reading: float | None = None, enforced: bool = True) -> str:
    """Why a model counts as small; empty if it does not.

    ``reading`` is its measured speed, ``enforced`` whether its server holds it to a form.
    """
    billions = parameters(card.model or card.name)
    # up to 4 billion parameters, models lose the thread in long prompts
    if billions is not None and billions <= 4.0:
        return f"{billions:g} billion parameters"
    # a large model that its server does not hold to a form needs twice the room for its replies
    max_context = SMALL_CONTEXT if enforced else 2 * SMALL_CONTEXT
    if card.context is not None and card.context <= max_context:
        return f"a context of {card.context} tokens"
    # at this measured speed a prompt of 6,000 tokens takes a minute
    if reading is not None and reading < 100.0:
        return f"it reads {reading:g} tokens per second"
    return ""


def parameters(name: str) -> float | None:
    """Billions of parameters, from a model's name: ``qwen2.5-1.5b-instruct`` has 1.5."""
    units = {"b": 1, "m": 1000}
    sizes = [float(number) / units[unit.lower()] for number, unit in _SIZE.findall(name)]
    # a name with several numbers, such as a mixture's, counts by its largest
    return max(sizes, default=None)


FILE = "capabilities.json"
REMEMBERED = 24 * 3600.0
"""Seconds for which what a server refused is remembered: it may be replaced by another."""


@dataclass
class KnownCapabilities:
    """What is known of one model on one endpoint."""

    refused: list[str] = field(default_factory=list)
    """Features that the server refuses: ``schema``, ``temperature``, ``tools``, ``video``, …"""
    context: int | None = None
    """The context length that the server reports."""
    vision: bool | None = None
    """``False`` if the server reports that the model sees nothing, or a probe found that."""
    letters: bool | None = None
    """Whether log-probabilities are offered."""
    reading: float | None = None
    """Prompt tokens per second, as probed."""
    writing: float | None = None
    """Reply tokens per second, as probed."""
    at: float = 0.0
    """When this was last changed."""

    def measured(self) -> KnownCapabilities:
        """What is a property of the model, and not forgotten with what is known of its server."""
        return KnownCapabilities(reading=self.reading, writing=self.writing)


class Capabilities:
    """What is known of one model on one endpoint; shared by threads, saved when it changes."""

    def __init__(
        self,
        known: KnownCapabilities | None = None,
        save: Callable[[KnownCapabilities], None] | None = None,
    ) -> None:
        self.known = known or KnownCapabilities()
        self._save = save
        self.images: int | None = None
        """Maximum pictures in a request."""
        self._video = "video_url"
        self._is_plain = False
        self._lock = threading.Lock()

    @property
    def video_part(self) -> str | None:
        """The part of a message that holds a video; ``None`` if it was refused."""
        return None if self.has_refused("video") else self._video

    def has_refused(self, feature: str) -> bool:
        """Whether the server refused a feature."""
        return feature in self.known.refused or (feature == "schema" and self._is_plain)

    def refuse(self, model: str, feature: str, why: str) -> None:
        """Leave a feature out from now on."""
        with self._lock:
            if feature in self.known.refused:
                return
            self.known.refused.append(feature)
            self._changed()
        events.note("left_out", model=model, feature=feature, why=why[:200])

    def learn(self, **values: Any) -> None:
        """Remember values of :class:`KnownCapabilities`."""
        with self._lock:
            if all(getattr(self.known, name) == value for name, value in values.items()):
                return
            for name, value in values.items():
                setattr(self.known, name, value)
            self._changed()

    def declare(self, *, images: int = 0, form: str = "", video: str = "") -> None:
        """Note what the model's entry says of its server; not saved."""
        self.images = images or None
        self._video = video or self._video
        self._is_plain = form == "plain"

    def forget(self) -> None:
        """Forget what the server refused, keeping what was measured of the model."""
        with self._lock:
            self.known = self.known.measured()
            self._changed()

    def _changed(self) -> None:
        self.known.at = time.time()
        if self._save is not None:
            self._save(self.known)


def capabilities_of(chat: object) -> Capabilities | None:
    """What is known of a model, through any layers around it; ``None`` if it has none."""
    found: Capabilities | None = getattr(chat, "capabilities", None)
    return found


def discover_capabilities(chat: object) -> None:
    """Ask a model's endpoint for its context length, unless that is known."""
    learn: Callable[[], None] | None = getattr(chat, "discover", None)
    if learn is not None:
        learn()


def card_with(card: Card, capabilities: Capabilities) -> Card:
    """A card with what is known of the model's endpoint."""
    known = capabilities.known
    with_context = replace(card, context=card.context or known.context)
    # only a probe tries everything; what one question learned must not change the next one's method
    enforced = known.reading is None or not capabilities.has_refused("schema")
    return replace(
        with_context,
        small=why_small(with_context, reading=known.reading, enforced=enforced),
        vision=False if known.vision is False else card.vision,
        letters=known.letters is not False,
    )


_discovered: dict[tuple[Path, str], Capabilities] = {}
_discovered_lock = threading.Lock()


def remembered(folder: Path, key: str) -> Capabilities:
    """What is known of a model on an endpoint, shared in this process and kept in a folder."""
    with _discovered_lock:
        if (folder, key) not in _discovered:
            known = _fresh(_read(folder).get(key))
            _discovered[folder, key] = Capabilities(known, partial(_save, folder, key))
        return _discovered[folder, key]


def _fresh(plain: Any) -> KnownCapabilities:
    """What a file remembers, without what is too old to be believed."""
    if not isinstance(plain, Mapping):
        return KnownCapabilities()
    # a file of another version may have other fields
    names = {one.name for one in fields(KnownCapabilities)}
    known = KnownCapabilities(**{name: value for name, value in plain.items() if name in names})
    return known if time.time() - known.at < REMEMBERED else known.measured()


def _read(folder: Path) -> dict[str, Any]:
    try:
        data = json.loads((folder / FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}  # missing or damaged: everything is learned anew
    return data if isinstance(data, dict) else {}


def _save(folder: Path, key: str, known: KnownCapabilities) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        # another process may be learning at the same time
        with FileLock(folder / f"{FILE}.lock", timeout=5, mode=0o600):
            data = {**_read(folder), key: asdict(known)}
            write_atomically(folder / FILE, json.dumps(data, indent=1).encode())
    except OSError as error:  # a lock's Timeout is one too
        events.note("cache_failed", file=str(folder / FILE), error=str(error))
