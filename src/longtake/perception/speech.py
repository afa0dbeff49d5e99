"""Speech recognition: Moonshine, the built-in listener, and Whisper.

Moonshine understands English only and makes up English words for anything else. It therefore
reports stretches of which its own decoder is unsure instead of transcribing them
(``docs/perception.md`` has the measurements).
"""

from __future__ import annotations

import ctypes
import platform
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtake._util import version_of
from longtake._util.cancellation import check_stop
from longtake.algorithms.speakers import SAME_VOICE
from longtake.errors import MissingExtra, ModelError
from longtake.perception.protocols import Heard, Samples, UnsupportedSpeech
from longtake.perception.runtime import Compute, OnnxSession, checked
from longtake.types import Line, Segment

RATE = 16_000
MIN_CERTAINTY = -0.5
"""Mean log-probability below which a stretch does not count as English (measured; see above)."""
PIECE = 60.0
"""Maximum seconds given to the voice detector at once; cuts are made where it is quietest."""
STRETCH = 30.0
"""Length in seconds of the stretches that are judged as a whole."""
TOKENS_PER_SECOND = 6.5
"""Upper bound on speech rate; a model that repeats itself would go on for ever."""
SHORTEST = RATE // 10
"""Samples below which there is nothing to decode."""
WEIGHTS_SHA256 = {
    "encoder_model.ort": "94e90a4654fc45cdfedb77c4c08e1739f48862998e58fada384b25118134f221",
    "decoder_model_merged.ort": "cf524c4862d36e9e5ab032eddc73637efd822d70e868ac575cf1a46e1e4708a0",
    "tokenizer.bin": "6884b35fd6377d4c4d32336a0bc152f36b64d1e45b6503683cdc238250a8472d",
}
"""Of moonshine-voice 0.0.65."""
LIBRARY_SHA256 = {
    ("linux", "x86_64"): "139de7595fd11136f336b16543a31338709e4e44012a0ebba88e2e7aeef228d1"
}
"""Of its native library; on other platforms the library is as pip installed it."""
_BEGIN, _END = 1, 2  # Moonshine's token ids
_SPACE = "\u2581"  # what its vocabulary has for a space


@dataclass(frozen=True)
class _Spoken:
    segment: Segment
    text: str
    certainty: float
    """Mean log-probability per token."""
    tokens: int


class MoonshineListener:
    """The built-in listener."""

    def __init__(self, *, compute: Compute | None = None) -> None:
        try:
            version = version_of("moonshine-voice")
        except ModuleNotFoundError as error:
            raise MissingExtra("speech", "speech recognition") from error
        self._compute = compute or Compute()
        self._lock = threading.Lock()  # models are loaded once, however many threads ask
        self.key = f"moonshine-tiny-en-{version}:{MIN_CERTAINTY}:ended"

    @cached_property
    def _loaded(self) -> tuple[VoiceDetector, Recogniser]:
        """What finds speech and what decodes it, loaded on first use."""
        import moonshine_voice

        folder = Path(moonshine_voice.__file__).parent / "assets" / "tiny-en"
        if not folder.is_dir():
            detail = "this version ships without its model; install 0.0.65"
            raise ModelError("moonshine-voice", "unavailable", detail)
        for name, sha256 in WEIGHTS_SHA256.items():
            checked(folder / name, sha256)
        return VoiceDetector(), Recogniser(folder, self._compute)

    def unload(self) -> None:
        """Free the memory of the models; they are loaded again on use."""
        with self._lock:
            self.__dict__.pop("_loaded", None)

    def listen(self, samples: Samples, start: float = 0.0) -> Heard:
        """English lines with film times; other speech is reported, not transcribed."""
        # callers may pass views and other types of float
        samples = np.ascontiguousarray(samples, np.float32)
        if samples.ndim != 1:
            raise ValueError(f"samples must be one channel, not an array of shape {samples.shape}")
        spoken: list[_Spoken] = []
        for offset, piece in pieces(samples):
            check_stop()
            spoken += self._transcribe(piece, start + offset / RATE)
        lines: list[Line] = []
        unsupported: list[UnsupportedSpeech] = []
        for stretch in stretches(spoken):
            tokens = sum(line.tokens for line in stretch)
            certainty = sum(line.certainty * line.tokens for line in stretch) / tokens
            if certainty < MIN_CERTAINTY:
                span = Segment(stretch[0].segment.start, max(line.segment.end for line in stretch))
                why = f"certainty {certainty:.2f} per token, {MIN_CERTAINTY:.2f} needed"
                unsupported.append(UnsupportedSpeech(span, f"not understood as English ({why})"))
            else:
                lines.extend(Line(line.segment, line.text) for line in stretch)
        return Heard(tuple(lines), tuple(unsupported))

    def _transcribe(self, piece: Samples, start: float) -> list[_Spoken]:
        with self._lock:
            detector, recogniser = self._loaded
        spoken = []
        for begin, end in detector.voiced(piece):
            check_stop()
            text, certainty, tokens = recogniser.decode(piece[int(begin * RATE) : int(end * RATE)])
            if text:
                spoken.append(_Spoken(Segment(start + begin, start + end), text, certainty, tokens))
        return spoken


class VoiceDetector:
    """Finds speech as Moonshine's own detector does, by the network in Moonshine's library.

    That detector has one state for all sounds and threads of a process and cannot be reset: what it
    finds depends on what was heard before. Here each sound begins with a state of its own.
    """

    STEP, CONTEXT = 512, 64
    """Samples that are judged at a time, and those before them that the network hears again."""

    def __init__(self) -> None:
        self._network = _carried("silero_vad_onnx", "silero_vad_onnx_len")

    def voiced(self, samples: Samples) -> list[tuple[float, float]]:
        """Start and end of each stretch of speech in seconds."""
        lead, longest = 16 * self.STEP, 10 * RATE
        recent = np.zeros(16)  # probabilities, half a second
        found: list[tuple[int, int]] = []
        begin, end = -1, 0
        for step, probability in enumerate(self._probabilities(samples)):
            recent[step % len(recent)] = probability
            before, end = end, (step + 1) * self.STEP
            speaks = recent.mean() > 0.5
            if begin < 0 and speaks:
                begin = max(0, end - lead)
            elif begin >= 0 and (not speaks or before - begin > longest):
                found.append((begin, end))
                begin = -1
        if begin >= 0:
            found.append((begin, end))
        return [(begin / RATE, end / RATE) for begin, end in found]

    def _probabilities(self, samples: Samples) -> Iterator[float]:
        """How likely each step is speech; what is left at the end is shorter than a step."""
        state: Any = np.zeros((2, 1, 128), np.float32)
        rate = np.array(RATE, np.int64)
        heard = np.concatenate([np.zeros(self.CONTEXT, np.float32), samples])[None]
        for start in range(0, len(samples) - self.STEP + 1, self.STEP):
            window = heard[:, start : start + self.CONTEXT + self.STEP]
            feed = {"input": window, "state": state, "sr": rate}
            probability, state = self._network.run(("output", "stateN"), feed)
            yield float(probability[0, 0])


class VoiceEncoder:
    """Tells how a voice sounds, by the network with which Moonshine's library numbers speakers."""

    def __init__(self) -> None:
        name = "speaker_embedding_model_ort_byte"
        self._network = _carried(f"{name}s", f"{name}_count")

    def encode(self, samples: Samples) -> NDArray[np.float32]:
        """A unit row: the closer two rows, the more alike the voices; zeros for no single voice.

        The halves of a line sound alike if one person says it.
        """
        row = self._row(samples)
        middle = len(samples) // 2
        if middle >= 2 * RATE:  # less tells little
            likeness = self._row(samples[:middle]) @ self._row(samples[middle:])
            return row if likeness >= SAME_VOICE else np.zeros_like(row)
        return row

    def _row(self, samples: Samples) -> NDArray[np.float32]:
        if len(samples) < SHORTEST:
            return np.zeros(512, np.float32)
        (rows,) = self._network.run(None, {"waveform": samples[None]})
        row: NDArray[np.float32] = rows[0] / max(1e-9, float(np.linalg.norm(rows[0])))
        return row


def _carried(data: str, size: str) -> Any:
    """A network that Moonshine's library carries, by the names of its bytes and their number."""
    import onnxruntime

    try:
        import moonshine_voice
    except ModuleNotFoundError as error:
        raise MissingExtra("speech", "telling voices apart") from error
    suffix = "dylib" if sys.platform == "darwin" else "so"
    file = Path(moonshine_voice.__file__).parent / f"libmoonshine.{suffix}"
    if known := LIBRARY_SHA256.get((sys.platform, platform.machine())):
        checked(file, known)
    library = ctypes.CDLL(str(file))
    count = ctypes.c_uint.in_dll(library, size).value
    network = (ctypes.c_ubyte * count).in_dll(library, data)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    # what is heard at a time is too little work for a GPU
    providers = ["CPUExecutionProvider"]
    return onnxruntime.InferenceSession(bytes(network), options, providers=providers)


class Recogniser:
    """Decodes speech, and tells how sure the model is of it."""

    def __init__(self, folder: Path, compute: Compute) -> None:
        # one thread: a second gains little on a network this small, and pictures need the core
        alone = replace(compute, threads=compute.threads or 1)
        self._encoder = OnnxSession(folder / "encoder_model.ort", alone)
        self._decoder = OnnxSession(folder / "decoder_model_merged.ort", alone)
        self._vocabulary = vocabulary((folder / "tokenizer.bin").read_bytes())
        self._past = [name for name in self._decoder.inputs if name.startswith("past_key_values.")]
        self._present = [name.replace("past_key_values.", "present.") for name in self._past]

    def decode(self, samples: Samples) -> tuple[str, float, int]:
        """The words, the mean log-probability of the model's own best tokens, and their number."""
        if len(samples) < SHORTEST:
            return "", 0.0, 0
        mask = np.ones((1, len(samples)), np.int64)
        audio = {"input_values": samples[None], "attention_mask": mask}
        (states,) = self._encoder.run(("last_hidden_state",), audio)
        _, heads, _, width = self._decoder.inputs[self._past[0]]
        past = {name: np.zeros((1, heads, 0, width), np.float32) for name in self._past}
        logs: list[float] = []
        tokens: list[int] = []
        token, first = _BEGIN, True
        while token != _END and len(logs) < max(2, len(samples) / RATE * TOKENS_PER_SECOND):
            feed = {
                "input_ids": np.array([[token]], np.int64),
                "encoder_hidden_states": states,
                "encoder_attention_mask": mask,
                "use_cache_branch": np.array([not first]),
                **past,
            }
            logits, *present = self._decoder.run(("logits", *self._present), feed)
            for name, value in zip(self._past, present, strict=True):
                # from the second step on, the encoder's part comes out empty
                if first or ".decoder." in name:
                    past[name] = value
            row = logits[0, -1].astype(np.float64)
            token, first = int(row.argmax()), False
            tokens.append(token)
            logs.append(float(row.max() - np.logaddexp.reduce(row)))
        if token != _END:
            tokens = without_loop(tokens)
        return self._text(tokens), float(np.mean(logs)), len(logs)

    def _text(self, tokens: Sequence[int]) -> str:
        # the first three tokens mark beginning and end
        spelled = b"".join(self._vocabulary[token] for token in tokens if token > _END)
        return spelled.decode("utf-8", "replace").replace(_SPACE, " ").strip()


def without_loop(tokens: Sequence[int]) -> list[int]:
    """Tokens of a reply that found no end, without the phrase that it repeated until then."""
    kept = list(tokens)
    for length in range(1, len(tokens) - 2):
        # a reply that found no end and repeats three tokens goes in circles
        if kept[-3:] == kept[-3 - length : -length]:
            while len(kept) > length and kept[-1] == kept[-1 - length]:
                kept.pop()
            break
    return kept


def vocabulary(stored: bytes) -> list[bytes]:
    """Moonshine's tokens: each is stored as its length, of one byte or two, and its bytes."""
    tokens, place = [], 0
    while place < len(stored):
        length, place = stored[place], place + 1
        if length >= 128:
            length, place = stored[place] * 128 + length - 128, place + 1
        tokens.append(stored[place : place + length])
        place += length
    return tokens


def pieces(samples: Samples, longest: float = PIECE) -> list[tuple[int, Samples]]:
    """Consecutive pieces of at most ``longest`` seconds, cut where the last quarter is quietest."""
    size, step = int(longest * RATE), RATE // 10
    cut_off, begin = [], 0
    while len(samples) - begin > size:
        # only the last quarter, so that pieces stay long
        late = samples[begin + size * 3 // 4 : begin + size]
        loud = np.square(late[: len(late) // step * step].reshape(-1, step)).sum(axis=1)
        cut = begin + size * 3 // 4 + int(loud.argmin()) * step + step // 2
        cut_off.append((begin, samples[begin:cut]))
        begin = cut
    if begin < len(samples):
        cut_off.append((begin, samples[begin:]))
    return cut_off


def stretches(spoken: Sequence[_Spoken]) -> list[list[_Spoken]]:
    """Consecutive lines in groups of at most :data:`STRETCH`; a single line may be longer."""
    groups: list[list[_Spoken]] = []
    for line in spoken:
        if groups and line.segment.end - groups[-1][0].segment.start <= STRETCH:
            groups[-1].append(line)
        else:
            groups.append([line])
    return groups


def open_whisper(model: str) -> WhisperListener:
    """Open a CTranslate2 Whisper model, by size (``base``) or folder; nothing is downloaded."""
    try:
        from faster_whisper import BatchedInferencePipeline, WhisperModel
    except ImportError as error:
        raise MissingExtra("whisper", "speech recognition by Whisper") from error
    try:
        engine = WhisperModel(model, local_files_only=True)
    # errors of the hub and of the runtime share no base class
    except Exception as error:
        detail = f"cannot be loaded ({error}); give a folder"
        raise ModelError(f"whisper {model}", "unavailable", detail) from error
    key = f"faster-whisper:{Path(model).name}"
    if engine.model.device == "cuda":
        # a batch holds stretches of up to 30 seconds; without time stamps a line would be as long
        # as its stretch
        options = {"batch_size": 16, "without_timestamps": False}
        return WhisperListener(BatchedInferencePipeline(engine), f"{key}:batched", **options)
    return WhisperListener(engine, key)


class WhisperListener:
    """A loaded Whisper model, or on a GPU the pipeline that gives it batches."""

    def __init__(self, engine: Any, key: str, **options: Any) -> None:
        self._engine, self._options = engine, options
        self._lock = threading.Lock()
        self.key = key

    def listen(self, samples: Samples, start: float = 0.0) -> Heard:
        """Lines in the spoken language, with film times."""
        samples = np.ascontiguousarray(samples, np.float32)
        if len(samples) == 0:
            return Heard()
        lines = []
        with self._lock:  # segments are decoded while they are iterated
            parts, _ = self._engine.transcribe(samples, vad_filter=True, **self._options)
            for part in parts:
                check_stop()
                text = part.text.strip()
                if text:
                    end = max(part.end, part.start)
                    lines.append(Line(Segment(start + part.start, start + end), text))
        return Heard(tuple(lines))
