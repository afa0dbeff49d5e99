"""Team files, and the agents they describe."""

from pathlib import Path

import pytest

from longtake.agents.team import DEFAULT_TEAM, open_team, read_team
from longtake.config import Settings
from longtake.config.entries import OpenAIEntry
from longtake.errors import ConfigError
from longtake.llm.catalog import ModelCatalog


def test_team_files(tmp_path: Path) -> None:
    path = tmp_path / "team.toml"
    path.write_text(
        '[[agent]]\nname = "ann"\nmodel = "mine"\ntemperature = 0.01\n'
        'max_new_tokens = 168\nchannels = ["speech"]\n'
        '[[agent]]\nname = "bob"\nmodel = "mine"\n'
    )
    ann, bob = read_team(path)
    assert (ann.temperature, ann.max_new_tokens, ann.channels) == (0.01, 168, ("speech",))
    settings = Settings(
        models={"mine": OpenAIEntry(base_url="http://127.0.0.1:9/v1", temperature=0.5)}
    )
    agents = open_team(ModelCatalog(settings), [ann, bob])
    assert [(a.name, a.chat.card.options.temperature) for a in agents] == [
        ("ann", 0.01),
        ("bob", 0.5),
    ]
    assert agents[0].chat.card.options.max_tokens == 168


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[[agent]]\nname = "ann"\n', "model: Field required"),
        ('[[agent]]\nname = "ann"\nmodel = "m"\ntemprature = 1\n', "temprature: Extra"),
        ('[[agent]]\nname = "a"\nmodel = "m"\n[[agent]]\nname = "a"\nmodel = "m"\n', "same name"),
        ("x = 1", "nothing else"),
        ("[[agent", "not valid TOML"),
    ],
)
def test_team_files_that_are_wrong(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "team.toml").write_text(text)
    with pytest.raises(ConfigError, match=says):
        read_team(tmp_path / "team.toml")


def test_with_nothing_configured_there_is_a_reader_a_listener_and_a_looker() -> None:
    entries = Settings().models
    channels = {member.name: entries[member.model].channels for member in DEFAULT_TEAM}
    assert channels == {"reader": ("onscreen",), "listener": ("speech",), "looker": ("tags",)}
