"""The retrieval head and encoder fine-tuning at LVAgent's rates, on films of the laboratory.

    python benchmarks/retriever.py --out RUN            # about two minutes on an H200
    python benchmarks/retriever.py --out RUN --tiny     # does it run? about a minute on a CPU

Three sets of worlds have no film in common. On the first an encoder of CLIP's shape is trained from
nothing, frame by frame: it stands for the published CLIP, which cannot be had where this was
measured. On the second the head is trained with the paper's schedule (ten epochs, batches of 64,
Adam, 1e-4 along a cosine), once with the encoder as it is and once with the encoder trained too, at
1e-7. The third is held out: every clip is searched by its caption among all clips.

A clip is five deeds in a row at one place, seen in at most 16 frames; its caption tells one of the
deeds that a frame shows, as LVAgent looks for a moment in a chunk. Frames are those that a film
would show, one a second, before they are encoded as video. Needs torch and transformers.
"""

import argparse
import json
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from longtake.algorithms import sampling
from longtake.perception.retriever import Shape
from longtake.perception.torch_encoder import TorchImageTextEncoder, TrainableEncoder
from longtake.types import Frame, Segment
from longtake_bench.lab import vocabulary as v
from longtake_bench.lab.drawing import Painter
from longtake_bench.lab.facts import Sign, sentence
from longtake_bench.lab.profile import numbers
from longtake_bench.lab.world import Script, make_script
from longtake_bench.report import table
from longtake_bench.scoring import paired
from longtake_bench.training.data import CaptionedClip, Dropped, Pairs, embed
from longtake_bench.training.fit import (
    Schedule,
    TrainingProgress,
    device_of,
    encoded,
    export,
    fit,
    pooled_scores,
    recalls,
)

DEEDS = 5
"""Deeds in a clip."""
STRIDES = {1: 1, 2: DEEDS}
"""Deeds between two clips of a part: only to train on they overlap."""
FRAMES = 16
SIDE, PATCH, WIDTH, LAYERS = 128, 16, 256, 6
WORDS = 77
"""Tokens of a text, as in CLIP."""


def main() -> None:
    """Train, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--tiny", action="store_true")
    args = parser.parse_args()
    worlds, minutes, steps, batch = (50, 50, 20), 20, 600, 512
    epochs, processes = Schedule.epochs, 16
    if args.tiny:
        worlds, minutes, steps, batch = (1, 1, 1), 8, 4, 16
        epochs, processes = 1, 2
    args.out.mkdir(parents=True, exist_ok=True)
    films = paint(worlds, minutes, processes)
    tell("painted", sum(len(film.pixels) for part in films for film in part), "frames")
    device = device_of("auto")
    losses = pretrain(films[0], args.out / "clip", steps, batch, device)
    tell("encoder trained, loss", f"{losses[0]:.2f} to {losses[-1]:.2f}")
    encoder = TorchImageTextEncoder(args.out / "clip", name="lab-clip")
    train, test = (pairs_of(films[part], encoder, STRIDES[part]) for part in (1, 2))
    tell("clips", len(train), "to train on,", len(test), "held out")
    results = []
    # without training, with the encoder as it is, and with the encoder at the paper's rate
    for count, rate in ((0, 0.0), (epochs, 0.0), (epochs, 1e-7)):
        results.append(run(train, test, encoder, count, rate, args.out, device))
        tell(count, "epochs, encoder rate", rate)
        report(results, test)
    tell("done")


STARTED = time.perf_counter()


def tell(*words: object) -> None:
    """Print what was done, and when."""
    print(f"{time.perf_counter() - STARTED:6.1f} s", *words, flush=True)


class Painted:
    """A film of the laboratory as it is painted, for :func:`embed`; only some seconds are."""

    def __init__(self, script: Script, seconds: Sequence[int], pixels: NDArray[np.uint8]) -> None:
        self.script, self.seconds, self.pixels = script, seconds, pixels
        self.name, self.duration = script.name, script.duration
        self.times = np.arange(int(script.duration), dtype=np.float64)
        self._rows = {second: row for row, second in enumerate(seconds)}

    def at(self, times: Sequence[float]) -> list[Frame]:
        """The frames at whole seconds."""
        return [Frame(time, self.pixels[self._rows[int(time)]]) for time in times]


def paint(worlds: Sequence[int], minutes: int, processes: int) -> list[list[Painted]]:
    """Films in three parts, by seeds that follow one another."""
    tasks = [(part, minutes) for part, count in enumerate(worlds) for _ in range(count)]
    seeds = range(8000, 8000 + len(tasks))
    films: list[list[Painted]] = [[] for _ in worlds]
    # forked before the GPU is touched: other ways import torch in every process
    with ProcessPoolExecutor(processes, get_context("fork")) as pool:
        for (part, _), painted in zip(tasks, pool.map(painted_film, seeds, tasks), strict=True):
            films[part].append(painted)
    return films


def painted_film(seed: int, task: tuple[int, int]) -> Painted:
    """The seconds that a part needs, without the code that names the second."""
    part, minutes = task
    script = make_script(seed, minutes)
    if part == 0:
        # the first and the last second at which the same can be seen
        ends: dict[str, list[int]] = {}
        for second in range(int(script.duration)):
            ends.setdefault(seen_in(script, second), [second, second])[1] = second
        needed = {second for both in ends.values() for second in both}
    else:
        needed = {int(s) for clip in clips_of(script, STRIDES[part]) for s in seconds_of(clip)}
    seconds = sorted(needed)
    painter = Painter(script, code=False)
    frames = np.empty((len(seconds), SIDE, SIDE, 3), np.uint8)
    for row, second in enumerate(seconds):
        picture = Image.fromarray(painter.frame(float(second)))
        frames[row] = picture.resize((SIDE, SIDE), Image.Resampling.BICUBIC)
    return Painted(script, seconds, frames)


def seconds_of(clip: CaptionedClip) -> NDArray[np.int64]:
    """The seconds of a clip that are shown."""
    start, end = int(clip.segment.start), int(clip.segment.end)
    return np.asarray(start + sampling.uniform(end - start, FRAMES))


def clips_of(script: Script, stride: int) -> list[CaptionedClip]:
    """Five deeds in a row at one place; with stride 5 no deed is in two clips."""
    random = numbers("retriever", script.name)
    clips = []
    for scene in script.scenes:
        for first in range(0, len(scene.deeds) - DEEDS + 1, stride):
            deeds = scene.deeds[first : first + DEEDS]
            segment = Segment(float(deeds[0].start), float(deeds[-1].end))
            clip = CaptionedClip(script.name, segment, "")
            shown = [d for d in deeds if any(d.start <= s < d.end for s in seconds_of(clip))]
            told = shown[random.integers(len(shown))]
            if segment.duration >= 5:
                clips.append(replace(clip, caption=sentence(told.fact)))
    return clips


def pairs_of(films: Sequence[Painted], encoder: TorchImageTextEncoder, stride: int) -> Pairs:
    """All clips of the films, as pictures and captions."""
    clips = [clip for film in films for clip in clips_of(film.script, stride)]
    by_name: dict[str, Any] = {film.name: film for film in films}
    return embed(clips, Dropped(), by_name.__getitem__, FRAMES, squares=encoder.squares)


def pretrain(
    films: Sequence[Painted], folder: Path, steps: int, batch: int, device: Any
) -> list[float]:
    """Train an encoder of CLIP's shape on single frames and what is seen in them."""
    from transformers import CLIPConfig, CLIPModel

    torch.manual_seed(0)
    words = {"hidden_size": WIDTH, "intermediate_size": 4 * WIDTH, "num_attention_heads": 8}
    tokenizer = write_tokenizer(folder)
    config = CLIPConfig(
        text_config=words
        | {"num_hidden_layers": 4, "vocab_size": len(tokenizer), "max_position_embeddings": WORDS}
        | {"eos_token_id": tokenizer.eos_token_id, "bos_token_id": tokenizer.bos_token_id},
        vision_config=words
        | {"num_hidden_layers": LAYERS, "image_size": SIDE, "patch_size": PATCH},
        projection_dim=WIDTH,
    )
    model = CLIPModel(config)
    model.save_pretrained(folder)
    prepare = {"size": {"height": SIDE, "width": SIDE}, "resample": 3}
    prepare |= {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}
    (folder / "preprocessor_config.json").write_text(json.dumps(prepare))
    encoder = TrainableEncoder(TorchImageTextEncoder(folder, name="lab-clip"), device)
    model = encoder.model
    pixels = torch.from_numpy(np.concatenate([film.pixels for film in films])).permute(0, 3, 1, 2)
    pixels = pixels.contiguous().to(device)
    # a batch has no caption twice: neighbours show the same, which would count as wrong
    by_caption: dict[str, list[int]] = {}
    moments = [(film.script, second) for film in films for second in film.seconds]
    for number, moment in enumerate(moments):
        by_caption.setdefault(seen_in(*moment), []).append(number)
    distinct = list(by_caption)
    random = np.random.default_rng(0)
    peak = 5e-4
    adam = torch.optim.AdamW(model.parameters(), lr=peak, weight_decay=0.1, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.OneCycleLR(adam, peak, total_steps=steps, pct_start=0.1)
    losses = []
    for _ in range(steps):
        chosen = random.choice(len(distinct), min(batch, len(distinct)), replace=False)
        texts = [distinct[number] for number in chosen]
        frames = [int(random.choice(by_caption[text])) for text in texts]
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=device.type == "cuda"):
            images = encoder.images(pixels[torch.tensor(frames, device=device)])
            words_read = encoder.texts(texts)
        logits = model.logit_scale.exp().clamp(max=100) * images @ words_read.T
        target = torch.arange(len(texts), device=device)
        entropy = torch.nn.functional.cross_entropy
        loss = (entropy(logits, target) + entropy(logits.T, target)) / 2
        adam.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        schedule.step()
        losses.append(float(loss.detach()))
    model.save_pretrained(folder)
    return losses


def seen_in(script: Script, second: int) -> str:
    """What is visible at a second; the letters of a sign are too small to be read."""
    facts = script.visible(second)
    told = [sentence(Sign(f.colour, None, f.place) if isinstance(f, Sign) else f) for f in facts]
    where = f"At the {script.scene_at(second).place}, "
    return where + ", and ".join(line.removeprefix(where).rstrip(".") for line in told[:-1] or told)


def write_tokenizer(folder: Path) -> Any:
    """A tokenizer of the laboratory's words."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    sentences = "at the person in coat and stands still there is a an sign this then , . somebody"
    listed = [*sentences.split(), *v.COLOURS, *v.VERBS.values(), *v.THINGS, *v.PLACES]
    listed += [word for hat in v.HATS for word in hat.split()]
    known = ["<pad>", "<unk>", "<s>", "</s>", *dict.fromkeys(listed)]
    words = Tokenizer(models.WordLevel({w: n for n, w in enumerate(known)}, unk_token="<unk>"))
    words.normalizer = normalizers.Lowercase()
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 2), ("</s>", 3)]
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=words,
        model_max_length=WORDS,
        pad_token="<pad>",
        unk_token="<unk>",
        bos_token="<s>",
        eos_token="</s>",
    )
    tokenizer.save_pretrained(folder)
    return tokenizer


def run(
    train: Pairs,
    test: Pairs,
    encoder: TorchImageTextEncoder,
    epochs: int,
    rate: float,
    out: Path,
    device: Any,
) -> dict[str, Any]:
    """Train a head, and the encoder at this rate; score the held-out clips as they are exported."""
    tuned = TrainableEncoder(encoder, device)
    before = encoded(tuned, test)
    schedule = Schedule(epochs=epochs, encoder_rate=rate, checkpoint_steps=10**9)
    folder = out / f"head-{epochs}-{rate:g}"
    shape = Shape(encoder.dim, frames=FRAMES)
    given = (train, test) if rate else (encoded(tuned, train), before)
    trained = tuned if rate else None
    weights, made = fit(
        shape, *given, schedule, folder, device=str(device), encoder=trained, tell=show
    )
    after = encoded(tuned, test)
    written = tuned.save(folder / "encoder") if rate else encoder
    head = export(folder, shape, weights, after, made, written, schedule)
    texts = np.asarray(after.texts, np.float32)
    return {
        "epochs": epochs,
        "rate": rate,
        "made": made,
        "head": np.stack([head.scores(after.clip(n), texts) for n in range(len(after))]).T,
        "pooled before": pooled_scores(before),
        "pooled after": pooled_scores(after),
    }


def show(epoch: int, share: float, made: TrainingProgress) -> None:
    """A line per epoch."""
    if share == 1.0 and len(made.recalls) > epoch:
        loss = made.losses[epoch]
        print(f"  epoch {epoch + 1}: loss {loss:.4f}", made.recalls[epoch], flush=True)


def report(results: Sequence[dict[str, Any]], test: Pairs) -> None:
    """Print the table."""
    rows: dict[str, Any] = {"mean pooling": results[0]["pooled before"]}
    for each in results:
        if each["rate"]:
            rows[f"mean pooling, encoder at {each['rate']:g}"] = each["pooled after"]
        trained = f"encoder at {each['rate']:g}" if each["rate"] else "encoder as it is"
        rows[f"head, {trained}" if each["epochs"] else "head, untrained"] = each["head"]
    base = found(rows["mean pooling"])
    lines = []
    for name, scores in rows.items():
        gap = paired(found(scores), base, test.videos.tolist())
        lead = f"{100 * gap.value:+.1f} [{100 * gap.low:+.1f}, {100 * gap.high:+.1f}]"
        lines.append([name, *(f"{100 * each:.1f}" for each in recalls(scores).values()), lead])
    print(table(("", "recall@1", "@5", "@10", "lead at 1 (95 %)"), lines), flush=True)


def found(scores: NDArray[np.floating]) -> NDArray[np.floating]:
    """Which captions find their clip first."""
    return (scores.argmax(axis=1) == np.arange(len(scores))).astype(float)


if __name__ == "__main__":
    main()
