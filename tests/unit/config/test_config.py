from pathlib import Path

import pytest

from longtake import config
from longtake.config import Layer, load, merge, parse_assignment, user_config_file
from longtake.errors import ConfigError


def write_user_config(text):
    path = user_config_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_later_layers_win(tmp_path):
    assert load().index.fps == 1
    write_user_config("[index]\nfps = 2\n[media]\nworkers = 3\n")
    assert load().index.fps == 2
    # a file of the working folder is somebody else's
    Path("longtake.toml").write_text("index.fps = 3")
    assert load().index.fps == 2
    given = tmp_path / "given.toml"
    given.write_text("index.fps = 4")
    assert load(config=given).index.fps == 4
    settings = load(config=given, assignments=["index.fps=5", "index.fps=5.5"])
    assert settings.index.fps == 5.5
    assert settings.media.workers == 3


@pytest.mark.parametrize(
    ("text", "nearest"),
    [
        ("cache.limit=3", "cache.limit_gb"),
        ("chache.limit_gb=3", "cache"),
        ("videoagnt.rounds=3", "videoagent"),
    ],
)
def test_unknown_keys_name_the_nearest(text, nearest):
    with pytest.raises(ConfigError) as caught:
        load(assignments=[text], method_names=["videoagent", "a4vl"])
    assert caught.value.nearest == nearest
    assert nearest in str(caught.value)


def test_wrong_types_name_the_key():
    with pytest.raises(ConfigError, match=r"cache\.limit_gb = 'much'"):
        load(assignments=["cache.limit_gb=much"])
    with pytest.raises(ConfigError, match="cache in --set cache=3 is a table"):
        load(assignments=["cache=3"])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("cache.limit_gb=-1", "must be 0 or more"),
        ("cache.limit_gb=nan", "finite"),
        ("index.fps=0", "must be more than 0"),
        ("index.fps=-1", "must be more than 0"),
        ("index.fps=nan", "finite"),
        ("index.fps=inf", "finite"),
        ("index.fps=1e9", "must be 1000 or less"),
        ("media.workers=-1", "must be 0 or more"),
        ("media.max_pixels=0", "must be 1 or more"),
        ("perception.threads=-2", "must be 0 or more"),
        ("media.workers=100000", "must be 256 or less"),
        ("perception.threads=100000", "must be 256 or less"),
        ("perception.batch=1000000", "must be 4096 or less"),
        ("models.x.concurrency=100000", "must be 1024 or less"),
        ("models.x.timeout=0", "must be more than 0"),
        ("models.x.price_in=-inf", "finite"),
        ("budget.seconds=nan", "finite"),
        ("budget.calls=0", "must be more than 0"),
    ],
)
def test_numbers_out_of_bounds_name_the_key(text, says):
    with pytest.raises(ConfigError) as caught:
        load(assignments=[text])
    assert caught.value.key == text.partition("=")[0]
    assert str(caught.value).startswith(f"{caught.value.key} = ")
    assert says in str(caught.value)


def test_not_toml(tmp_path):
    bad = tmp_path / "bad.toml"
    bad.write_text("cache = [")
    with pytest.raises(ConfigError, match="invalid TOML"):
        load(config=bad)
    with pytest.raises(ConfigError, match="cannot be read"):
        load(config=tmp_path / "none.toml")


def test_fields_of_methods_are_kept_for_the_method_to_check():
    layers = [
        Layer({"videoagent": {"rounds": 2, "glance": 7}}, "a"),
        Layer({"videoagent": {"rounds": 3}}, "b"),
    ]
    settings = merge(layers, method_names=["videoagent"])
    assert settings.methods == {"videoagent": {"rounds": 3, "glance": 7}}


def test_the_users_own_configuration_decides_where_data_lives():
    write_user_config('[cache]\nfolder = "/tmp/mine"')
    assert load().cache.folder == "/tmp/mine"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a.b = 3", {"a": {"b": 3}}),
        ("a=true", {"a": True}),
        ("a=plain words", {"a": "plain words"}),
        ('a="x=y"', {"a": "x=y"}),
        ("a=[1, 2]", {"a": [1, 2]}),
        ("a=x=y", {"a": "x=y"}),
    ],
)
def test_assignments(text, value):
    assert parse_assignment(text) == value


@pytest.mark.parametrize("text", ["a", "=3", "a..b=3", ".a=3", "a\nb=3"])
def test_bad_assignments(text):
    with pytest.raises(ConfigError, match="write key=value"):
        parse_assignment(text)


def test_cache_folder(monkeypatch):
    monkeypatch.setenv("LONGTAKE_CACHE", "/tmp/x")
    assert config.cache_folder(load()) == Path("/tmp/x")
    assert config.cache_folder(load(assignments=["cache.folder=/tmp/y"])) == Path("/tmp/y")
    monkeypatch.delenv("LONGTAKE_CACHE")
    assert config.cache_folder(load()).name == "longtake"
