"""Training the head: it learns, resumes exactly, and the written head scores as trained."""

import json
import sys

import numpy as np
import pytest
import tinymodels
from films import FILMS

from longtake import cli
from longtake.errors import ConfigError, MissingExtra, RunError
from longtake.perception.retriever import RetrievalHead, Shape, initial
from longtake.perception.torch_encoder import TorchImageTextEncoder, TrainableEncoder
from longtake_bench.training import data
from longtake_bench.training.data import stack
from longtake_bench.training.fit import (
    Schedule,
    device_of,
    export,
    fit,
    need_torch,
    order_of,
    recalls,
    scale_of,
    scores,
)

try:
    import torch
except ImportError:
    torch = None
trains = pytest.mark.skipif(
    torch is None, reason="torch is not installed (extra train); training is not tested"
)

SHAPE = Shape(dim=16, layers=1, heads=2, frames=4)


class Encoder:
    name, key, dim, size = "tiny", "tiny:1", 16, 224

    def images(self, frames):
        raise AssertionError


def ordered_pairs(count, seed):
    """Clips of two things in either order; a text names both, and its tail which comes first."""
    random = np.random.default_rng(seed)
    clips, texts = [], []
    things = np.eye(16, dtype=np.float32)[:8]
    for _ in range(count // 2):
        one, other = things[random.choice(8, 2, replace=False)]
        for first, second in ((one, other), (other, one)):
            noise = 0.05 * random.normal(size=(4, 16))
            clips.append((np.stack([first, first, second, second]) + noise).astype(np.float32))
            texts.append(first + second + np.roll(first, 8))
    texts = np.stack(texts)
    texts /= np.linalg.norm(texts, axis=1, keepdims=True)
    return stack(clips, texts.astype(np.float32), [f"v{n // 4}" for n in range(len(clips))], 4)


def train(folder, *words):
    """The command, for a list of clips in a folder."""
    line = ("train-retriever", folder / "clips.json", "--out", folder / "head", *words)
    return [str(word) for word in line]


QUICK = Schedule(epochs=3, batch=16, rate=3e-3, group=2, checkpoint_steps=2)


def test_without_torch_one_line_says_what_to_install(monkeypatch, capsys, tmp_path):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtra):
        need_torch()
    assert (
        cli.run(["train-retriever", str(tmp_path / "clips.jsonl"), "--out", str(tmp_path / "head")])
        == 2
    )
    out, err = capsys.readouterr()
    assert (out, err.strip().count("\n")) == ("", 0)
    assert 'pip install "longtake[train]"' in err


def test_the_order_of_an_epoch_follows_from_the_seed_and_keeps_groups_together():
    first = order_of(10, Schedule(group=2, seed=1), 0)
    assert sorted(first.tolist()) == list(range(10))
    assert all(b == a + 1 for a, b in first.reshape(-1, 2).tolist())
    assert first.tolist() == order_of(10, Schedule(group=2, seed=1), 0).tolist()
    assert first.tolist() != order_of(10, Schedule(group=2, seed=1), 1).tolist()
    assert sorted(order_of(7, Schedule(group=3), 0).tolist()) == list(range(7))


def test_the_ends_of_the_scale_are_medians_of_wrong_and_right_pairs():
    scored = np.array([[0.8, 0.1, 0.2], [0.1, 0.6, 0.3], [0.2, 0.2, 0.7]])
    assert scale_of(scored) == (0.2, 0.7)
    assert scale_of(np.zeros((3, 3))) is None


def test_a_film_list_is_prepared_without_torch(film_folder, tmp_path, capsys):
    path = FILMS[0].make(film_folder)
    rows = [
        {"video": path.name, "start": 0, "end": 9, "caption": "a b c " * 10},
        {"video": path.name, "start": 0, "end": 2, "caption": "a b c " * 10},
        {"video": "nowhere.mp4", "start": 0, "end": 9, "caption": "a b c " * 10},
    ]
    (tmp_path / "clips.json").write_text(json.dumps(rows))
    command = train(tmp_path, "--videos", path.parent, "--dry-run", "--json")
    assert cli.run(command) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["kept"] == 1
    assert "dropped 1: shorter than 5 s" in err
    assert "dropped 1: film cannot be read" in err


def test_an_encoder_that_cannot_be_trained_is_named():
    with pytest.raises(ConfigError, match=r"tiny cannot be trained; set perception\.images=trans"):
        data._squares(Encoder())


def test_that_no_clip_is_left_says_why(tmp_path, capsys):
    row = {"video": "nowhere.mp4", "start": 0, "end": 9, "caption": "a b c " * 10}
    (tmp_path / "clips.json").write_text(json.dumps([row, {**row, "end": 2}, {**row, "end": 3}]))
    command = train(tmp_path, "--dry-run")
    assert cli.run(command) == 2
    err = capsys.readouterr().err
    assert "no clips left to train on (dropped 2: shorter than 5 s" in err
    assert "dropped 1: film cannot be read" in err
    (tmp_path / "clips.json").write_text("[]")
    assert cli.run(command) == 2
    assert "clips.json lists none" in capsys.readouterr().err


@trains
def test_the_loss_falls_and_order_is_learnt(tmp_path):
    train, test = ordered_pairs(400, 0), ordered_pairs(40, 1)
    weights, made = fit(
        SHAPE, train, test, Schedule(epochs=12, batch=32, rate=3e-3, group=2), tmp_path
    )
    assert made.losses[-1] < made.losses[0] / 2
    assert made.recalls[-1]["1"] > made.pooled["1"] + 0.2
    assert made.pairs_per_second > 0
    assert made.device.startswith("cpu")
    head = export(tmp_path, SHAPE, weights, test, made, Encoder(), QUICK)
    texts = np.asarray(test.texts, np.float32)
    written = np.stack([head.scores(test.clip(n), texts) for n in range(len(test))]).T
    assert recalls(written) == pytest.approx(made.recalls[-1], abs=0.03)
    assert head.thresholds["chunk_low"] < head.thresholds["chunk_high"]


class Killed(Exception):
    """Ends a training as the death of its process would."""


def kill_after(steps):
    """Reports progress until so many steps are done; nothing is saved after the last of them."""
    left = iter(range(steps))

    def tell(epoch, share, progress):
        if next(left, None) is None:
            raise Killed

    return tell


@trains
@pytest.mark.parametrize("killed_after", [3, 5, 13])
def test_resumed_equals_unbroken(tmp_path, killed_after):
    train, test = ordered_pairs(96, 0), ordered_pairs(16, 1)
    whole, made = fit(SHAPE, train, test, QUICK, tmp_path / "whole")
    with pytest.raises(Killed):
        fit(SHAPE, train, test, QUICK, tmp_path / "broken", tell=kill_after(killed_after))
    again, resumed = fit(SHAPE, train, test, QUICK, tmp_path / "broken", resume=True)
    assert all(np.array_equal(whole[name], again[name]) for name in whole)
    assert (resumed.losses, resumed.recalls) == (made.losses, made.recalls)


@trains
def test_a_checkpoint_is_not_overwritten_or_continued_by_mistake(tmp_path):
    train, test = ordered_pairs(32, 0), ordered_pairs(8, 1)
    fit(SHAPE, train, test, QUICK, tmp_path)
    with pytest.raises(RunError, match="--resume"):
        fit(SHAPE, train, test, QUICK, tmp_path)
    with pytest.raises(RunError, match="another training"):
        fit(SHAPE, train, test, Schedule(epochs=4), tmp_path, resume=True)


@trains
def test_half_precision_changes_little_and_leaves_the_cosines_whole():
    weights = {name: torch.tensor(value) for name, value in initial(SHAPE, 0).items()}
    data = ordered_pairs(16, 0)
    frames, texts = torch.tensor(data.frames).float(), torch.tensor(data.texts).float()
    mask = torch.ones(frames.shape[:2], dtype=torch.bool)
    whole, half = (scores(weights, SHAPE, frames, mask, texts, half=half) for half in (False, True))
    assert half.dtype == torch.float32
    assert float((whole - half).abs().max()) < 0.01


@trains
def test_mistakes(tmp_path):
    train, test = ordered_pairs(32, 0), ordered_pairs(8, 1)
    with pytest.raises(ConfigError, match="contrast needs two"):
        fit(SHAPE, train.only([0]), test, QUICK, tmp_path)
    with pytest.raises(ConfigError, match="not a device"):
        fit(SHAPE, train, test, QUICK, tmp_path, device="toaster")


@trains
def test_the_command_trains_and_says_how_fast(film_folder, tmp_path, capsys):
    films = [film.make(film_folder) for film in FILMS[:2]]
    rows = [
        {"video": film.name, "start": start, "end": start + 5, "caption": f"at {start} " * 10}
        for film in films
        for start in (0, 1, 2, 3)
    ]
    (tmp_path / "clips.json").write_text(json.dumps(rows))
    small = ("--epochs", 2, "--layers", 1, "--device", "cpu")
    command = train(tmp_path, "--videos", films[0].parent, *small)
    assert cli.run(command) == 0
    out, err = capsys.readouterr()
    assert "pairs/s" in out
    assert "mean pooling" in out
    assert "epoch 2: loss" in err
    assert {"head.npz", "head.json", "checkpoint.pt"} <= {
        p.name for p in (tmp_path / "head").iterdir()
    }


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    pytest.importorskip("transformers", reason="needs the extra gpu")
    return tinymodels.clip_folder(tmp_path_factory.mktemp("clip"))


def pictures(count, seed):
    """Clips of two plain colours, and captions that name them."""
    random = np.random.default_rng(seed)
    shades = {"red": (250, 0, 0), "street": (0, 250, 0), "runs": (0, 0, 250), "the": (250, 250, 0)}
    clips, texts = [], []
    for _ in range(count):
        one, other = random.choice(list(shades), 2, replace=False)
        pixels = np.array([shades[one]] * 2 + [shades[other]] * random.integers(1, 3), np.uint8)
        clips.append(np.broadcast_to(pixels[:, :, None, None], (len(pixels), 3, 28, 28)))
        texts.append(f"{one} a {other}")
    return stack(clips, np.array(texts), [f"v{n}" for n in range(count)], 4)


@trains
def test_the_encoder_is_trained_at_its_own_rate_and_resumes_exactly(clip, tmp_path):
    encoder = TorchImageTextEncoder(clip, name="tiny")
    shape = Shape(dim=16, layers=1, heads=2, frames=4)
    schedule = Schedule(epochs=3, batch=8, encoder_rate=1e-7, checkpoint_steps=1)

    def trained(folder, **given):
        tuned = TrainableEncoder(encoder, device_of("cpu"))
        given |= {"encoder": tuned, "device": "cpu"}
        fit(shape, pictures(16, 0), pictures(6, 1), schedule, folder, **given)
        return tuned

    before = TrainableEncoder(encoder, device_of("cpu")).model.state_dict()
    whole = trained(tmp_path / "whole")
    moved = [
        float((value - before[name]).abs().max())
        for name, value in whole.model.state_dict().items()
        if "embedding" in name and value.is_floating_point()
    ]
    # Adam moves a weight by about the rate a step, which here falls along a cosine over six
    assert 1e-7 < max(moved) < 6e-7
    with pytest.raises(Killed):
        trained(tmp_path / "broken", tell=kill_after(4))
    again = trained(tmp_path / "broken", resume=True).model.state_dict()
    assert all(torch.equal(value, again[name]) for name, value in whole.model.state_dict().items())


@trains
def test_the_command_saves_the_encoder_that_it_trained(clip, film_folder, tmp_path, capsys):
    films = [film.make(film_folder) for film in FILMS[:2]]
    rows = [
        {"video": film.name, "start": start, "end": start + 5, "caption": f"red car {start} " * 3}
        for film in films
        for start in (0, 1, 2)
    ]
    (tmp_path / "clips.jsonl").write_text("\n".join(map(json.dumps, rows)))
    out = tmp_path / "head"
    command = ["train-retriever", str(tmp_path / "clips.jsonl"), "--out", str(out)]
    command += ["--videos", str(films[0].parent), "--epochs", "1", "--layers", "1", "--heads", "2"]
    command += ["--least-tokens", "5", "--device", "cpu", "--encoder-rate", "1e-3", "--set"]
    command += ["perception.images=transformers", "--set", f"perception.images_folder={clip}"]
    assert cli.run(command) == 0, capsys.readouterr().err
    told = capsys.readouterr().out
    assert f"perception.images_folder={out / 'encoder'}" in told
    # the head belongs to the encoder as it was trained, not as it was
    tuned = TorchImageTextEncoder(out / "encoder", name="transformers")
    assert RetrievalHead(out, tuned).key
    with pytest.raises(ConfigError, match="was trained on vectors of"):
        RetrievalHead(out, TorchImageTextEncoder(clip, name="transformers"))
