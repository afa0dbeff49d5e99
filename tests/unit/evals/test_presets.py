from __future__ import annotations

import pytest

from longtake.cli.reproduce import estimate
from longtake.errors import ConfigError
from longtake.evals import presets
from longtake.evals.benchmarks import about
from longtake.methods.base import configure
from longtake.registry import methods

CELLS = [
    pytest.param(cell, id=f"{paper}-{table.table}-{cell.folder}")
    for paper in presets.papers()
    for table in presets.read_paper(paper).tables
    for cell in table.cells
]


@pytest.mark.parametrize("name", presets.names())
def test_every_preset_names_things_that_exist(name):
    preset = presets.read(name)
    assert set(preset.options) <= set(about(preset.benchmark).options)
    configure(methods.get(preset.method), preset.fields)
    assert preset.used
    assert all(0 < figure.accuracy < 100 and figure.where for figure in preset.published)


@pytest.mark.parametrize("cell", CELLS)
def test_every_row_of_a_table_can_be_configured(cell):
    experiment = cell.experiment
    assert 0 < cell.published < 100
    configure(methods.get(experiment.method), experiment.fields)
    assert "a question" in estimate(cell)
    assert experiment.command()[:3] == ["longtake", "eval", experiment.benchmark]


def test_a_row_changes_its_fields_alone():
    rows = {cell.row: cell.experiment for cell in presets.read_paper("videoagent").tables[4].cells}
    usual = presets.read("videoagent-egoschema")
    assert rows["VideoAgent"].command() == usual.command()
    ablated = rows["without segment selection"]
    assert ablated.command() == usual.command("--set", "videoagent.segment_selection=false")
    assert ablated.models == usual.models


def test_figures_of_a_preset_are_those_of_the_main_table():
    figures = presets.read("videodetective-lvbench").published
    assert [(each.accuracy, each.where) for each in figures[:2]] == [
        (43.2, "VideoDetective, Table 2"),
        (51.3, "VideoDetective, Table 2"),
    ]


def test_an_unknown_preset_names_the_nearest():
    with pytest.raises(ConfigError, match="videoagent-egoschema"):
        presets.read("videoagent-egoshema")
