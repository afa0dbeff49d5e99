import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from support.hub import serve_hub
from support.server import Request, Send, completion, serve

from longtake import config
from longtake.cli import root
from longtake.errors import LongtakeError, ModelError
from longtake.llm import catalog
from longtake.perception.encoders import BuiltIns, card_folder, open_encoder
from longtake.runner.assignment import ModelAssignment


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LONGTAKE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(config, "user_config_file", lambda: tmp_path / "config.toml")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_list_names_every_model_and_what_to_do(own_folders: Path) -> None:
    (own_folders / "config.toml").write_text('[models.mine]\nbase_url = "https://x.example/v1"\n')
    ran = invoke("models", "list")
    assert "longtake models pull local/qwen2.5-coder-1.5b" in ran.stdout
    assert "x.example" in ran.stdout
    rows = json.loads(invoke("models", "list", "--json").stdout)
    assert rows["schema"] == 1
    assert {"mine", "socratic/reader"} <= {row["name"] for row in rows["models"]}


def test_probe_reports_on_an_endpoint() -> None:
    def act(request: Request) -> Send:
        if request.path == "/v1/models":
            return Send(200, {"data": [{"id": "m", "max_model_len": 32768}]})
        content = str(request.body["messages"])
        if "colour" in content:
            return completion(
                "Red."
                if len([r for r in served.requests if "colour" in str(r.body)]) == 1
                else "blue"
            )
        return completion('{"animal": "horse"}' if "animal" in content else "yes")

    with serve(act) as served:
        ran = invoke("models", "probe", f"{served.url}#m", "--json")
    report = json.loads(ran.stdout)
    assert (report["reachable"], report["json_schema"], report["vision"]) == (True, True, True)
    assert report["context"] == 32768


@pytest.mark.parametrize("dropped", [True, False])
def test_probe_notices_a_server_that_leaves_pictures_out(dropped: bool) -> None:
    """As ``transformers serve`` does for text models."""

    def act(request: Request) -> Send:
        grown = 0 if dropped else 64 * str(request.body).count("image_url'")
        return completion("A horse.", prompt_tokens=20 + grown)

    with serve(act) as served:
        ran = invoke("models", "probe", f"{served.url}#m")
        text = "  vision       no" + (": pictures are accepted and left out" if dropped else "")
        assert text in ran.stdout.splitlines()
        asked = invoke("models", "probe", f"{served.url}#m", "--json")
    assert json.loads(asked.stdout)["drops_pictures"] is dropped


def test_probe_of_a_model_that_is_not_there() -> None:
    with serve(lambda _: completion("")) as served:
        pass
    ran = CliRunner().invoke(root, ["models", "probe", f"{served.url}#m"])
    assert isinstance(ran.exception, ModelError)
    assert "not reachable" in ran.stdout


def test_perception_is_listed_as_such_and_has_nothing_to_probe() -> None:
    rows = json.loads(invoke("models", "list", "--json").stdout)["models"]
    assert {row["backend"] for row in rows if row["name"].startswith("senses")} == {"senses"}
    assert "a film's perception" in problem("models", "probe", "senses")


def test_probe_of_a_member_of_a_family() -> None:
    ran = invoke("models", "probe", "lab/acuity=0.8", "--json")
    assert json.loads(ran.stdout)["reachable"]
    assert "unknown model" in problem("models", "probe", "lib/acuity=0.8")


def test_an_encoder_is_pulled_by_the_name_that_its_error_gives(
    own_folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = card_folder("dinov2-small", own_folders / "cache")
    with pytest.raises(ModelError) as missing:
        open_encoder("dinov2-small", BuiltIns(own_folders / "cache"))
    name = str(missing.value).partition("longtake models pull ")[2].partition(")")[0]
    asked: list[object] = []
    monkeypatch.setattr(
        "longtake.cli.models.pull_files",
        lambda name, repo, revision, files, folder, **_: asked.extend((name, folder)) or folder,
    )
    ran = invoke("models", "pull", name)
    assert ran.stdout.strip() == str(folder)
    assert asked == ["dinov2-small", folder]
    ran = invoke("models", "pull", "whisper")
    assert ran.stdout.strip() == str(folder.with_name("whisper"))
    assert asked[2:] == ["whisper", folder.with_name("whisper")]
    assert "did you mean 'dinov2-small'" in problem("models", "pull", "dinov2")


def test_a_model_that_sees_is_pulled_and_then_used_without_further_words(
    own_folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = catalog.recommended("vision")
    known = catalog.WEIGHTS[name]
    assert f"longtake models pull {name}  # " in invoke("models", "list").stdout
    with serve_hub({known.file: b"m" * 200, known.mmproj: b"p" * 200}) as (hub, address):
        monkeypatch.setenv("HF_ENDPOINT", address)
        ran = invoke("models", "pull", "vision")
    folder = own_folders / "cache/models" / name.removeprefix("local/")
    assert ran.stdout.strip() == str(folder)
    assert f"{name}: " in ran.stderr
    assert known.licence in ran.stderr
    asked = [path.partition("/resolve/")[0] for method, path in hub.asked if method == "GET"]
    assert asked == [f"/{known.repo}"] * 2
    assert hub.asked[0][1].endswith(f"/resolve/main/{known.mmproj}")
    assert (folder / known.file).read_bytes() == b"m" * 200

    settings = config.load()
    everywhere = ModelAssignment().by_default(settings)
    assert everywhere.names(("llm", "vlm", "captioner")) == dict.fromkeys(
        ("llm", "vlm", "captioner"), name
    )
    reader = own_folders / "cache/models" / catalog.WEIGHTS["local/qwen2.5-coder-1.5b"].file
    reader.write_bytes(b"GGUF")
    beside = ModelAssignment().by_default(settings)
    assert beside.names(("llm", "vlm")) == {"llm": "local/qwen2.5-coder-1.5b", "vlm": name}
    assert beside.names(("llm",)) == {"llm": "local/qwen2.5-coder-1.5b"}
    assert everywhere.default_method == beside.default_method == "auto"
    assert ModelAssignment(["lab/acuity=1"]).by_default(settings).everyone == "lab/acuity=1"
    assert f"vlm={name}" in invoke("models", "list").stderr
    assert f'"vision": "{name}"' in invoke("doctor", "--json").stdout


def test_any_pair_of_the_hub_is_pulled_and_its_entry_is_shown(
    own_folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve_hub({"q4/m.gguf": b"m" * 200, "p.gguf": b"p" * 200}) as (hub, address):
        monkeypatch.setenv("HF_ENDPOINT", address)
        files = ("--model", "q4/m.gguf", "--mmproj", "p.gguf")
        ran = invoke("models", "pull", "hub:some/where@v2", *files)
    folder = own_folders / "cache/models/some--where"
    assert hub.asked[0][1] == "/some/where/resolve/v2/p.gguf"
    assert f'file = "{folder}/q4/m.gguf"' in ran.stderr
    (own_folders / "config.toml").write_text(ran.stderr[ran.stderr.index("[models.mine]") :])
    entry = config.load().models["mine"]
    assert (entry.file, entry.mmproj) == (f"{folder}/q4/m.gguf", f"{folder}/p.gguf")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["hub:some/where"], "write hub:OWNER/REPO"),
        (["hub:where", "--model", "m.gguf"], "write hub:OWNER/REPO"),
        (["hub:a/b", "--model", "../m.gguf"], "files of the repository"),
        (["hub:a/b", "--model", "/etc/passwd"], "files of the repository"),
        (["whisper", "--model", "m.gguf"], "go with hub:OWNER/REPO"),
        (["visoin"], "did you mean 'vision'"),
        (["local/qwen2.5-1.5b"], "is now local/qwen2.5-coder-1.5b"),
        (["local/qwen2.5-coder-1.5b", "--from", "."], "not copied from folders"),
        (["vision", "--from", "."], "does not hold mmproj"),
    ],
)
def test_what_cannot_be_pulled_is_one_line(arguments: list[str], complaint: str) -> None:
    assert complaint in problem("models", "pull", *arguments)


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(root, arguments, catch_exceptions=False)


def problem(*arguments: str) -> str:
    """The message of a command that fails."""
    raised = CliRunner().invoke(root, arguments).exception
    assert isinstance(raised, LongtakeError)
    return str(raised)
