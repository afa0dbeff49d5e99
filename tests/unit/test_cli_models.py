import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.server import Request, Send, completion, serve

from longtake import config
from longtake.cli.models import models
from longtake.errors import ConfigError, ModelError


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LONGTAKE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(config, "user_config_file", lambda: tmp_path / "config.toml")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_list_names_every_model_and_what_to_do(own_folders: Path) -> None:
    (own_folders / "config.toml").write_text('[models.mine]\nbase_url = "https://x.example/v1"\n')
    ran = CliRunner().invoke(models, ["list"], catch_exceptions=False)
    assert "longtake models pull local/qwen2.5-1.5b" in ran.stdout
    assert "x.example" in ran.stdout
    rows = json.loads(CliRunner().invoke(models, ["list", "--json"], catch_exceptions=False).stdout)
    assert rows["schema"] == 1
    assert {"mine", "socratic/reader"} <= {row["name"] for row in rows["models"]}


def test_probe_reports_on_an_endpoint() -> None:
    def act(request: Request) -> Send:
        if request.path == "/v1/models":
            return Send(200, {"data": [{"id": "m", "max_model_len": 32768}]})
        content = str(request.body["messages"])
        if "colour" in content:
            return completion("Red." if len([r for r in served.requests if "colour" in str(r.body)]) == 1 else "blue")
        return completion('{"animal": "horse"}' if "animal" in content else "yes")

    with serve(act) as served:
        ran = CliRunner().invoke(models, ["probe", f"{served.url}#m", "--json"], catch_exceptions=False)
    report = json.loads(ran.stdout)
    assert (report["reachable"], report["json_schema"], report["vision"]) == (True, True, True)
    assert report["context"] == 32768


def test_probe_tells_blind_from_seeing_and_free_text_from_json() -> None:
    with serve(lambda _: completion("I think it is a horse, in red.")) as served:
        ran = CliRunner().invoke(models, ["probe", f"{served.url}#m", "--json"], catch_exceptions=False)
    report = json.loads(ran.stdout)
    assert (report["json_schema"], report["vision"], report["context"]) == (False, False, None)


def test_probe_of_a_model_that_is_not_there() -> None:
    with serve(lambda _: completion("")) as served:
        pass
    ran = CliRunner().invoke(models, ["probe", f"{served.url}#m"])
    assert isinstance(ran.exception, ModelError)
    assert "not reachable" in ran.stdout


def test_pull_of_something_unknown() -> None:
    ran = CliRunner().invoke(models, ["pull", "local/smolm"])
    assert isinstance(ran.exception, ConfigError)
    assert "local/smollm2-135m" in str(ran.exception)


@pytest.mark.parametrize("command", ["models list", "models probe", "models pull", "cache list", "cache clear"])
def test_subcommands_have_help_with_an_example(run, command):
    code, text, _ = run(*command.split(), "--help")
    assert code == 0
    assert "Example:" in text
    assert f"longtake {command}" in text.partition("Example:")[2]
