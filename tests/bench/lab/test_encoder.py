"""The simulated encoder: a bag of words with noise."""

import math

import numpy as np
import pytest

from longtake.perception.protocols import ImageTextEncoder
from longtake.types import Frame
from longtake_bench.lab.facts import wish
from longtake_bench.lab.footage import LabEncoder, LabFootage
from longtake_bench.lab.world import make_script

SCRIPT = make_script(6, 20)


def hits(noise, top=1):
    """Share of deeds that a search for them finds among the ``top`` best seconds."""
    footage = LabFootage(SCRIPT, encoder=LabEncoder(noise))
    rows = footage.embeddings()
    hits = []
    for deed in SCRIPT.deeds:
        best = np.argsort(-(rows @ footage.encode([wish(deed.fact)])[0]), kind="stable")[:top]
        hits.append(any(deed.start <= second < deed.end for second in best))
    return sum(hits) / len(hits)


def test_without_noise_what_is_said_is_found_and_noise_hides_it():
    shares = [hits(noise) for noise in (0.0, 2.0, 6.0, math.inf)]
    assert shares[0] > 0.9
    assert shares == sorted(shares, reverse=True)
    assert shares[1] > 0.4
    assert shares[-1] < 0.1


def test_a_random_encoder_gives_no_more_to_the_right_moment_than_to_others():
    encoder = LabEncoder(math.inf)
    rows = encoder.moments(SCRIPT, range(1200))
    texts = encoder.texts([wish(deed.fact) for deed in SCRIPT.deeds])
    right = [
        float(rows[deed.start : deed.end].mean(axis=0) @ text)
        for deed, text in zip(SCRIPT.deeds, texts, strict=True)
    ]
    assert abs(np.mean(right) - float((rows @ texts.T).mean())) < 4 * np.std(right) / math.sqrt(
        len(right)
    )
    clear = LabEncoder(0.0)
    assert (
        float((clear.moments(SCRIPT, [d.start for d in SCRIPT.deeds]) * texts).sum(axis=1).mean())
        > 0.5
    )


def test_a_picture_and_its_second_are_one_vector():
    encoder, footage = LabEncoder(), LabFootage(SCRIPT)
    frames = footage.at([33.0, 700.0, 1100.0], width=320)
    np.testing.assert_array_equal(encoder.images(frames), footage.embeddings()[[33, 700, 1100]])


def test_a_picture_without_a_code_is_noise_but_always_the_same():
    bare = LabFootage(SCRIPT, code=False).at([33.0])
    encoder = LabEncoder()
    np.testing.assert_array_equal(encoder.images(bare), encoder.images(bare))
    assert abs(float(encoder.images(bare)[0] @ LabFootage(SCRIPT).embeddings()[33])) < 0.3


def test_it_keeps_the_protocol():
    encoder = LabEncoder(seed=3)
    assert isinstance(encoder, ImageTextEncoder)
    assert encoder.texts([]).shape == encoder.images([]).shape == (0, encoder.dim)
    rows = encoder.texts(["the red cup", "", "???"])
    assert np.linalg.norm(rows, axis=1) == pytest.approx(1, abs=1e-5)
    assert encoder.images([Frame(0.0, np.zeros((4, 4, 3), np.uint8))]).dtype == np.float32
    assert LabEncoder(seed=4).key != encoder.key


def test_scenes_are_cut_at_its_own_threshold():
    """Neighbouring seconds of a scene are more alike than the threshold says, across a cut less."""
    encoder = LabEncoder()
    rows = encoder.moments(SCRIPT, range(1200))
    cosines = (rows[1:] * rows[:-1]).sum(axis=1)
    cuts = {scene.start for scene in SCRIPT.scenes[1:]}
    inside = [c for second, c in enumerate(cosines, start=1) if second not in cuts]
    across = [c for second, c in enumerate(cosines, start=1) if second in cuts]
    assert np.mean(np.array(inside) > encoder.thresholds["scene"]) > 0.97
    assert np.mean(np.array(across) < encoder.thresholds["scene"]) > 0.9
