"""Fixtures for every test: no network, and separate user folders."""

import contextlib
import fcntl
import gc
import hashlib
import ipaddress
import os
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis.configuration import set_hypothesis_home_dir
from support import guard

PREPARED = ("efficientnet-*.onnx", "imagenet-glosses-*.npy")
"""Files that the built-in vision models write into the cache before their first use."""


nothing_left_by_test = guard.nothing_left_by_test
nothing_left_by_module = guard.nothing_left_by_module
nothing_left_by_session = guard.nothing_left_by_session


# nothing that is imported or collected becomes garbage, yet it would be searched again and again
gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


class NetworkForbidden(RuntimeError):
    """A test tried to reach another machine."""


# The suite draws the same cases every time, so that it fails only where something changed;
# make attack draws others. A busy machine is slow, which is no failure.
settings.register_profile(
    "suite",
    deadline=None,
    derandomize="ATTACK" not in os.environ,
    max_examples=1000 if "ATTACK" in os.environ else 25,
)
settings.load_profile("suite")
# tests run in folders of their own, where its tables of characters would be made again
set_hypothesis_home_dir(Path(__file__).parent.parent / "build" / "hypothesis")


@pytest.fixture(autouse=True)
def no_network(nothing_left_by_test: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Allow connections to loopback only."""
    # pip runs in processes of its own
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    connect, connect_ex, getaddrinfo = (
        socket.socket.connect,
        socket.socket.connect_ex,
        socket.getaddrinfo,
    )

    def check(host: Any) -> None:
        name = host.decode() if isinstance(host, bytes) else host
        if name in (None, "", "localhost"):
            return
        try:
            local = ipaddress.ip_address(str(name).partition("%")[0]).is_loopback
        except ValueError:
            local = False
        if not local:
            raise NetworkForbidden(f"a test tried to reach {name}")

    def guarded(original: Any) -> Any:
        def act(self: socket.socket, address: Any) -> Any:
            if self.family in (socket.AF_INET, socket.AF_INET6):
                check(address[0])
            return original(self, address)

        return act

    def lookup(host: Any, *rest: Any, **more: Any) -> Any:
        check(host)
        return getaddrinfo(host, *rest, **more)

    monkeypatch.setattr(socket.socket, "connect", guarded(connect))
    monkeypatch.setattr(socket.socket, "connect_ex", guarded(connect_ex))
    monkeypatch.setattr(socket, "getaddrinfo", lookup)


@pytest.fixture(autouse=True)
def own_registries(nothing_left_by_test: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Undo what looking up ``module:attribute`` does: it extends a registry and the import path."""
    for registry in guard.REGISTRIES:
        monkeypatch.setattr(registry, "_targets", dict(registry._targets))
        monkeypatch.setattr(registry, "_addresses", dict(registry._addresses))
    monkeypatch.setattr(sys, "path", sys.path[:])


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("homes")


@pytest.fixture(autouse=True)
def own_folders(
    nothing_left_by_test: None, homes: Path, monkeypatch: pytest.MonkeyPatch, model_cache: Path
) -> Iterator[None]:
    """Keep the tests away from the user's cache and configuration.

    Built-in models take seconds to prepare, so what one test prepares is lent to the next ones.
    """
    # numbered folders take longer to make the more of them there are
    home = Path(tempfile.mkdtemp(dir=homes))
    prepared, own = model_cache / "models", home / "cache" / "models"
    _lend(prepared, own)
    monkeypatch.setenv("LONGTAKE_CACHE", str(home / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    if "HOME" in os.environ:  # services have none
        monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(home)
    yield
    _lend(own, prepared)


def _lend(giver: Path, taker: Path) -> None:
    for file in (file for pattern in PREPARED for file in giver.glob(pattern)):
        taker.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            os.link(file, taker / file.name)


@pytest.fixture(scope="session")
def model_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where built-in models are prepared once per run, by whichever process comes first."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "models"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def prepared_models(model_cache: Path) -> Path:
    """The same folder with the models of pictures in it; other processes wait for the first."""
    models = model_cache / "models"
    with (model_cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not all(any(models.glob(pattern)) for pattern in PREPARED):
            from longtake.perception.encoders import BuiltIns, open_image_text_encoder

            encoder: Any = open_image_text_encoder("conse", BuiltIns(model_cache))
            # the classes are encoded when the first picture is compared with them
            encoder.from_probabilities(np.ones((1, 1000)))
    return model_cache


@pytest.fixture(scope="session")
def lend_models(prepared_models: Path) -> Callable[[Path], Path]:
    """Puts the prepared models into another cache folder, which takes seconds to do anew."""

    def lend(cache: Path) -> Path:
        _lend(prepared_models / "models", cache / "models")
        return cache

    return lend


REMEMBERING = {"active": True}


def remember(network: Any, identity: tuple[Any, ...], folder: Path) -> Any:
    """Run a network once for each input: many tests of all processes index the same film."""
    run = network.run

    def run_once(names: list[str] | None, feed: dict[str, Any], *rest: Any) -> list[Any]:
        if not REMEMBERING["active"]:
            return run(names, feed, *rest)
        digest = hashlib.blake2b(f"{identity} {names}".encode(), digest_size=16)
        for name, values in sorted(feed.items()):
            array = np.asarray(values)
            digest.update(f"{name} {array.dtype} {array.shape}".encode())
            digest.update(np.ascontiguousarray(array))
        file = folder / f"{digest.hexdigest()}.npz"
        if file.exists():
            with np.load(file) as stored:
                return [stored[name] for name in stored.files]
        began = perf_counter()
        outputs = run(names, feed, *rest)
        # most runs of the speech networks are quicker than a file
        if perf_counter() - began > 0.01:
            with tempfile.NamedTemporaryFile(dir=folder, delete=False) as unfinished:
                np.savez(unfinished, *outputs)
            os.replace(unfinished.name, file)  # noqa: PTH105
        return outputs

    network.run = run_once
    return network


@pytest.fixture
def networks_run_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of the networks themselves, which ask the same thing twice on purpose."""
    monkeypatch.setitem(REMEMBERING, "active", False)


@pytest.fixture(scope="session", autouse=True)
def networks_loaded_once(model_cache: Path) -> Iterator[None]:
    """Load and hash each network once per process: that takes longer than most tests run it for.
    What words are is looked up once per run, and nobody waits for the disk."""
    folder = model_cache / "outputs"
    folder.mkdir(exist_ok=True)
    from longtake.perception import ocr, runtime

    load = runtime.load_network
    loaded: dict[tuple[Any, ...], Any] = {}

    def load_once(model: Path, compute: Any, **options: Any) -> Any:
        if not model.is_file():
            return load(model, compute, **options)
        # files that are lent have many names
        file = model.stat()
        content = (file.st_dev, file.st_ino, file.st_size, file.st_mtime_ns)
        key = (*content, compute, *sorted(options.items()))
        if key not in loaded:
            loaded[key] = remember(load(model, compute, **options), key, folder)
        return loaded[key]

    compute_hash = runtime.sha256
    hashes: dict[tuple[Any, ...], str] = {}

    def hash_once(path: Path) -> str:
        if not path.is_file():
            return compute_hash(path)
        file = path.stat()
        key = (file.st_dev, file.st_ino, file.st_size, file.st_mtime_ns)
        if key not in hashes:
            hashes[key] = compute_hash(path)
        return hashes[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runtime, "load_network", load_once)
        patch.setattr(ocr, "load_network", load_once)
        patch.setattr(runtime, "sha256", hash_once)
        # no test cuts the power, and disks are slow
        patch.setattr(os, "fsync", lambda _: None)
        yield


@pytest.fixture(scope="session")
def film_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where films are made once per run."""
    return tmp_path_factory.mktemp("films")


@pytest.fixture(autouse=True)
def inline_workers(
    nothing_left_by_test: None, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Evaluations ask in this process: another one takes seconds to start.

    Tests that are about processes are marked with ``worker_processes``.
    """
    if not request.node.get_closest_marker("worker_processes"):
        from support.working import Inline

        monkeypatch.setattr("longtake_bench.runner.Processes", Inline)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run a command as a user would: its exit code, standard output and standard error."""

    def run(*arguments: object) -> tuple[int, str, str]:
        from longtake import cli

        code = cli.run([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return run
