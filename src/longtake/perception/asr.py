"""Speech recognition by Moonshine's tiny English model (extra ``speech``).

**English only.** The model turns whatever it hears into fluent English: Russian prompts became "the
first step is to take a step in the way of the public". Word lists do not catch that, but the
model's own confidence does. Measured on recorded voices in five languages, its mean log-probability
per token was −0.02 to −0.32 for every English line, and −0.88 to −1.33 on average for Spanish,
French, Italian and Russian. So each stretch of about half a minute is decoded again with ONNX
Runtime from the same weights, and a stretch below :data:`LEAST` is reported as unsupported instead
of transcribed. This also catches singing and noise that the voice detector let through. It does not
say which language it was.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from longtake.errors import MissingExtra, ModelError
from longtake.perception.protocols import Heard, Unsupported
from longtake.perception.runtime import Compute, Session
from longtake.stopping import check_stop
from longtake.types import Line, Segment

if TYPE_CHECKING:
    from longtake.perception.protocols import Samples

RATE = 16_000
LEAST = -0.5
"""Mean log-probability below which a stretch does not count as English (measured; see above)."""
PIECE = 60.0
"""Maximum seconds given to the transcriber at once; cuts are made where it is quietest."""
STRETCH = 30.0
"""Length in seconds of the stretches that are judged as a whole."""
_SAMPLE = 5.0  # seconds of a line that are enough to judge it
_TOKENS = 40
_BEGIN, _END = 1, 2  # Moonshine's token ids


@dataclass(frozen=True)
class _Said:
    segment: Segment
    text: str
    certainty: float
    """Mean log-probability per token."""
    tokens: int


class MoonshineListener:
    """The built-in listener."""

    languages: tuple[str, ...] = ("en",)

    def __init__(self, *, compute: Compute | None = None, least: float = LEAST) -> None:
        try:
            version = metadata.version("moonshine-voice")
        except metadata.PackageNotFoundError as error:
            raise MissingExtra("speech", "speech recognition") from error
        self._compute = compute or Compute()
        self._least = least
        self._lock = threading.Lock()  # the native transcriber keeps state between calls
        self.key = f"moonshine-tiny-en-{version}:{least}"

    @cached_property
    def _engines(self) -> tuple[Any, Judge]:
        """The transcriber and its judge, loaded on first use."""
        import moonshine_voice
        from moonshine_voice import ModelArch
        from moonshine_voice.transcriber import Transcriber

        folder = Path(moonshine_voice.__file__).parent / "assets" / "tiny-en"
        if not folder.is_dir():
            detail = "this version ships without its model; install 0.0.65"
            raise ModelError("moonshine-voice", "unavailable", detail)
        transcriber = Transcriber(folder, ModelArch.TINY, options={"return_audio_data": "false"})
        return transcriber, Judge(folder, self._compute)

    def listen(self, samples: Samples, start: float = 0.0) -> Heard:
        """English lines with film times; other speech is reported, not transcribed."""
        # callers may pass views and other types of float
        samples = np.ascontiguousarray(samples, np.float32)
        if samples.ndim != 1:
            raise ValueError(f"samples must be one channel, not an array of shape {samples.shape}")
        said: list[_Said] = []
        for offset, piece in pieces(samples):
            check_stop()
            said += self._transcribe(piece, start + offset / RATE)
        lines: list[Line] = []
        unsupported: list[Unsupported] = []
        for stretch in stretches(said):
            certainty = _certainty(stretch)
            if certainty < self._least:
                span = Segment(stretch[0].segment.start, max(line.segment.end for line in stretch))
                why = f"certainty {certainty:.2f} per token, {self._least:.2f} needed"
                unsupported.append(Unsupported(span, f"not understood as English ({why})"))
            else:
                lines.extend(Line(line.segment, line.text) for line in stretch)
        return Heard(tuple(lines), tuple(unsupported), "en" if lines else None)

    def _transcribe(self, piece: Samples, start: float) -> list[_Said]:
        with self._lock:
            transcriber, judge = self._engines
            transcript = transcriber.transcribe_without_streaming(piece.tolist(), RATE)
        said = []
        for line in transcript.lines:
            text = line.text.strip()
            begin, end = line.start_time, min(line.start_time + line.duration, len(piece) / RATE)
            if not text or end <= begin:
                continue
            check_stop()
            # a few seconds are enough to judge a line and keep this cheap
            sample = piece[int(begin * RATE) : int(min(end, begin + _SAMPLE) * RATE)]
            certainty, tokens = judge.certainty(sample)
            said.append(_Said(Segment(start + begin, start + end), text, certainty, tokens))
        return said


class Judge:
    """Measures how sure the model is of what it hears."""

    def __init__(self, folder: Path, compute: Compute) -> None:
        self._encoder = Session(folder / "encoder_model.ort", compute)
        self._decoder = Session(folder / "decoder_model_merged.ort", compute)
        self._past = [name for name in self._decoder.inputs if name.startswith("past_key_values.")]
        self._present = [name.replace("past_key_values.", "present.") for name in self._past]

    def certainty(self, samples: Samples) -> tuple[float, int]:
        """Mean log-probability of the model's own best tokens, and their number."""
        if len(samples) < RATE // 10:
            return 0.0, 0
        mask = np.ones((1, len(samples)), np.int64)
        audio = {"input_values": samples[None], "attention_mask": mask}
        (states,) = self._encoder.run(("last_hidden_state",), audio)
        _, heads, _, width = self._decoder.inputs[self._past[0]]
        past = {name: np.zeros((1, heads, 0, width), np.float32) for name in self._past}
        logs: list[float] = []
        token, first = _BEGIN, True
        while token != _END and len(logs) < _TOKENS:
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
            # greedy decoding: what counts is how sure the model is, not the best transcript
            token, first = int(row.argmax()), False
            logs.append(float(row.max() - _logsumexp(row)))
        return float(np.mean(logs)), len(logs)


def _certainty(stretch: Sequence[_Said]) -> float:
    """Mean log-probability per token over several lines; 0 if there are no tokens to judge by."""
    tokens = sum(line.tokens for line in stretch)
    total = sum(line.certainty * line.tokens for line in stretch)
    return total / tokens if tokens else 0.0


def _logsumexp(row: Any) -> float:
    top = row.max()
    return float(top + np.log(np.exp(row - top).sum()))


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


def stretches(said: Sequence[_Said], longest: float = STRETCH) -> list[list[_Said]]:
    """Consecutive lines in groups of at most ``longest`` seconds; a single line may be longer."""
    groups: list[list[_Said]] = []
    for line in said:
        if groups and line.segment.end - groups[-1][0].segment.start <= longest:
            groups[-1].append(line)
        else:
            groups.append([line])
    return groups
