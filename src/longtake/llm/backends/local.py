"""GGUF models that run in this process.

``xllamacpp`` is llama.cpp's server as a library. It is asked over loopback like any other server,
with a key made for this process: closing the connection is the only way to stop a reply, so this is
how deadlines hold here too. Models with the same file and settings share one server; all are closed
when the process ends.

A prompt's system turn is the same for every question. What the model made of it is kept on disk:
reading it takes seconds, restoring it milliseconds.

A projector is what lets a model see. One that is well-formed but lacks tensors, or whose tensors
have other shapes, makes the runtime crash; so a pair of files is first loaded in a process of its
own, once a day.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import re
import secrets
import struct
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from longtake.config.entries import LocalEntry
from longtake.errors import ModelError
from longtake.llm.backend import HereBackend, ModelRequest
from longtake.llm.backends.openai import OpenAIChat
from longtake.llm.capabilities import Capabilities, card_with, remembered
from longtake.llm.catalog import WEIGHTS, projector_file, weights_file
from longtake.llm.chat import HERE, Card, Chat, Message, Options, Reply, price_of
from longtake.llm.http import Endpoint
from longtake.tracing import events

MAGIC = b"GGUF"
WIDTHS = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
"""Bytes of each type of value in a GGUF file; 8 is a text and 9 a list (ggml's docs/gguf.md)."""
QWEN = ("qwen2vl", "qwen3vl")
CONTEXT = 4096
"""Tokens, unless the entry says otherwise."""
BATCH = 64
"""Tokens of a prompt that processors read at once: one or two seconds on two cores."""


class LocalBackend(HereBackend[LocalEntry]):
    """Models that run in this process."""

    name = "local"
    settings = LocalEntry
    # a call that timed out once will time out again
    tries = 2
    at_once = 1

    def open(self, model: ModelRequest[LocalEntry]) -> Chat:
        """The model; it is loaded when first asked."""
        entry = model.entry
        file, mmproj = _files(model)
        # the size tells apart two files of one name, without hashing a gigabyte at every start
        revision = f"{_size(file)}|" + (f"{mmproj.name}|{_size(mmproj)}" if mmproj else "")
        card = model.card(
            model=file.name,
            context=entry.context or CONTEXT,
            vision=mmproj is not None,
            price=price_of(model.name, entry) or HERE,
            revision=revision,
        )
        weights = LocalWeights(
            file,
            mmproj,
            context=entry.context or CONTEXT,
            slots=max(1, entry.concurrency),
            threads=entry.threads,
            gpu_layers=entry.gpu_layers,
            states=model.folder / "states",
        )
        capabilities = remembered(model.folder, f"local#{card.model}#{card.revision}")
        capabilities.declare(video="input_video")
        return LocalChat(card, weights, timeout=entry.timeout, capabilities=capabilities)

    def check(self, model: ModelRequest[LocalEntry]) -> None:
        """Reject weights that are not there or are no weights."""
        _check_files(model.name, *_files(model))

    def state(self, model: ModelRequest[LocalEntry]) -> str:
        """Whether the weights are there."""
        file, _ = _files(model)
        return "ready" if file.is_file() else f"longtake models pull {model.name}"


def _files(model: ModelRequest[LocalEntry]) -> tuple[Path, Path | None]:
    """Where the model and its projector are, or will be."""
    known = model.name, model.entry, model.folder
    return weights_file(*known), projector_file(*known)


@dataclass(frozen=True)
class LocalWeights:
    """A model on disk and how to run it."""

    file: Path
    mmproj: Path | None = None
    """The projector file that lets it see pictures."""
    context: int = CONTEXT
    slots: int = 1
    """Replies generated at once, each with its own context."""
    threads: int = 0
    """0: one per core."""
    gpu_layers: int = -1
    """-1: as many as fit, if the installed runtime supports a GPU."""
    states: Path | None = None
    """Where beginnings of prompts are kept; ``None``: nowhere."""


class LocalChat:
    """A GGUF model; it is loaded when first asked."""

    def __init__(
        self,
        card: Card,
        weights: LocalWeights,
        *,
        timeout: float = 900.0,
        capabilities: Capabilities | None = None,
    ) -> None:
        self._card = card
        self.capabilities = capabilities or Capabilities()
        self._weights = weights
        self._timeout = timeout
        self._chat: OpenAIChat | None = None
        self._lock = threading.Lock()

    @property
    def card(self) -> Card:
        """What is known about it."""
        return card_with(self._card, self.capabilities)

    def complete(self, messages: Sequence[Message], options: Options) -> Reply:
        """Ask, loading the model first if necessary."""
        chat = self._open()
        beginning = self._first_beginning(messages)
        is_restored = beginning is not None and beginning.restore()
        reply = chat.complete(messages, options)
        # a call with a deadline has no time for the next process
        if beginning is not None and not is_restored and options.deadline is None:
            beginning.save()
        return reply

    def count(self, text: str) -> int | None:
        """Count tokens with the model's own tokenizer."""
        return self._open().count(text)

    def context(self) -> int | None:
        """The context the model was loaded with."""
        return self._open().context()

    def address(self) -> tuple[str, str]:
        """Address and key of the server that runs the model, which is started if necessary."""
        if self._weights.mmproj is not None and self.capabilities.known.vision is None:
            _load_apart(self._card.name, self._weights, self._timeout)
            self.capabilities.learn(vision=True)
        running = _serve(self._card.name, self._weights)
        return f"{running.server.listening_address}/v1", running.key

    def _open(self) -> OpenAIChat:
        # threads of one run may ask for the first time together
        with self._lock:
            if self._chat is None:
                self._chat = OpenAIChat(self._card, self._endpoint(), self.capabilities)
            return self._chat

    def _endpoint(self) -> Endpoint:
        url, key = self.address()
        return Endpoint(self._card.name, url, key=key, timeout=self._timeout)

    def _first_beginning(self, messages: Sequence[Message]) -> Beginning | None:
        """The beginning of the first prompt that the server reads; later ones find it in memory."""
        weights = self._weights
        # the runtime keeps no states of models that see, and only one slot is known by its number
        if weights.states is None or weights.mmproj is not None or weights.slots > 1:
            return None
        running = _serve(self._card.name, weights)
        with _lock:
            is_first, running.is_unused = running.is_unused, False
        if not is_first or len(messages) < 2 or messages[0].role != "system":
            return None
        text = messages[0].text
        version = _runtime().__version__
        what = repr((self._card.model, self._card.revision, weights.context, version, text))
        name = hashlib.sha256(what.encode()).hexdigest()[:16]
        return Beginning(text, self._endpoint(), weights.states, name)


@dataclass(frozen=True)
class Beginning:
    """The beginning of a prompt, and what the model made of it on disk."""

    text: str
    """The system's turn: the user's holds the question, and there would be a file for each."""
    endpoint: Endpoint
    folder: Path
    name: str

    def restore(self) -> bool:
        """Load the saved prompt state; return whether there was one."""
        try:
            for file in self.folder.glob(f"{self.name}-*"):
                # the runtime crashes on a file that was cut off, so its name holds its hash
                if file.name == self._hashed(file):
                    return self._slot("restore", file.name)
                file.unlink(missing_ok=True)
        except (OSError, ModelError) as error:
            events.note("cache_failed", file=str(self.folder), error=str(error))
        return False

    def save(self) -> None:
        """Save it for the next process; the model has just read it."""
        turns = [{"role": "system", "content": self.text}, {"role": "user", "content": ""}]
        partial = self.folder / f"{self.name}.{os.getpid()}.partial"
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            # the rest of the prompt is dropped from memory, so that it is not saved
            self.endpoint.post("chat/completions", {"messages": turns, "max_tokens": 1})
            if self._slot("save", partial.name):
                partial.rename(self.folder / self._hashed(partial))
            else:
                partial.unlink(missing_ok=True)
        except (OSError, ModelError) as error:
            partial.unlink(missing_ok=True)
            events.note("cache_failed", file=str(self.folder), error=str(error))

    def _slot(self, action: str, file: str) -> bool:
        path = f"../slots/0?action={action}"
        return self.endpoint.post(path, {"filename": file}).status == 200

    def _hashed(self, file: Path) -> str:
        with file.open("rb") as opened:
            return f"{self.name}-{hashlib.file_digest(opened, 'sha256').hexdigest()[:16]}"


@dataclass
class RunningModel:
    """A server of this process."""

    server: Any
    key: str
    is_unused: bool = True
    """Whether it has read no prompt yet."""


_servers: dict[LocalWeights, RunningModel] = {}
_lock = threading.Lock()


def _serve(name: str, weights: LocalWeights) -> RunningModel:
    """The server for these weights, which is started if necessary."""
    with _lock:
        if weights in _servers:
            return _servers[weights]
        # a file that the runtime cannot parse could crash this process, so it is checked first
        _check_files(name, weights.file, weights.mmproj)
        params = _params(weights)
        params.verbosity = -1  # its log would mix with the progress display
        # other users of this machine can reach its loopback too; without the key they are refused
        key = secrets.token_urlsafe(24)
        params.api_keys = [key]
        try:
            running = RunningModel(_runtime().Server(params), key)
        except Exception as error:
            detail = f"{weights.file.name} cannot be loaded ({error})"
            raise ModelError(name, "unavailable", detail) from error
        _servers[weights] = running
        return running


def close_all() -> None:
    """Close every server; a model that is asked again is loaded again."""
    with _lock:
        _servers.clear()  # the runtime shuts a server down when nothing refers to it


atexit.register(close_all)


def _params(weights: LocalWeights) -> Any:
    """The runtime's settings for these weights."""
    runtime = _runtime()
    params = runtime.CommonParams()
    params.model.path = str(weights.file)
    if weights.mmproj is not None:
        params.mmproj.path = str(weights.mmproj)
    params.n_parallel = weights.slots
    # the runtime divides the context among its slots
    params.n_ctx = weights.context * weights.slots
    params.n_gpu_layers = weights.gpu_layers
    if weights.threads:
        params.cpuparams.n_threads = weights.threads
    # memory for displaced prompts, so that agents who take turns keep their prefixes
    params.cache_ram_mib = 1024
    if weights.states is not None:
        params.slot_save_path = f"{weights.states}{os.sep}"
    # the warm-up is what crashes on wrong projectors, in the process that loads them alone
    params.warmup = weights.mmproj is not None
    # what fits on which device; without a GPU, that would only read the model's header twice
    params.fit_params = any(device["type"] for device in runtime.get_device_info())
    # a call can be cancelled between batches only; on two cores, larger ones are no faster
    if weights.mmproj is None and not params.fit_params:
        params.n_batch = BATCH
    params.enable_reasoning = 0  # thinking would use up the tokens of a reply
    params.ui = False
    # weights are downloaded by us, with a hash, or not at all
    params.offline = True
    params.cors_origins = "http://127.0.0.1"
    return params


def _load_apart(name: str, weights: LocalWeights, timeout: float) -> None:
    """Load the model and its projector in another process, which may crash."""
    _check_files(name, weights.file, weights.mmproj)
    arguments = [str(weights.file), str(weights.mmproj), str(weights.gpu_layers)]
    code = f"from {__name__} import load_alone; load_alone()"
    # -P: a module in the working folder is not imported
    command = [sys.executable, "-P", "-c", code, *arguments]
    try:
        ran = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise ModelError(name, "unavailable", f"not loaded after {timeout:g} s") from error
    if ran.returncode:
        reason = _REASON.search(ran.stderr.decode(errors="replace"))
        why = reason[0] if reason else "it makes the runtime crash: tensors are missing or wrong"
        detail = f"{arguments[1]} is not a projector for {weights.file.name} ({why})"
        raise ModelError(name, "unavailable", detail)


def load_alone() -> None:
    """Load the model and the projector that the command line names, and nothing else."""
    file, mmproj, layers = sys.argv[1:]
    params = _params(LocalWeights(Path(file), Path(mmproj), context=512, gpu_layers=int(layers)))
    params.verbosity = 1  # errors
    loaded = _runtime().Server(params)
    # a server that is closed while it starts may wait forever
    os._exit(0 if loaded else 1)


_REASON = re.compile(r"unable to find tensor .*|mismatch between .*|(?<=error loading model: ).*")
"""What the runtime's log says about files that do not belong together."""


def _runtime() -> Any:
    """The runtime, imported late because it takes a hundred megabytes.

    Its threads wait for each other by spinning, which is ruinous if anything else wants the cores:
    on two shared cores a 135M model was measured at 1 token/s, and at 28 tokens/s with threads that
    sleep.
    """
    chosen = os.environ.get("OMP_WAIT_POLICY")
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    try:
        import xllamacpp
    # other libraries of this process should not inherit the setting
    finally:
        if chosen is None:
            del os.environ["OMP_WAIT_POLICY"]
    return xllamacpp


def _size(file: Path) -> int:
    return file.stat().st_size if file.is_file() else 0


def _check_files(name: str, file: Path, mmproj: Path | None) -> None:
    """Reject files that are missing, not GGUF, or do not belong together by what they state."""
    model = _metadata(name, file)
    if model.get("general.architecture") == "clip":
        raise ModelError(name, "unavailable", f"{file} is a projector, not a model")
    if mmproj is None:
        return
    projector = _metadata(name, mmproj)
    kind = projector.get("clip.projector_type") or projector.get("clip.vision.projector_type")
    if projector.get("general.architecture") != "clip" or not kind:
        raise ModelError(name, "unavailable", f"{mmproj} is not a projector for pictures")
    architecture = model.get("general.architecture", "")
    # Qwen's models place pictures in two dimensions, which other projectors know nothing of
    is_qwen = kind.startswith("qwen")
    can_place = (
        architecture.startswith("qwen") or f"{architecture}.rope.dimension_sections" in model
    )
    if (is_qwen and not can_place) or (architecture.startswith(QWEN) and not is_qwen):
        detail = f"{mmproj} ({kind}) is not a projector for {file.name} ({architecture})"
        raise ModelError(name, "unavailable", detail)


def _metadata(name: str, file: Path) -> dict[str, str]:
    """What a GGUF file states before its vocabulary; values that are not text are empty.

    Other files could crash the runtime, and with it this process.
    """
    try:
        with file.open("rb") as opened:
            if opened.read(len(MAGIC)) != MAGIC:
                raise ModelError(name, "unavailable", f"{file} is not a GGUF file")
            return _read_keys(opened)
    except FileNotFoundError as error:
        detail = f"{file} is not there"
        if known := WEIGHTS.get(name):
            size = f"{known.size / 1e9:.1f} GB"
            detail = f"not downloaded yet ({size}): longtake models pull {name}"
        raise ModelError(name, "unavailable", detail) from error
    except OSError as error:
        detail = f"{file} cannot be read ({error.strerror})"
        raise ModelError(name, "unavailable", detail) from error
    except (struct.error, ValueError, RecursionError) as error:
        raise ModelError(name, "unavailable", f"{file} is a damaged GGUF file") from error


def _read_keys(file: BinaryIO) -> dict[str, str]:
    _, _, number = _unpack(file, "<IQQ")
    keys: dict[str, str] = {}
    for _ in range(number):
        key = _read_text(file)
        # vocabularies are long, and come last
        if key.startswith("tokenizer."):
            break
        keys[key] = _read_value(file, *_unpack(file, "<I"))
    return keys


def _read_value(file: BinaryIO, kind: int) -> str:
    """A text; values of other types are skipped."""
    if kind == 8:
        return _read_text(file)
    if kind == 9:
        item, number = _unpack(file, "<IQ")
        for _ in range(number):
            _read_value(file, item)
    elif kind in WIDTHS:
        _unpack(file, f"<{WIDTHS[kind]}x")
    else:
        raise ValueError(f"type {kind}")
    return ""


def _read_text(file: BinaryIO) -> str:
    (length,) = _unpack(file, "<Q")
    # a damaged file could state any length
    return file.read(min(length, 1 << 24)).decode()


def _unpack(file: BinaryIO, layout: str) -> tuple[Any, ...]:
    return struct.unpack(layout, file.read(struct.calcsize(layout)))
