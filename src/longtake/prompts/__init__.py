"""Prompts: one Markdown file per step, with ``$slots``.

Prompts live beside the code that uses them: ``videoagent/predict`` is ``prompts/predict.md`` in the
package of the method VideoAgent, ``shared/reask`` lies here. A method from another package brings
its prompts the same way: ``prompts/look.md`` beside ``longtake_echo/method.py`` is
``longtake_echo/look``. See :func:`homes`.

A file is one user message; anything above a line ``---`` is the system message. The stable part
comes first (role, question, notes in time order) and the step's instruction last, so that prefix
caches serve most of the next prompt. ``$frames`` marks where pictures go.

A plain string in a slot is quoted as material, because almost all text comes from a film or from a
model that watched one. Only a :class:`Plain` string, a number and a
:class:`~longtake.types.Question` are inserted unquoted: forgetting to mark a text is safe.

A film can show any words, including words aimed at the model that watches it. Quoted material
contains no character from which a delimiter, a thinking block, a tool call tag or a chat template's
turn marker could be built (:func:`defuse`). Whatever a person could read stays readable.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from string import Template
from typing import Any

from longtake import registry
from longtake._util.timecode import clock
from longtake.errors import ConfigError, unknown
from longtake.tracing.events import note_once
from longtake.types import Line, Question, Segment

PHRASES_FILE = "phrases"
"""File name of an owner's phrases, without the suffix."""
_HEADING = re.compile(r"^## (\w+)[ \t]*$", re.MULTILINE)


@lru_cache(maxsize=64)
def split_phrases(text: str) -> Mapping[str, str]:
    """The phrases of a file by name; text above the first heading is a comment."""
    _, *parts = _HEADING.split(text)
    return {name: body.strip() for name, body in zip(parts[::2], parts[1::2], strict=True)}


SHARED = "shared"
"""Owner of the prompts that the steps of all methods use."""
LIBRARY = "library"
"""Owner of the prompts that concern many films."""
FRAMES = "frames"
_FRAMES_SLOT = re.compile(r"\$frames\b")
_folder: ContextVar[Path | None] = ContextVar("longtake_prompts", default=None)


class Plain(str):
    """Our own words, inserted into a prompt unquoted."""

    __slots__ = ()


@dataclass(frozen=True)
class Rendered:
    """A prompt with its slots filled; ``user`` has two parts if pictures go between them."""

    system: str
    user: tuple[str, ...]


@dataclass(frozen=True)
class Prompt:
    """A prompt file."""

    name: str
    text: str

    @property
    def digest(self) -> str:
        """Hash of the file's text, for the record of a run."""
        return hashlib.blake2b(self.text.encode(), digest_size=8).hexdigest()

    @property
    def slots(self) -> frozenset[str]:
        """The names of its slots, except ``$frames``."""
        return frozenset(Template(self.text).get_identifiers()) - {FRAMES}

    def render(self, **values: Any) -> Rendered:
        """The text with every slot filled; missing and unknown slots are errors."""
        if values.keys() != self.slots:
            problems = [f"${name} is not filled" for name in sorted(self.slots - values.keys())]
            problems += [f"${name} is no slot of it" for name in sorted(values.keys() - self.slots)]
            raise ConfigError(f"prompt {self.name}: {', '.join(problems)}", key=self.name)
        system, rule, user = self.text.rpartition("\n---\n")
        texts = {name: show(value, name) for name, value in values.items()}
        parts = _FRAMES_SLOT.split(user)
        if len(parts) > 2 or _FRAMES_SLOT.search(system):
            raise ConfigError(
                f"prompt {self.name}: $frames can stand once, below the line", key=self.name
            )
        return Rendered(
            Template(system if rule else "").substitute(texts).strip(),
            tuple(Template(part).substitute(texts).strip() for part in parts),
        )


def phrase(owner: str, name: str, /, **values: Any) -> str:
    """A short text from ``owner/phrases.md``, with its slots filled.

    Filled with our own words, numbers and times only, a phrase is :class:`Plain`. With any other
    text in it the result is an ordinary string, so that it is quoted as material in a prompt.
    """
    file = load(f"{owner}/{PHRASES_FILE}")
    known = split_phrases(file.text)
    if name not in known:
        raise unknown("phrase", name, known, where=file.name)
    template = Template(known[name])
    slots = template.get_identifiers()
    if values.keys() != set(slots):
        detail = f"the slots of {name} are {_slot_list(slots)}"
        raise ConfigError(f"prompt {file.name}: {detail}", key=file.name)
    filled = template.substitute({slot: words(value) for slot, value in values.items()})
    ours = all(isinstance(value, Plain | int | float | Segment) for value in values.values())
    return Plain(filled) if ours else filled


def load(name: str) -> Prompt:
    """The prompt ``method/step``; one in the folder set by :func:`override` takes precedence."""
    folder = _folder.get()
    if folder is not None and (folder / f"{name}.md").is_file():
        return _read(name, folder / f"{name}.md")
    return _shipped(name)


def overridden() -> bool:
    """Whether a folder set by :func:`override` may replace prompts."""
    return _folder.get() is not None


def names() -> list[str]:
    """Every prompt of the installed methods, and the shared ones."""
    return sorted(
        f"{owner}/{path.relative_to(home).with_suffix('').as_posix()}"
        for owner, home in homes().items()
        for path in home.rglob("*.md")
    )


def homes(only: str | None = None) -> dict[str, Path]:
    """The folder of each owner's prompts.

    A method's prompts lie in ``prompts/`` beside its module, and their owner is called like the
    package around that module (``longtake.methods.a4vl.method`` owns ``a4vl/…``), or like the
    module itself where there is no package around it. ``only`` looks up no other owner.
    """
    here = Path(__file__).parent
    homes_by_owner = {SHARED: here / SHARED, LIBRARY: here.parent / LIBRARY / "prompts"}
    for module in registry.methods.modules():
        # an owner is named like the module or the package around it: others need not be looked up
        if only is not None and only not in module.split(".")[-2:]:
            continue
        owner, home = _home(module)
        if home is None or not home.is_dir():
            continue
        if homes_by_owner.setdefault(owner, home) != home:
            raise ConfigError(
                f"two packages bring prompts called {owner}/…: {homes_by_owner[owner]} and {home}; "
                "rename one of the packages",
                key=owner,
            )
    return homes_by_owner


def _home(module: str) -> tuple[str, Path | None]:
    """The owner of a method module's prompts, and where they would be."""
    try:
        spec = find_spec(module)
    except Exception as error:  # noqa: BLE001 - a broken package must not take the others with it
        note_once("plug_in_skipped", module=module, why=f"{type(error).__name__}: {error}")
        return module, None
    if spec is None or spec.origin is None:
        return module, None
    is_package = spec.submodule_search_locations is not None
    package = module if is_package else module.rpartition(".")[0] or module
    return package.rpartition(".")[2], Path(spec.origin).parent / "prompts"


def digests(prefix: str = "") -> Mapping[str, str]:
    """Hashes of the prompts whose names begin with ``prefix``, as a run's spec records them."""
    return {name: load(name).digest for name in names() if name.startswith(prefix)}


@contextmanager
def override(folder: Path | None) -> Iterator[None]:
    """Use the prompts in ``folder`` instead of ours in this block; unknown names are rejected."""
    if folder is not None:
        if not folder.is_dir():
            raise ConfigError(f"--prompts {folder}: no such folder", key=str(folder))
        for path in folder.rglob("*.md"):
            name = path.relative_to(folder).with_suffix("").as_posix()
            if name not in names():
                raise unknown("prompt", name, names(), where=str(folder))
            theirs, ours = _read(name, path), _shipped(name)
            if theirs.slots != ours.slots:
                wanted = _slot_list(sorted(ours.slots))
                raise ConfigError(f"{path}: its slots must be {wanted}", key=name)
            _check_phrases(path, theirs, ours)
    token = _folder.set(folder)
    try:
        yield
    finally:
        _folder.reset(token)


def _check_phrases(path: Path, theirs: Prompt, ours: Prompt) -> None:
    """Reject a file of phrases that lacks one of ours, adds one, or changes its slots."""
    given, wanted = split_phrases(theirs.text), split_phrases(ours.text)
    if not ours.name.endswith(f"/{PHRASES_FILE}"):
        return
    if given.keys() != wanted.keys():
        raise ConfigError(f"{path}: its headings must be {', '.join(wanted)}", key=ours.name)
    for name, text in wanted.items():
        slots = Template(text).get_identifiers()
        if set(Template(given[name]).get_identifiers()) != set(slots):
            wanted_slots = _slot_list(slots)
            raise ConfigError(f"{path}: the slots of {name} must be {wanted_slots}", key=ours.name)


def _slot_list(slots: Iterable[str]) -> str:
    return ", ".join(f"${slot}" for slot in slots) or "none"


def show(value: Any, name: str) -> str:
    """A slot's value as text; plain strings are quoted as material called ``name``."""
    if isinstance(value, Question):
        return show_question(value)
    text = words(value)
    return text if isinstance(value, Plain | int | float | Segment) else quote(text, name)


def show_question(question: Question) -> str:
    """A question with its options, one per line, each after its letter."""
    options = [
        f"{letter}. {text}" for letter, text in zip(question.letters, question.options, strict=True)
    ]
    return "\n".join([question.text, *options])


def words(value: Any) -> str:
    """A value in words, not yet quoted: lists with one item per line, notes after their time."""
    if isinstance(value, str):
        return value
    if isinstance(value, Line):
        return f"[{clock(value.segment.start)}] {value.text}"
    if isinstance(value, Segment):
        return f"{clock(value.start)} to {clock(value.end)}"
    if isinstance(value, Mapping):
        return "\n".join(f"{key}: {words(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return "\n".join(words(item) for item in value)
    dump = getattr(value, "model_dump", None)  # a pydantic reply
    return json.dumps(dump(), ensure_ascii=False) if dump else str(value)


def _shipped(name: str) -> Prompt:
    """The prompt that its owner ships."""
    owner, _, step = name.partition("/")
    home = homes(owner).get(owner)
    if home is None or not (home / f"{step}.md").is_file():
        raise unknown("prompt", name, names())
    return _read_once(name, home / f"{step}.md")


@cache
def _read_once(name: str, path: Path) -> Prompt:
    """Shipped files do not change while the program runs; files that override them may."""
    return _read(name, path)


def _read(name: str, path: Path) -> Prompt:
    try:
        return Prompt(name, path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read ({error})", key=name) from error


@cache
def prompts_digest() -> str:
    """Hash of all shipped prompts.

    Traces record it. A request of a run that was recorded under another wording has another hash
    now, so a rerun has to match it by what it holds.
    """
    with override(None):
        text = json.dumps(digests(), sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


TAG = "material"
_ANGLES = str.maketrans({"<": "‹", ">": "›", "＜": "‹", "＞": "›", "﹤": "‹", "﹥": "›"})
_TURN_MARKER = re.compile(r"\[(/?[A-Z][A-Z_ ]+)\]")


def defuse(text: str) -> str:
    """The text without anything that could end its quotation or start another turn."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    # unseen characters are not printable, and nearly all texts are printable throughout
    if lines.replace("\n", "").replace("\t", "").isprintable():
        seen = lines
    else:
        seen = "".join(char for char in lines if char in "\n\t" or not _unseen(char))
    return _TURN_MARKER.sub(r"(\1)", seen.translate(_ANGLES))


def quote(text: str, name: str) -> str:
    """The text as quoted material; ``name`` says what it is."""
    label = re.sub(r"[^A-Za-z0-9_ -]", "", name)
    return f'<{TAG} name="{label}">\n{defuse(text).strip()}\n</{TAG}>'


def _unseen(char: str) -> bool:
    """Whether a character is a control, format or private-use one, a surrogate or a line break."""
    if char in "\u200c\u200d":  # joiners are part of how Persian, Hindi and emoji are spelt
        return False
    return unicodedata.category(char) in ("Cc", "Cf", "Co", "Cs", "Zl", "Zp")
