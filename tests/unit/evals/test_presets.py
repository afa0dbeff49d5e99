from __future__ import annotations

import pytest

from longtake.errors import ConfigError
from longtake.evals import presets
from longtake.evals.benchmarks import about
from longtake.methods.base import configure
from longtake.registry import methods


@pytest.mark.parametrize("name", presets.names())
def test_every_preset_names_things_that_exist(name):
    preset = presets.read(name)
    assert set(preset.options) <= set(about(preset.benchmark).options)
    configure(methods.get(preset.method), preset.fields)
    assert preset.used
    assert all(0 < figure.accuracy < 100 and figure.where for figure in preset.published)


def test_an_unknown_preset_names_the_nearest():
    with pytest.raises(ConfigError, match="videoagent-egoschema"):
        presets.read("videoagent-egoshema")
