"""Runs a lab film as a benchmark through real clients, and beside it through ``longtake eval``.

    python tests/clients/harness.py --client litellm --python build/clients/litellm/bin/python

Clients live in environments of their own (``make clients``). The printed accuracy of a client must
equal that of ``longtake eval`` on the same questions. ``--record`` keeps the first request that the
client sent, as a fixture for the contract tests.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from contextlib import contextmanager
from fractions import Fraction
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from longtake.video.clip import Encoding, write_film
from longtake_bench.lab.film import make_world
from longtake_bench.lab.footage import LabFootage

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from support.serving import start_server  # noqa: E402

BUILD = HERE.parent.parent / "build" / "clients"
SOURCE = BUILD / "VLMEvalKit-source"
"""A clone of VLMEvalKit's repository."""
TOKEN = "a-token-for-the-clients"
MODEL = "lab/acuity=0.3"
QUESTIONS = 20


def prepare(folder: Path) -> Path:
    """The film and its questions, in the layout of MLVU's test split."""
    world = make_world(seed=8, minutes=5, questions=30)
    chosen = [question for question in world.questions if question.options][:QUESTIONS]
    assert len(chosen) == QUESTIONS
    film = folder / "videos" / "world.mp4"
    if not film.exists():
        film.parent.mkdir(parents=True, exist_ok=True)
        footage = LabFootage(world.script)
        pictures = (frame.pixels for frame in footage.at(footage.times.tolist()))
        write_film(film, pictures, Encoding(fps=Fraction(1), gop=10))
    rows = []
    for question in chosen:
        row = {"video": "world.mp4", "question": question.text, "question_type": question.kind}
        row |= {"candidates": list(question.options), "answer": question.answer_text}
        rows.append({**row, "letter": question.answer, "path": str(film)})
    for name in ("test_multi_choice_tasks.json", "questions.json"):
        (folder / name).write_text(json.dumps(rows))
    return folder


@contextmanager
def served(folder: Path):
    """A server for the film; yields its address."""
    options = ("--model", MODEL, "--set", "answers.verify=false")
    process, started = start_server(
        folder / "videos", BUILD / "cache", *options, LONGTAKE_SERVE_TOKEN=TOKEN
    )
    try:
        yield f"http://{urlsplit(started['url']).netloc}"
    finally:
        process.terminate()
        process.wait(60)


def environment() -> dict[str, str]:
    own = {"LONGTAKE_CACHE": str(BUILD / "cache"), "LONGTAKE_SERVE_TOKEN": TOKEN}
    return {**os.environ, **own}


@contextmanager
def recorded(target: str, bodies: list[bytes]):
    """A proxy that keeps what passes through it."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            self.forward(b"")

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            bodies.append(body)
            self.forward(body)

        def forward(self, body):
            kept = ("authorization", "content-type")
            headers = {k: v for k, v in self.headers.items() if k.lower() in kept}
            reply = httpx.request(
                self.command, target + self.path, content=body, headers=headers, timeout=600
            )
            self.send_response(reply.status_code)
            self.send_header("Content-Type", reply.headers["content-type"])
            self.send_header("Content-Length", str(len(reply.content)))
            self.end_headers()
            self.wfile.write(reply.content)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()


def direct(folder: Path, method: str) -> float:
    """The accuracy of ``longtake eval`` on these questions."""
    out = BUILD / "runs" / method
    shutil.rmtree(out, ignore_errors=True)
    command = [sys.executable, "-m", "longtake", "eval", "mlvu", "--data", str(folder)]
    command += ["--of", "split=test", "--method", method, "--model", MODEL, "--no-verify"]
    subprocess.run([*command, "--out", str(out)], check=True, env=environment())
    rows = [json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()]
    labels = [row["letter"] for row in json.loads((folder / "questions.json").read_text())]
    given = {row["id"]: row.get("choice") for row in rows}
    numbered = {int(name.rpartition("_")[2]): choice for name, choice in given.items()}
    right = sum(numbered.get(n) == label for n, label in enumerate(labels))
    return right / len(labels)


def lmms_eval(python: Path, folder: Path, address: str, method: str) -> float:
    task = BUILD / "lmms_task"
    shutil.rmtree(task, ignore_errors=True)
    shutil.copytree(HERE / "lmms_task", task)
    text = (task / "lab_film.yaml").read_text()
    (task / "lab_film.yaml").write_text(
        text.replace("questions.json", str(folder / "questions.json"))
    )
    arguments = f"model_version=longtake/{method},base_url={address}/v1,api_key={TOKEN}"
    command = [python, "-m", "lmms_eval", "--model", "openai", "--tasks", "lab_film"]
    command += ["--include_path", str(task), "--batch_size", "1"]
    command += ["--model_args", f"{arguments},pass_video_url=True,num_concurrent=2"]
    own = {"OPENAI_API_KEY": TOKEN, "OPENAI_API_BASE": f"{address}/v1", "HF_HUB_OFFLINE": "1"}
    run = subprocess.run(
        command, env={**environment(), **own, "PYTHONPATH": ""}, capture_output=True, text=True
    )
    match = re.search(r"lab_accuracy\s*\|[^|]*\|\s*([\d.]+)", run.stdout)
    if match is None:
        raise SystemExit(
            f"lmms-eval printed no accuracy:\n{run.stdout[-3000:]}\n{run.stderr[-3000:]}"
        )
    return float(match[1])


def vlmevalkit(python: Path, folder: Path, address: str, method: str) -> float:
    """Its own ``run.py`` on its own Video-MME, whose questions and film are the lab's."""
    cache = BUILD / "huggingface"
    subprocess.run([python, HERE / "vlmevalkit.py", folder, cache], check=True)
    command = [python, SOURCE / "run.py", "--data", "Video-MME_8frame", "--model", method]
    command += ["--base-url", f"{address}/v1", "--key", TOKEN, "--video-llm", "--local-media"]
    command += ["--judge", "exact_matching", "--api-nproc", "2", "--work-dir", BUILD / "vlmevalkit"]
    own = {"HF_HOME": str(cache), "HF_HUB_OFFLINE": "1", "LMUData": str(BUILD / "LMUData")}
    run = subprocess.run(
        command, env={**environment(), **own, "PYTHONPATH": ""}, capture_output=True, text=True
    )
    printed = run.stdout + run.stderr
    match = re.search(r"Overall Score\s+([\d.]+)", printed)
    if match is None:
        raise SystemExit(f"VLMEvalKit printed no accuracy:\n{printed[-6000:]}")
    return float(match[1]) / 100


def script(client: str):
    def run(python: Path, folder: Path, address: str, method: str) -> float:
        command = [python, HERE / "ask.py", folder, address, method, client, TOKEN]
        own = {**environment(), "PYTHONPATH": "", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
        run = subprocess.run(command, env=own, check=True, stdout=subprocess.PIPE, text=True)
        return float(run.stdout.split()[-1])

    return run


SCRIPTED = ("litellm", "openai", "langchain-openai", "llama-index-llms-openai-like")
CLIENTS = {"lmms-eval": lmms_eval, "VLMEvalKit": vlmevalkit}
CLIENTS |= {client: script(client) for client in SCRIPTED}
"""By distribution, each with a function that returns the accuracy of a method."""


def version(python: Path, client: str) -> str:
    # it is not published as a package
    if client == "VLMEvalKit":
        command = ["git", "-C", SOURCE, "rev-parse", "--short", "HEAD"]
        return subprocess.run(command, capture_output=True, text=True).stdout.strip()
    code = f"import importlib.metadata as m; print(m.version({client!r}))"
    return subprocess.run([python, "-c", code], capture_output=True, text=True).stdout.strip()


def keep(name: str, client: str, folder: Path, body: bytes) -> None:
    """Write the first request as a fixture."""
    text = json.dumps({"made_by": name, "body": json.loads(body)}, indent=1)
    file = HERE / "recorded" / f"{client}.json"
    file.write_text(text.replace(str(folder), "/data") + "\n")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--client", choices=CLIENTS, required=True)
    parser.add_argument("--python", type=Path, required=True)
    parser.add_argument("--method", action="append")
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    folder = prepare(BUILD / "data")
    name = f"{given.client} {version(given.python, given.client)}"
    unequal = False
    bodies: list[bytes] = []
    with served(folder) as server, recorded(server, bodies) as address:
        for method in given.method or ["uniform", "videoagent"]:
            own = direct(folder, method)
            theirs = CLIENTS[given.client](given.python, folder, address, method)
            print(f"{name}: longtake/{method} {theirs:.3f}; longtake eval {own:.3f}", flush=True)
            unequal |= abs(own - theirs) > 1e-3
    if given.record:
        keep(name, given.client, folder, bodies[0])
    raise SystemExit(int(unequal))


if __name__ == "__main__":
    main()
