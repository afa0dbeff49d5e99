from __future__ import annotations

from PIL import Image

from longtake.plots import draw_sweep


def test_the_grid_is_drawn(tmp_path):
    cells = [
        {
            "acuity": acuity,
            "noise": noise,
            "lead": {"value": acuity - noise / 4, "low": -0.1, "high": 0.2},
        }
        for acuity in (0.4, 0.8)
        for noise in (0.0, 1.0, 2.0)
    ]
    draw_sweep(cells, tmp_path / "grid.png", title="a method")
    assert Image.open(tmp_path / "grid.png").size[0] > 400
