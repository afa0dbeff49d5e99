"""Training the retrieval head: contrastive, with LVAgent's schedule, from checkpoints that continue exactly.

Adam, batches of 64, ten epochs, 1e-4 falling along a cosine. The encoders stay as they are: their vectors are given
(the authors let them move at 1e-7). The order of an epoch follows from the seed and its number, so that a run that was
stopped and one that was not see the same batches.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtake.algorithms.recall import recall
from longtake.errors import ConfigError, ModelError, RunError
from longtake.perception.headfile import Shape, initial, network
from longtake.perception.pooling import MeanPooling
from longtake.perception.protocols import ImageEncoder
from longtake.perception.retrieval import CARD, WEIGHTS, RetrievalHead
from longtake.perception.runtime import Compute
from longtake.training.head import need_torch, scores
from longtake.training.pairs import Pairs

CHECKPOINT = "checkpoint.pt"
KS = (1, 5, 10)
AGREE = 2e-3
"""Most by which the written network may differ from what was trained."""


@dataclass(frozen=True)
class Schedule:
    """How to train; the paper's values."""

    epochs: int = 10
    batch: int = 64
    rate: float = 1e-4
    """Learning rate at the start of the cosine."""
    logit_scale: float = 100.0
    """What cosines are multiplied with in the loss."""
    group: int = 1
    """Clips, in the order of the list, that stay together in a batch: neighbours are the hardest to tell apart."""
    seed: int = 0
    checkpoint_steps: int = 200
    """Steps between checkpoints inside an epoch; one is written after every epoch as well."""


@dataclass
class Progress:
    """What training has come to, epoch by epoch."""

    losses: list[float] = field(default_factory=list)
    recalls: list[dict[str, float]] = field(default_factory=list)
    pooled: dict[str, float] = field(default_factory=dict)
    """Recall of mean pooling on the same held-out clips."""
    pairs_per_second: float = 0.0
    device: str = ""


Tell = Callable[[int, float, Progress], None]
"""Called with the epoch, the share of it that is done, and what is known."""


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
    stop_after: int | None = None,
) -> tuple[dict[str, NDArray[np.float32]], Progress]:
    """Train a head; gives its weights and how it went. ``stop_after`` ends it after so many steps, as a kill would."""
    training = _Training(shape, train, test, schedule, folder, device)
    progress = training.run(resume=resume, tell=tell, stop_after=stop_after)
    return training.plain(), progress


class _Training:
    def __init__(
        self, shape: Shape, train: Pairs, test: Pairs, schedule: Schedule, folder: Path, device: str
    ) -> None:
        self.torch = need_torch()
        if len(train) < 2:
            raise ConfigError(f"{len(train)} clips to train on; contrast needs two")
        self.shape, self.train, self.test, self.schedule, self.folder = (
            shape,
            train,
            test,
            schedule,
            folder,
        )
        self.device = _device(self.torch, device)
        self.weights = {
            name: self.torch.tensor(value, device=self.device, requires_grad=True)
            for name, value in initial(shape, schedule.seed).items()
        }
        self.adam = self.torch.optim.Adam(list(self.weights.values()), lr=schedule.rate)
        self.steps = math.ceil(len(train) / schedule.batch)
        self.half = self.device.type == "cuda" and self.torch.cuda.is_bf16_supported()
        self.spec = {
            "shape": shape.plain(),
            "schedule": asdict(schedule),
            "clips": len(train),
            "tested": len(test),
        }

    def run(self, *, resume: bool, tell: Tell, stop_after: int | None) -> Progress:
        progress, epoch, step, total = self._begin(resume)
        progress.device = self._device_name()
        progress.pooled = recalls(pooled_scores(self.test))
        taken = 0
        while epoch < self.schedule.epochs:
            order = order_of(len(self.train), self.schedule, epoch)
            began, seen = time.perf_counter(), 0
            while step < self.steps:
                chosen = order[step * self.schedule.batch : (step + 1) * self.schedule.batch]
                if len(chosen) > 1:  # a last pair alone has nothing to be told from
                    total += self._step(chosen, epoch * self.steps + step)
                    seen += len(chosen)
                step, taken = step + 1, taken + 1
                if seen:
                    progress.pairs_per_second = seen / max(time.perf_counter() - began, 1e-9)
                tell(epoch, step / self.steps, progress)
                if step % self.schedule.checkpoint_steps == 0 and step < self.steps:
                    self._save(progress, epoch, step, total)
                if stop_after is not None and taken >= stop_after:
                    return progress
            progress.losses.append(total / self.steps)
            progress.recalls.append(recalls(self.scored(self.test)))
            epoch, step, total = epoch + 1, 0, 0.0
            self._save(progress, epoch, step, total)
            tell(epoch - 1, 1.0, progress)
        return progress

    def _step(self, chosen: NDArray[np.int64], number: int) -> float:
        """One batch: each clip must find its text among all texts, and each text its clip."""
        torch, schedule = self.torch, self.schedule
        share = number / (schedule.epochs * self.steps)
        self.adam.param_groups[0]["lr"] = 0.5 * schedule.rate * (1 + math.cos(math.pi * share))
        some = self.train.only(chosen.tolist())
        frames, mask, texts = self._given(some)
        logits = schedule.logit_scale * scores(
            self.weights, self.shape, frames, mask, texts, half=self.half
        )
        target = torch.arange(len(some), device=self.device)
        entropy = torch.nn.functional.cross_entropy
        loss = (entropy(logits, target) + entropy(logits.T, target)) / 2
        self.adam.zero_grad(set_to_none=True)
        loss.backward()
        self.adam.step()
        return float(loss.detach())

    def scored(self, pairs: Pairs) -> NDArray[np.float32]:
        """``scores[text, clip]`` over all of them."""
        torch, rows = self.torch, []
        texts = torch.tensor(pairs.texts, dtype=torch.float32, device=self.device)
        with torch.no_grad():
            for start in range(0, len(pairs), self.schedule.batch):
                some = pairs.only(list(range(start, min(start + self.schedule.batch, len(pairs)))))
                frames, mask, _ = self._given(some)
                rows.append(
                    scores(self.weights, self.shape, frames, mask, texts).float().cpu().numpy()
                )
        return np.asarray(np.concatenate(rows).T, np.float32)

    def _given(self, pairs: Pairs) -> tuple[Any, Any, Any]:
        torch = self.torch
        frames = torch.tensor(pairs.frames, device=self.device).float()
        counts = torch.tensor(pairs.counts, device=self.device)
        mask = torch.arange(frames.shape[1], device=self.device)[None] < counts[:, None]
        return frames, mask, torch.tensor(pairs.texts, device=self.device).float()

    def _begin(self, resume: bool) -> tuple[Progress, int, int, float]:
        file = self.folder / CHECKPOINT
        if not file.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            return Progress(), 0, 0, 0.0
        if not resume:
            raise RunError(
                f"{self.folder}: holds a checkpoint; pass --resume to go on, or choose another folder"
            )
        stored = self.torch.load(file, map_location=self.device, weights_only=True)
        if stored["spec"] != self.spec:
            raise RunError(
                f"{self.folder}: its checkpoint is of another training ({stored['spec']})"
            )
        with self.torch.no_grad():
            for name, value in stored["weights"].items():
                self.weights[name].copy_(value)
        self.adam.load_state_dict(stored["adam"])
        return Progress(**stored["progress"]), stored["epoch"], stored["step"], stored["total"]

    def _save(self, progress: Progress, epoch: int, step: int, total: float) -> None:
        weights = {name: value.detach() for name, value in self.weights.items()}
        state = {
            "spec": self.spec,
            "weights": weights,
            "adam": self.adam.state_dict(),
            "epoch": epoch,
            "step": step,
            "total": total,
            "progress": asdict(progress),
        }
        draft = self.folder / f".{CHECKPOINT}"
        self.torch.save(state, draft)
        draft.replace(self.folder / CHECKPOINT)

    def plain(self) -> dict[str, NDArray[np.float32]]:
        return {name: value.detach().float().cpu().numpy() for name, value in self.weights.items()}

    def _device_name(self) -> str:
        if self.device.type != "cuda":
            return f"{self.device.type}, {self.torch.get_num_threads()} threads"
        return f"{self.torch.cuda.get_device_name(self.device)}{', bfloat16' if self.half else ''}"


def order_of(count: int, schedule: Schedule, epoch: int) -> NDArray[np.int64]:
    """The order of an epoch: groups shuffled by seed and epoch."""
    groups = np.array_split(np.arange(count), range(schedule.group, count, schedule.group))
    shuffled = np.random.default_rng((schedule.seed, epoch)).permutation(len(groups))
    return np.concatenate([groups[number] for number in shuffled])


def export(
    folder: Path,
    shape: Shape,
    weights: Mapping[str, NDArray[np.float32]],
    test: Pairs,
    progress: Progress,
    encoder: ImageEncoder,
    schedule: Schedule,
) -> RetrievalHead:
    """Write the head that the default install runs, and its card; what was written is run before it is trusted."""
    card = {
        "encoder": {"name": encoder.name, "key": encoder.key, "dim": encoder.dim},
        **shape.plain(),
        "schedule": asdict(schedule),
        "recall": progress.recalls[-1] if progress.recalls else {},
        "mean_pooling": progress.pooled,
    }
    (folder / WEIGHTS).write_bytes(network(shape, weights))
    _write_json(folder / CARD, card)
    head = RetrievalHead(folder, encoder, compute=Compute(threads=1))
    found = np.stack(
        [head.scores(test.clip(n), np.asarray(test.texts, np.float32)) for n in range(len(test))]
    ).T
    expected = recalls(found)
    if progress.recalls and abs(expected["1"] - progress.recalls[-1]["1"]) > max(
        AGREE, 2 / len(test)
    ):
        raise ModelError(
            str(folder), "refused", f"the written head does not score as trained ({expected})"
        )
    if (ends := scale_of(found)) is not None:
        _write_json(
            folder / CARD, {**card, "thresholds": {"chunk_low": ends[0], "chunk_high": ends[1]}}
        )
    return RetrievalHead(folder, encoder, compute=Compute(threads=1))


def scale_of(found: NDArray[np.floating]) -> tuple[float, float] | None:
    """The scores that count as 0 and as 1: the medians of clips with other captions and with their own.

    ``None`` where the second does not lie above the first.
    """
    own = np.diag(found)
    other = found[~np.eye(len(found), dtype=bool)]
    if not len(other) or float(np.median(own)) <= float(np.median(other)):
        return None
    return round(float(np.median(other)), 6), round(float(np.median(own)), 6)


def pooled_scores(pairs: Pairs) -> NDArray[np.float32]:
    """``scores[text, clip]`` by mean pooling."""
    texts, pooling = np.asarray(pairs.texts, np.float32), MeanPooling()
    return np.stack([pooling.scores(pairs.clip(number), texts) for number in range(len(pairs))]).T


def recalls(found: NDArray[np.floating], ks: Sequence[int] = KS) -> dict[str, float]:
    """Recall at 1, 5 and 10."""
    return {str(k): round(recall(found, k), 6) for k in ks}


def _write_json(path: Path, data: Mapping[str, Any]) -> None:
    draft = path.with_name(f".{path.name}")
    draft.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
    draft.replace(path)


def _device(torch: Any, wanted: str) -> Any:
    if wanted == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(wanted)
    except RuntimeError as error:
        raise ConfigError(
            f"--device {wanted}: not a device that torch knows", key="--device"
        ) from error
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ConfigError(
            "--device cuda: torch finds no GPU here; leave it out to train on the CPU",
            key="--device",
        )
    return device
