from dataclasses import replace
from pathlib import Path

import pytest

from longtake.agents.team import read_team
from longtake.config import PerceptionSettings, Settings
from longtake.errors import ConfigError
from longtake.llm.backends.scripted import ScriptedEntry
from longtake.methods.base import configure
from longtake.perception.cards import CARDS, WHISPER
from longtake.perception.encoders import card_folder
from longtake.registry import methods
from longtake.runner.assignment import read_role_assignment
from longtake.runner.session import Session
from longtake_bench import presets
from longtake_bench.benchmarks import about
from longtake_bench.cli.eval import _models_of_preset
from longtake_bench.cli.reproduce import size

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
def test_every_row_of_a_table_can_be_configured_and_has_all_models(cell):
    experiment = cell.experiment
    assert 0 < cell.published < 100
    configure(methods.get(experiment.method), experiment.fields)
    assert "question" in size(cell)
    assert experiment.command()[:4] == ["longtake", "eval", "--preset", experiment.name]
    # the command leads back to the same experiment
    if not cell.cannot and experiment.ablation:
        again = presets.read(experiment.name, experiment.ablation)
        assert again == replace(experiment, published=again.published)

    # it names a model for each role of its method
    names = [read_role_assignment(text).model for text in experiment.models]
    entries = {name: ScriptedEntry(replies="yes") for name in (*names, *experiment.team)}
    session = Session(Settings(models=entries))
    assignment = _models_of_preset(experiment, session)
    roles = methods.get(experiment.method).roles
    replace(session, assignment=assignment).check_models(roles)
    assert {*assignment.names(roles).values()} <= {*names}
    assert [member.model for member in assignment.roster] == [*experiment.team]


def test_models_that_the_configuration_does_not_name_are_told():
    with pytest.raises(ConfigError, match=r"unknown model 'InternVL-2.5-78B'.* config\.toml"):
        _models_of_preset(presets.read("lvagent-mlvu"), Session())


def test_a_row_changes_its_fields_alone():
    rows = {cell.row: cell.experiment for cell in presets.read_paper("videoagent").tables[4].cells}
    usual = presets.read("videoagent-egoschema")
    assert rows["VideoAgent"].command() == usual.command()
    ablated = rows["without segment selection"]
    assert ablated.command() == usual.command("--ablation", "no-segment-selection")
    assert ablated.fields == {**usual.fields, "segment_selection": False}
    assert (ablated.models, ablated.encoders) == (usual.models, usual.encoders)


def test_an_ablation_has_the_figure_of_its_row_and_an_unknown_one_lists_all():
    (figure,) = presets.read("videodetective-videomme-long", "no-propagation").published
    assert (figure.accuracy, figure.where) == (51.4, "VideoDetective, Table 3")
    with pytest.raises(ConfigError, match=r"'help'; it has: .*no-propagation, no-decomposition"):
        presets.read("videodetective-videomme-long", "help")
    with pytest.raises(ConfigError, match="it has: none"):
        presets.read("a4vl-nextqa", "help")


def test_a_row_with_other_models_asks_them():
    chosen = presets.read("symphony-lvbench", "symphony-gpt-4o")
    assert chosen.models == ("llm=DeepSeek-R1", "vlm=GPT-4o")
    assert chosen.published[0].accuracy == 67.1


@pytest.mark.parametrize("paper", presets.papers())
def test_rows_with_the_figure_of_the_whole_method_are_one_procedure(paper):
    cells = [cell for table in presets.read_paper(paper).tables for cell in table.cells]
    whole = [cell for cell in cells if not (cell.cannot or cell.experiment.ablation)]
    figures = {(cell.experiment.name, cell.published) for cell in whole}
    for cell in cells:
        if (cell.experiment.name, cell.published) in figures:
            assert cell.cannot or not cell.experiment.ablation


def test_symphony_plans_with_one_model_and_sees_with_another():
    for cell in presets.read_paper("symphony").tables[0].cells[:4]:
        assert cell.experiment.method == "symphony"
        assert [text.partition("=")[0] for text in cell.experiment.models] == ["llm", "vlm"]
        assert cell.experiment.models[0] == "llm=DeepSeek-R1"


def test_a_baseline_is_given_the_subtitles_of_its_column():
    (table,) = [t for t in presets.read_paper("lvagent").tables if t.table == "2"]
    given = {
        cell.experiment.name for cell in table.cells if cell.experiment.fields.get("subtitles")
    }
    assert given == {"lvagent-videomme-subtitles"}
    assert presets.read("lvagent-egoschema").options == {"split": "full"}


def test_captions_of_lavila_are_of_clips():
    films = presets.read("videoagent-egoschema-films")
    assert configure(methods.get("videoagent"), films.fields).caption_unit == "clip"
    blip = presets.read("videoagent-egoschema-films", "blip-2")
    assert configure(methods.get("videoagent"), blip.fields).caption_unit == "frame"


def test_the_library_of_lvagent_has_the_eight_models_of_its_paper():
    library = read_team(Path(__file__).parents[3] / "examples" / "lvagent-library.toml")
    names = {member.model for member in library}
    assert len(names) == 8
    teams = [presets.read(name).team for name in presets.names() if name.startswith("lvagent")]
    assert names >= {model for team in teams for model in team}


@pytest.fixture
def downloaded(tmp_path):
    """A cache in which the files of all encoders are, as far as their names go."""
    for files in (*CARDS.values(), WHISPER):
        for file in files.files:
            path = card_folder(files.name, tmp_path) / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
    return tmp_path


@pytest.mark.parametrize("name", presets.names())
def test_a_preset_uses_the_nearest_encoders_that_are_downloaded(name, downloaded):
    preset = presets.read(name)
    assert preset.encoders
    chosen, differences, missing = preset.perception(PerceptionSettings(), downloaded)
    assert not missing
    for encoder in preset.encoders:
        if encoder.nearest:
            assert getattr(chosen, encoder.setting) == encoder.nearest
    differing = [each for each in preset.encoders if not each.same]
    assert differences == [f"{e.nearest or e.ours} instead of {e.paper}" for e in differing]


def test_without_them_what_is_configured_is_a_difference(tmp_path):
    preset = presets.read("videodetective-lvbench")
    usual = PerceptionSettings(reader=False)
    assert preset.perception(usual, tmp_path) == (
        usual,
        [
            "conse instead of SigLIP-SO400M-patch14-384",
            "moonshine instead of Whisper (size not stated)",
            "nothing instead of EasyOCR",
        ],
        ["siglip2-base-patch16-224", "whisper"],
    )


def test_advice_is_to_download_where_that_is_enough():
    symphony, lvagent = presets.read("symphony-lvbench"), presets.read("lvagent-mlvu")
    clip = ["clip-vit-base-patch32"]
    assert symphony.advice(["conse instead of CLIP"], clip).startswith("run 'longtake models pull")
    assert lvagent.advice(["conse instead of ASP-CLIP"], clip) == (
        "pass --allow-differences; 'longtake models pull clip-vit-base-patch32' gets the nearest, "
        "which differs, too"
    )
    assert lvagent.advice(["clip instead of ASP-CLIP"], []) == "pass --allow-differences"


def test_what_the_user_chose_stays_and_may_be_the_papers_own(downloaded):
    preset = presets.read("videodetective-lvbench")
    own = PerceptionSettings(images="transformers", images_folder="m/siglip-so400m-patch14-384")
    chosen, differences, _ = preset.perception(own, downloaded)
    assert chosen.images == "transformers"
    assert differences == ["RapidOCR instead of EasyOCR"]
    other = replace(own, images_folder="m/siglip2")
    _, differences, _ = preset.perception(other, downloaded)
    assert differences[0] == "transformers, m/siglip2 instead of SigLIP-SO400M-patch14-384"


def test_figures_of_a_preset_are_those_of_the_main_table():
    figures = presets.read("videodetective-lvbench").published
    assert [(each.accuracy, each.where) for each in figures[:2]] == [
        (43.2, "VideoDetective, Table 2"),
        (51.3, "VideoDetective, Table 2"),
    ]


def test_an_unknown_preset_names_the_nearest():
    with pytest.raises(ConfigError, match="videoagent-egoschema"):
        presets.read("videoagent-egoshema")
