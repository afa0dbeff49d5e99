from __future__ import annotations

import pytest
from PIL import Image

from longtake.errors import ConfigError
from longtake.plots import draw_training

CURVES = {
    "losses": [2.0, 1.0],
    "recalls": [{"1": 0.2, "5": 0.5}, {"1": 0.4, "5": 0.7}],
    "pooled": {"1": 0.3, "5": 0.6},
}


def test_curves_are_drawn(tmp_path):
    draw_training(**CURVES, path=tmp_path / "curves.png", title="what $ costs")
    assert Image.open(tmp_path / "curves.png").size[0] > 500


def test_a_plot_that_cannot_be_written_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="known endings"):
        draw_training(**CURVES, path=tmp_path / "curves.doc", title="x")
