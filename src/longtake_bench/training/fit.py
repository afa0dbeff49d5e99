"""Training of the retrieval head of :mod:`longtake.perception.retriever`, in torch.

The head itself for batches of clips, its recall, the training loop with checkpoints, and the export
for NumPy. The encoder can be trained with it.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtake._util import write_atomically
from longtake.errors import ConfigError, MissingExtra, ModelError, RunError
from longtake.perception.minilm import MeanPooling
from longtake.perception.protocols import ImageEncoder
from longtake.perception.retriever import CARD, EPSILON, WEIGHTS, RetrievalHead, Shape, initial
from longtake.perception.runtime import batches
from longtake.perception.torch_encoder import TrainableEncoder
from longtake_bench.training.data import Pairs


def need_torch() -> Any:
    """The torch module; raises MissingExtra, which says how to install it."""
    try:
        import torch
    except ImportError as error:
        raise MissingExtra("train", "training a retrieval head") from error
    return torch


def tokens(weights: Mapping[str, Any], shape: Shape, frames: Any, mask: Any) -> Any:
    """Temporal tokens ``z`` of clips ``b × t × d``; ``mask`` is true for existing frames."""
    torch = need_torch()
    functional = torch.nn.functional
    batch, length, dim = frames.shape

    def linear(rows: Any, name: str) -> Any:
        return rows @ weights[f"{name}.weight"] + weights[f"{name}.bias"]

    def norm(rows: Any, name: str) -> Any:
        weight, bias = weights[f"{name}.weight"], weights[f"{name}.bias"]
        return functional.layer_norm(rows, (dim,), weight, bias, EPSILON)

    def split(rows: Any) -> Any:
        return rows.view(batch, length, shape.heads, dim // shape.heads).transpose(1, 2)

    hidden = frames + weights["positions"][:length]
    for layer in range(shape.layers):
        at = f"layer{layer}"
        normed = norm(hidden, f"{at}.norm1")
        query, key, value = (
            split(linear(normed, f"{at}.{part}")) for part in ("query", "key", "value")
        )
        visible = mask[:, None, None, :]
        mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=visible)
        merged = mixed.transpose(1, 2).reshape(batch, length, dim)
        hidden = hidden + linear(merged, f"{at}.mix")
        wide = functional.gelu(linear(norm(hidden, f"{at}.norm2"), f"{at}.wide"))
        hidden = hidden + linear(wide, f"{at}.narrow")
    return functional.normalize(frames + linear(norm(hidden, "norm"), "out"), dim=-1)


def scores(
    weights: Mapping[str, Any],
    shape: Shape,
    frames: Any,
    mask: Any,
    texts: Any,
    *,
    half: bool = False,
) -> Any:
    """Cosines of every clip with every text, ``b × n``.

    With ``half``, only the transformer runs in bfloat16: cosines in bfloat16 are accurate to a few
    thousandths, which is a few tenths of a logit.
    """
    torch = need_torch()
    functional = torch.nn.functional
    with torch.autocast(frames.device.type, dtype=torch.bfloat16, enabled=half):
        z = tokens(weights, shape, frames, mask)
    z = z.float()
    texts = functional.normalize(texts, dim=-1)
    near = torch.einsum("btd,nd->bnt", z, texts).masked_fill(~mask[:, None, :], float("-inf"))
    closest = near.argmax(dim=-1, keepdim=True)
    # each clip pooled once per token j, with that token added (b × j × d);
    # every text then takes the version of its closest token
    summed = functional.normalize(frames[:, None] + z[:, :, None], dim=-1) * mask[:, None, :, None]
    pooled = functional.normalize(summed.sum(dim=2), dim=-1)
    return torch.einsum("bjd,nd->bnj", pooled, texts).gather(-1, closest).squeeze(-1)


TIED = 1e-6
"""Scores that differ by no more than this are equal."""


def recall(scores: NDArray[np.floating], k: int) -> float:
    """Recall@k of ``scores[text, clip]``: how often clip i is among the best ``k`` for text i.

    Tied scores have no order, so a clip tied with others counts by the probability that a random
    order puts it among the best ``k``.
    """
    if len(scores) == 0:
        return 0.0
    matching = np.diag(scores)[:, None]
    better = (scores > matching + TIED).sum(axis=1)
    tied = (np.abs(scores - matching) <= TIED).sum(axis=1)  # itself included
    return float(np.clip((k - better) / tied, 0.0, 1.0).mean())


def recalls(scores: NDArray[np.floating]) -> dict[str, float]:
    """Recall at 1, 5 and 10 for ``scores[text, clip]``, where matching pairs share an index."""
    return {str(k): round(recall(scores, k), 6) for k in (1, 5, 10)}


def pooled_scores(pairs: Pairs) -> NDArray[np.float32]:
    """``scores[text, clip]`` by mean pooling, the baseline for a trained head."""
    texts, pooling = np.asarray(pairs.texts, np.float32), MeanPooling()
    return np.stack([pooling.scores(pairs.clip(number), texts) for number in range(len(pairs))]).T


def scale_of(scores: NDArray[np.floating]) -> tuple[float, float] | None:
    """The scores that count as 0 and as 1, or ``None`` if they do not differ.

    These are the median scores of clips with wrong captions and with the right ones.
    """
    matching = np.diag(scores)
    other = scores[~np.eye(len(scores), dtype=bool)]
    if not len(other):
        return None
    low, high = float(np.median(other)), float(np.median(matching))
    return (round(low, 6), round(high, 6)) if high > low else None


CHECKPOINT = "checkpoint.pt"


@dataclass(frozen=True)
class Schedule:
    """How to train; the defaults are the paper's values."""

    epochs: int = 10
    batch: int = 64
    rate: float = 1e-4
    """Learning rate at the start of the cosine."""
    encoder_rate: float = 0.0
    """The same for the encoder (the paper: 1e-7); 0 leaves it as it is."""
    logit_scale: float = 100.0
    """Factor applied to cosines in the loss."""
    group: int = 1
    """Consecutive clips kept together in a batch; neighbours are the hardest to distinguish."""
    seed: int = 0
    checkpoint_steps: int = 200
    """Steps between checkpoints within an epoch; one is also written after every epoch."""


@dataclass
class TrainingProgress:
    """Results so far, epoch by epoch."""

    losses: list[float] = field(default_factory=list)
    recalls: list[dict[str, float]] = field(default_factory=list)
    pooled: dict[str, float] = field(default_factory=dict)
    """Recall of mean pooling on the same held-out clips."""
    pairs_per_second: float = 0.0
    device: str = ""


Tell = Callable[[int, float, TrainingProgress], None]
"""Called with the epoch, the completed share of it, and the results so far."""


def fit(
    shape: Shape,
    train: Pairs,
    test: Pairs,
    schedule: Schedule,
    folder: Path,
    *,
    device: str = "auto",
    resume: bool = False,
    tell: Tell = lambda epoch, share, progress: None,  # noqa: ARG005
    encoder: TrainableEncoder | None = None,
) -> tuple[dict[str, NDArray[np.float32]], TrainingProgress]:
    """Train a head, and the encoder if there is one; returns the head's weights and results."""
    training = _Training(shape, train, test, schedule, folder, device, encoder)
    progress = training.run(resume=resume, tell=tell)
    plain = {name: value.detach().float().cpu() for name, value in training.weights.items()}
    return {name: value.numpy() for name, value in plain.items()}, progress


class _Training:
    def __init__(
        self,
        shape: Shape,
        train: Pairs,
        test: Pairs,
        schedule: Schedule,
        folder: Path,
        device: str,
        encoder: TrainableEncoder | None,
    ) -> None:
        self.torch = need_torch()
        if len(train) < 2:
            raise ConfigError(f"{len(train)} clips to train on; contrast needs two")
        self.shape, self.schedule, self.folder = shape, schedule, folder
        self.train, self.test = train, test
        self.device = device_of(device)
        self.weights: dict[str, Any] = {}
        for name, value in initial(shape, schedule.seed).items():
            self.weights[name] = self.torch.tensor(value, device=self.device, requires_grad=True)
        groups = [{"params": list(self.weights.values()), "lr": schedule.rate}]
        self.encoder = encoder
        if encoder is not None:
            groups.append({"params": list(encoder.model.parameters()), "lr": schedule.encoder_rate})
        self.adam = self.torch.optim.Adam(groups)
        self.steps = math.ceil(len(train) / schedule.batch)
        self.half = in_half(self.device)
        # a checkpoint fits only a training with the same specification
        self.spec = {
            "shape": shape.plain(),
            "schedule": asdict(schedule),
            "clips": len(train),
            "tested": len(test),
        }

    def run(self, *, resume: bool, tell: Tell) -> TrainingProgress:
        progress, epoch, step, total = self._begin(resume)
        progress.device = self._device_name()
        if not progress.pooled:  # by the encoder as it was before
            progress.pooled = recalls(pooled_scores(encoded(self.encoder, self.test)))
        while epoch < self.schedule.epochs:
            order = order_of(len(self.train), self.schedule, epoch)
            began, seen = time.perf_counter(), 0
            while step < self.steps:
                first = step * self.schedule.batch
                chosen = order[first : first + self.schedule.batch]
                if len(chosen) > 1:  # a single pair has nothing to contrast with
                    total += self._step(chosen, epoch * self.steps + step)
                    seen += len(chosen)
                step += 1
                # the first epoch of a process includes start-up; later ones overwrite its pace
                if seen:
                    progress.pairs_per_second = seen / max(time.perf_counter() - began, 1e-9)
                tell(epoch, step / self.steps, progress)
                if step % self.schedule.checkpoint_steps == 0 and step < self.steps:
                    self._save(progress, epoch, step, total)
            progress.losses.append(total / self.steps)
            progress.recalls.append(recalls(self.scored(self.test)))
            epoch, step, total = epoch + 1, 0, 0.0
            self._save(progress, epoch, step, total)
            tell(epoch - 1, 1.0, progress)
        return progress

    def _step(self, chosen: NDArray[np.int64], number: int) -> float:
        """Train on one batch: each clip must find its text among all texts, and vice versa."""
        torch, schedule = self.torch, self.schedule
        cosine = 0.5 * (1 + math.cos(math.pi * number / (schedule.epochs * self.steps)))
        rates = (schedule.rate, schedule.encoder_rate)
        for group, rate in zip(self.adam.param_groups, rates, strict=False):
            group["lr"] = rate * cosine
        batch = self.train.only(chosen.tolist())
        frames, mask, texts = _tensors(self.encoder, batch, self.device)
        cosines = scores(self.weights, self.shape, frames, mask, texts, half=self.half)
        logits = schedule.logit_scale * cosines
        target = torch.arange(len(batch), device=self.device)
        entropy = torch.nn.functional.cross_entropy
        loss = (entropy(logits, target) + entropy(logits.T, target)) / 2
        self.adam.zero_grad(set_to_none=True)
        loss.backward()
        self.adam.step()
        return float(loss.detach())

    def scored(self, pairs: Pairs) -> NDArray[np.float32]:
        """``scores[text, clip]`` for all pairs, a batch of clips at a time."""
        torch, rows = self.torch, []
        pairs = encoded(self.encoder, pairs)
        texts = torch.tensor(pairs.texts, dtype=torch.float32, device=self.device)
        with torch.no_grad():
            for start in range(0, len(pairs), self.schedule.batch):
                end = min(start + self.schedule.batch, len(pairs))
                frames, mask, _ = _tensors(None, pairs.only(range(start, end)), self.device)
                cosines = scores(self.weights, self.shape, frames, mask, texts)
                rows.append(cosines.float().cpu().numpy())
        return np.asarray(np.concatenate(rows).T, np.float32)

    def _begin(self, resume: bool) -> tuple[TrainingProgress, int, int, float]:
        """Results, epoch, step and summed loss to start from: zero, or those of the checkpoint."""
        file = self.folder / CHECKPOINT
        if not file.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            return TrainingProgress(), 0, 0, 0.0
        if not resume:
            raise RunError(
                f"{self.folder}: contains a checkpoint; pass --resume to continue, "
                "or choose another folder"
            )
        stored = self.torch.load(file, map_location=self.device, weights_only=True)
        if stored["spec"] != self.spec:
            raise RunError(
                f"{self.folder}: the checkpoint belongs to another training ({stored['spec']})"
            )
        with self.torch.no_grad():
            for name, value in stored["weights"].items():
                self.weights[name].copy_(value)
        if self.encoder is not None:
            self.encoder.model.load_state_dict(stored["encoder"])
        self.adam.load_state_dict(stored["adam"])
        progress = TrainingProgress(**stored["progress"])
        return progress, stored["epoch"], stored["step"], stored["total"]

    def _save(self, progress: TrainingProgress, epoch: int, step: int, total: float) -> None:
        state = {
            "spec": self.spec,
            "weights": {name: value.detach() for name, value in self.weights.items()},
            "adam": self.adam.state_dict(),
            "epoch": epoch,
            "step": step,
            "total": total,
            "progress": asdict(progress),
            "encoder": self.encoder.model.state_dict() if self.encoder else None,
        }
        # written under another name first: an interrupted write must not destroy the last one
        draft = self.folder / f".{CHECKPOINT}"
        self.torch.save(state, draft)
        draft.replace(self.folder / CHECKPOINT)

    def _device_name(self) -> str:
        if self.device.type != "cuda":
            return f"{self.device.type}, {self.torch.get_num_threads()} threads"
        name: str = self.torch.cuda.get_device_name(self.device)
        return f"{name}, bfloat16" if self.half else name


def encoded(encoder: TrainableEncoder | None, pairs: Pairs) -> Pairs:
    """Pairs of vectors: those of pictures and captions by the encoder as it is now."""
    if encoder is None or not pairs.raw:
        return pairs
    frames, texts = [], []
    with need_torch().no_grad():
        for some in batches(range(len(pairs)), 64):
            seen, _, read = _tensors(encoder, pairs.only(some), encoder.model.device)
            frames.append(seen.half().cpu().numpy())
            texts.append(read.half().cpu().numpy())
    return Pairs(np.concatenate(frames), pairs.counts, np.concatenate(texts), pairs.videos)


def _tensors(encoder: TrainableEncoder | None, pairs: Pairs, device: Any) -> tuple[Any, Any, Any]:
    """Frames, the mask of existing frames, and texts, on the device."""
    torch = need_torch()
    frames = torch.from_numpy(pairs.frames).to(device)
    counts = torch.tensor(pairs.counts, device=device)
    mask = torch.arange(frames.shape[1], device=device)[None] < counts[:, None]
    if encoder is None or not pairs.raw:
        return frames.float(), mask, torch.tensor(pairs.texts, device=device).float()
    with torch.autocast(device.type, dtype=torch.bfloat16, enabled=in_half(device)):
        seen, texts = encoder.images(frames[mask]), encoder.texts(pairs.texts.tolist())
    vectors = torch.zeros(*mask.shape, seen.shape[1], device=device)
    vectors[mask] = seen
    return vectors, mask, texts


def in_half(device: Any) -> bool:
    """Whether to compute in bfloat16, which is faster on GPUs and slower on CPUs."""
    return bool(device.type == "cuda" and need_torch().cuda.is_bf16_supported())


def order_of(count: int, schedule: Schedule, epoch: int) -> NDArray[np.int64]:
    """The order of clips in an epoch: groups shuffled by seed and epoch."""
    groups = np.array_split(np.arange(count), range(schedule.group, count, schedule.group))
    shuffled = np.random.default_rng((schedule.seed, epoch)).permutation(len(groups))
    return np.concatenate([groups[number] for number in shuffled])


def export(
    folder: Path,
    shape: Shape,
    weights: Mapping[str, NDArray[np.float32]],
    test: Pairs,
    progress: TrainingProgress,
    encoder: ImageEncoder,
    schedule: Schedule,
) -> RetrievalHead:
    """Write the head, as the default install runs it, and its card.

    The written head is run once and must reach the recall of the trained one.
    """
    card = {
        "encoder": {"name": encoder.name, "key": encoder.key, "dim": encoder.dim},
        **shape.plain(),
        "schedule": asdict(schedule),
        "recall": progress.recalls[-1] if progress.recalls else {},
        "mean_pooling": progress.pooled,
    }
    np.savez(folder / WEIGHTS, **weights)  # type: ignore[arg-type]
    _write_json(folder / CARD, card)
    head = RetrievalHead(folder, encoder)
    texts = np.asarray(test.texts, np.float32)
    written = np.stack([head.scores(test.clip(n), texts) for n in range(len(test))]).T
    # one near-tie may fall either way in a small test
    allowed, reached = max(2e-3, 2 / len(test)), recalls(written)
    if progress.recalls and abs(reached["1"] - progress.recalls[-1]["1"]) > allowed:
        problem = f"the written head does not score as trained ({reached})"
        raise ModelError(str(folder), "refused", problem)
    scale = scale_of(written)
    if scale is not None:
        thresholds = {"chunk_low": scale[0], "chunk_high": scale[1]}
        _write_json(folder / CARD, {**card, "thresholds": thresholds})
    return RetrievalHead(folder, encoder)


def _write_json(path: Path, data: Mapping[str, Any]) -> None:
    write_atomically(path, (json.dumps(data, indent=2) + "\n").encode())


def device_of(wanted: str) -> Any:
    """The device to train on: ``auto``, or one by its name in torch."""
    torch = need_torch()
    if wanted == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(wanted)
    except RuntimeError as error:
        problem = f"--device {wanted}: not a device that torch knows"
        raise ConfigError(problem, key="--device") from error
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ConfigError(
            "--device cuda: torch finds no GPU; omit the option to train on the CPU", key="--device"
        )
    return device
