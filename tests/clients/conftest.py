"""A server on loopback for real clients, with a lab film and simulated models."""

import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction

import pytest
import uvicorn
from support.patience import PATIENCE

from longtake.config import AnswerSettings, Settings
from longtake.server.app import _bind, create_app
from longtake.server.options import ServeOptions
from longtake.server.security import AccessKeys
from longtake.video.clip import Encoding, write_film
from longtake_bench.lab.film import make_world
from longtake_bench.lab.footage import LabFootage

TOKEN = "t" * 32
WORLD = make_world(seed=8, minutes=2, questions=24)


@contextmanager
def running(options):
    """A server in a thread; yields its address."""
    listener = _bind(options.host, options.port)
    options = replace(options, port=listener.getsockname()[1])
    app = create_app(options, AccessKeys(TOKEN, options.port))
    config = uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{options.port}"
    finally:
        server.should_exit = True
        thread.join(PATIENCE)


@pytest.fixture(scope="package")
def films(tmp_path_factory):
    folder = tmp_path_factory.mktemp("films")
    (folder / "world").mkdir()
    footage = LabFootage(WORLD.script)
    # one picture a second is what methods sample, and quickly made
    pictures = (frame.pixels for frame in footage.at(footage.times.tolist()))
    write_film(folder / "world" / "film.mp4", pictures, Encoding(fps=Fraction(1), gop=10))
    return folder


@pytest.fixture(scope="package")
def options(films, tmp_path_factory, prepared_models):
    models = ("lab/acuity=1,hallucination=0",)
    data = tmp_path_factory.mktemp("data")
    # verifying looks at the whole film, which takes longer than all of these tests
    settings = Settings(answers=AnswerSettings(verify=False))
    return ServeOptions(
        settings=settings, films=(films,), models=models, folder=data, port=0, at_once=4
    )


@pytest.fixture(scope="package")
def address(options):
    with running(options) as address:
        yield address
