"""The frame code must not help or hinder anything that looks at pictures."""

import numpy as np

from longtake.algorithms import novelty
from longtake.lab.footage import LabFootage
from longtake.lab.world import make_script


def cues(frames):
    """The event partition's pixel cues, frame by frame."""
    greys = [novelty.grey(frame.pixels) for frame in frames]
    histograms = np.stack([novelty.colour_histograms(frame.pixels) for frame in frames])
    return {
        "colour": novelty.colour_novelty(histograms),
        "motion": np.array([novelty.motion(b, a) for a, b in zip(greys, greys[1:], strict=False)]),  # noqa: RUF007
        "sharpness": novelty.absolute_change(np.array([novelty.sharpness(grey) for grey in greys])),
    }


def test_event_cues_agree_with_and_without_the_code():
    script = make_script(5, 10)
    times = np.linspace(0, 599, 120).tolist()
    coded, plain = (cues(LabFootage(script, code=code).at(times)) for code in (True, False))
    for name in coded:
        assert np.corrcoef(coded[name], plain[name])[0, 1] > 0.95, name
