"""Films by address: over HTTP and from S3, by ranges, and what goes wrong on the way."""

from __future__ import annotations

import pickle
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from films import FILMS

from longtake.errors import MediaError
from longtake.index.source import fingerprint
from longtake.video import remote
from longtake.video.clip import Encoding, write_film
from longtake.video.remote import RemotePath
from longtake.video.video import Video

pytest.importorskip("aiohttp")

SECRET = "X-Signature=secret-of-the-link"


class Server(ThreadingHTTPServer):
    """Serves one file; counts its bytes, and can do so badly."""

    daemon_threads = True

    def __init__(self, content):
        super().__init__(("127.0.0.1", 0), Handler)
        self.content, self.sent, self.fault, self.after = content, 0, "", 0
        self.etag = '"1"'

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/films/film.mp4?{SECRET}"


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.answer(body=False)

    def do_GET(self):
        self.answer(body=True)

    def answer(self, *, body):
        server = self.server
        bad = server.fault if server.sent >= server.after else ""
        content, status = server.content, 200
        asked = re.match(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if bad.isdigit():
            status, content = int(bad), b""
        elif asked and bad != "ignores ranges":
            first, last = int(asked[1]), min(int(asked[2]), len(content) - 1)
            content, status = content[first : last + 1], 206
        elif bad == "other":
            content = content[:-1] + b"x"
        sent = content[: len(content) // 2] if bad == "short" and status == 206 else content
        self.send_response(status)
        self.send_header("ETag", server.etag)
        self.send_header("Content-Type", "text/html" if bad == "page" else "video/mp4")
        if bad != "ignores ranges":
            self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(len(sent)))
        if status == 206:
            self.send_header("Content-Range", f"bytes {first}-{last}/{len(server.content)}")
        self.end_headers()
        if body:
            self.wfile.write(sent)
            server.sent += len(sent)


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    """About three megabytes: noise cannot be compressed."""
    path = tmp_path_factory.mktemp("noise") / "film.mp4"
    noise = np.random.default_rng(0).integers(0, 256, (10, 96, 160, 3), np.uint8)
    sound = np.zeros(16_000 * 20, np.float32)
    write_film(path, (noise[i % 10] for i in range(200)), Encoding(gop=10), sound=sound)
    return path


@pytest.fixture
def server(local):
    with Server(local.read_bytes()) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield server
        server.shutdown()


def same(found, local):
    """Assert that a film elsewhere has the times, frames and fingerprint of the local one."""
    there, here = Video(found), Video(local)
    assert fingerprint(RemotePath(found)) == fingerprint(local)
    for name in ("pts", "dts", "key", "shown"):
        assert np.array_equal(getattr(there.table, name), getattr(here.table, name)), name
    assert (there.duration, there.origin, there.info) == (here.duration, here.origin, here.info)
    times = [0.0, here.duration / 3, here.duration / 2]
    for one, other in zip(there.at(times), here.at(times), strict=True):
        assert one.time == other.time
        assert np.array_equal(one.pixels, other.pixels)


@pytest.mark.parametrize("recipe", FILMS, ids=lambda recipe: recipe.name)
def test_every_sample_is_the_same_over_http(recipe, film_folder):
    local = recipe.make(film_folder)
    with Server(local.read_bytes()) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        same(server.url, local)
        server.shutdown()


def test_frames_need_a_part_of_the_film(server, local, monkeypatch):
    monkeypatch.setattr(remote, "BLOCK", 2**14)
    Video(server.url).at([1.0, 15.0])
    assert server.sent < local.stat().st_size / 2


def test_nothing_shows_the_secret_of_a_link(server, run):
    path = RemotePath(server.url.replace("://", "://user:password@"))
    assert pickle.loads(pickle.dumps(path)).url == path.url
    for shown in (str(path), repr(path), path.name, path.stem, str(path.with_suffix(".srt"))):
        assert "secret" not in shown
        assert "password" not in shown
    code, out, err = run("info", server.url, "--json")
    assert code == 0, err
    assert "secret" not in out + err
    server.fault = "403"
    code, out, err = run("info", server.url, "--debug")
    assert (code, out) == (2, "")
    assert err.endswith("the link or the credentials are missing, wrong or expired\n")
    assert "secret" not in err


@pytest.mark.parametrize(
    ("fault", "after", "says"),
    [
        ("403", 0, "expired"),
        ("403", 1, "expired"),
        ("404", 0, "no such file"),
        ("500", 1, "status 500"),
        ("short", 1, "less than was asked for"),
        ("ignores ranges", 0, "cannot be read by ranges"),
        ("ignores ranges", 1, "cannot be read by ranges"),
        ("page", 0, "is a web page; 'longtake ask --download'"),
    ],
)
def test_what_goes_wrong_is_told(server, monkeypatch, fault, after, says):
    monkeypatch.setattr(remote, "BLOCK", 2**14)
    server.fault, server.after = fault, after
    with pytest.raises(MediaError, match=re.escape(says)) as raised:
        Video(server.url).at([15.0])
    assert "secret" not in str(raised.value)


def test_a_film_that_is_replaced_is_noticed(server):
    video = Video(server.url)
    video.at([0.0])
    server.etag = '"2"'
    with pytest.raises(MediaError, match="was changed"):
        video.at([1.0])


def test_commands_take_addresses(server, run, lend_models, tmp_path, monkeypatch):
    monkeypatch.setenv("LONGTAKE_CACHE", str(lend_models(tmp_path / "cache")))
    monkeypatch.chdir(tmp_path)
    for words in (("frames", server.url, "--at", "1"), ("clip", server.url, "1", "2")):
        code, out, err = run(*words)
        assert (code, err) == (0, "")
        assert all((tmp_path / name).is_file() for name in out.split())
    asked = ("ask", server.url, "Who?", "--model", "lab/acuity=1", "--method", "blind")
    assert run(*asked, "--no-verify", "--trace", "trace.jsonl")[0] in (0, 3)
    assert "the same answer" in run("replay", "trace.jsonl", "--rerun", server.url)[2]
    schema = tmp_path / "schema.json"
    schema.write_text('{"type": "object", "properties": {"sign": {"type": "string"}}}')
    words = ("extract", server.url, "--schema", schema, "--model", "lab/acuity=1", "--json")
    words += ("--set", "perception.reader=false", "--set", "perception.listener=none")
    code, out, err = run(*words)
    assert (code, '"sign": null' in out) == (0, True), err
    assert run(*words, "--offline")[0] == 2


@pytest.mark.parametrize("words", [("library", "add"), ("serve", "--films"), ("mcp", "--films")])
def test_commands_that_take_files_only_say_so(run, words):
    code, out, err = run(*words, f"https://example.org/film.mp4?{SECRET}")
    assert (code, out) == (2, "")
    assert "only files on this machine" in err
    assert "secret" not in err


def test_a_server_that_is_gone_and_a_scheme_that_nobody_knows(run):
    code, _, err = run("info", "http://127.0.0.1:1/film.mp4")
    assert (code, err.count("\n")) == (2, 1)
    assert "cannot be read (ClientConnectorError)" in err
    code, _, err = run("info", "nonsense://film.mp4")
    assert (code, err.count("\n")) == (2, 1)
    code, _, err = run("summary", "http://127.0.0.1:1/film.mp4", "--offline")
    assert (code, "--offline forbids" in err) == (2, True)


@pytest.fixture(scope="module")
def bucket(local):
    """A film in a bucket of a server that speaks S3."""
    server_module = pytest.importorskip("moto.server")
    boto3 = pytest.importorskip("boto3")
    pytest.importorskip("s3fs")
    server = server_module.ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    address = f"http://{host}:{port}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", address)
        patch.setenv("AWS_ACCESS_KEY_ID", "key-id")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "secret-key")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        client = boto3.client("s3")
        client.create_bucket(Bucket="films")
        client.upload_file(str(local), "films", "a/film.mp4")
        yield client
    server.stop()


def test_a_film_in_a_bucket(bucket, local, run):
    same("s3://films/a/film.mp4", local)
    code, out, err = run("info", "s3://films/a/film.mp4", "--json")
    assert code == 0, err
    assert "secret-key" not in out + err
    code, _, err = run("info", "s3://films/a/other.mp4")
    assert (code, err) == (2, "longtake: s3://films/a/other.mp4: no such file\n")


def test_a_signed_link_of_a_bucket(bucket, local):
    parameters = {"Bucket": "films", "Key": "a/film.mp4"}
    # signed for reading: the size is asked for in the same way
    link = bucket.generate_presigned_url("get_object", parameters, ExpiresIn=600)
    assert fingerprint(RemotePath(link)) == fingerprint(local)
