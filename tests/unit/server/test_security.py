"""The attacks that the server must withstand, one test each."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
from dataclasses import replace

import pytest
from starlette.testclient import TestClient

from longtake.config import BudgetSettings
from longtake.errors import ConfigError
from longtake.server import security
from longtake.server.app import create_app
from longtake.server.films import NoSuchFilm, ServedFilms, film_id
from longtake.server.options import ServeOptions
from longtake.server.security import MIN_TOKEN, AccessKeys, Guard, open_keys, token_file

HOME = "http://127.0.0.1:8750"
TOKEN = "t" * 32


@pytest.fixture
def stranger(options, keys):
    """A client without a token."""
    with TestClient(create_app(options, keys), base_url=HOME) as client:
        yield client


def test_everything_about_films_needs_the_token(stranger):
    paths = ["films", "runs", "about", "openapi.json", "library", "pictures/" + "a" * 32]
    assert {stranger.get(f"/api/v1/{path}").status_code for path in paths} == {401}
    assert stranger.get("/metrics").status_code == 401
    assert stranger.get("/healthz").text == "ok\n"


EVIL = "https://evil.example"
PREFLIGHT = {"Origin": EVIL, "Access-Control-Request-Method": "POST"}
FORMS = ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data")
# DNS rebinding: the attacker's name resolves to this machine
HOSTS = ("evil.example", "127.0.0.1.evil.example:8750", "127.0.0.1:80", "")
REFUSED = [
    ("GET", "/api/v1/films", {"Authorization": "Bearer " + "x" * 32}, 401),
    *(("GET", "/api/v1/films", {"Host": host}, 421) for host in HOSTS),
    ("GET", "/healthz", {"Host": "evil.example:8750"}, 421),
    *(("GET", "/api/v1/films", {"Origin": origin}, 403) for origin in (EVIL, "null", HOME + "1")),
    ("GET", "/api/v1/films/x/frame?t=1", {"Sec-Fetch-Site": "cross-site"}, 403),
    ("OPTIONS", "/api/v1/runs", PREFLIGHT, 403),
    *(("POST", "/api/v1/runs", {"Content-Type": kind}, 415) for kind in FORMS),
    ("POST", "/api/v1/runs", {"Content-Type": "application/json"}, 413),
]


def test_requests_of_strangers_are_refused_and_offered_nothing(client):
    for method, path, headers, status in REFUSED:
        body = b" " * 1_000_001 if method == "POST" else None
        response = client.request(method, path, content=body, headers=headers)
        assert response.status_code == status, (path, headers)
        # the body may never end
        assert response.headers["connection"] == "close"
        assert not [name for name in response.headers if name.startswith("access-control")]
    assert client.get("/api/v1/films", headers={"Origin": HOME}).status_code == 200


def test_a_length_beside_chunks_is_refused(client):
    headers = {"content-type": "application/json", "content-length": "20"}
    chunks = iter([b'{"path":"', b"x" * 2_000_000, b'"}'])
    both = {**headers, "transfer-encoding": "chunked"}
    refused = client.post("/api/v1/films", content=chunks, headers=both)
    assert (refused.status_code, "either" in refused.text) == (400, True)


def test_what_is_sent_is_counted_whatever_length_was_declared(options, keys):
    headers = [
        (b"host", b"127.0.0.1:8750"),
        (b"authorization", f"Bearer {TOKEN}".encode()),
        (b"content-type", b"application/json"),
        (b"content-length", b"20"),
    ]
    sent = []

    async def receive():
        return {"type": "http.request", "body": b" " * 600_000, "more_body": True}

    async def send(message):
        sent.append(message)

    for path in ("/api/v1/films", "/mcp"):
        scope = {
            "type": "http",
            "method": "POST",
            "path": path,
            "query_string": b"",
            "headers": headers,
        }
        asyncio.run(create_app(options, keys)(scope, receive, send))
    assert [message["status"] for message in sent if "status" in message] == [413, 413]


def test_the_one_time_link_works_once_and_sets_a_strict_cookie(stranger, keys):
    address = f"/enter?code={keys.code()}"
    entered = stranger.get(address, follow_redirects=False)
    assert entered.status_code == 303
    cookie = entered.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert keys.token not in cookie
    assert stranger.get("/api/v1/films").status_code == 200
    assert stranger.get(address, follow_redirects=False).status_code == 403


def test_the_one_time_link_expires(keys, monkeypatch):
    monkeypatch.setattr(security, "CODE_SECONDS", -1.0)
    assert not keys.redeem(keys.code())
    assert not keys.redeem("")


def test_the_link_leads_to_the_film_if_it_is_served_alone(options, keys):
    (film,) = options.films[0].iterdir()
    alone = create_app(replace(options, films=(film,)), keys)
    with TestClient(alone, base_url=HOME) as stranger:
        entered = stranger.get(f"/enter?code={keys.code()}", follow_redirects=False)
        (listed,) = stranger.get("/api/v1/films").json()
    assert entered.headers["location"] == f"/film/{listed['id']}"


def test_the_token_is_in_a_file_for_the_user_alone(tmp_path):
    options = ServeOptions(folder=tmp_path / "data")
    token = open_keys(options).token
    file = token_file(options)
    assert file.stat().st_mode & 0o777 == 0o600
    assert open_keys(options).token == token == file.read_text()
    file.chmod(0o644)
    with pytest.raises(ConfigError, match="others can read"):
        open_keys(options)


def test_a_short_token_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="16 characters"):
        open_keys(ServeOptions(folder=tmp_path, token="secret"))


@pytest.fixture
def outside(options, tmp_path):
    return shutil.copy(options.films[0] / "plain.mp4", tmp_path / "private.mp4")


def test_films_outside_the_folders_are_not_opened(client, options, outside):
    for path in (outside, options.films[0] / ".." / "private.mp4", "/etc/passwd", "~/.ssh/id"):
        assert client.post("/api/v1/films", json={"path": str(path)}).status_code == 404
    assert client.get(f"/api/v1/films/{film_id(outside.resolve())}").status_code == 404


def test_links_that_lead_outside_are_refused(options, outside):
    (options.films[0] / "link.mp4").symlink_to(outside)
    catalog = ServedFilms(options)
    assert [file.name for file in catalog.films()] == ["plain.mp4"]
    # a film that is replaced by such a link after it was listed
    inside = options.films[0] / "plain.mp4"
    inside.unlink()
    inside.symlink_to(outside)
    with pytest.raises(NoSuchFilm):
        catalog.open(film_id(inside.parent.resolve() / "plain.mp4"))


def test_subtitles_that_link_outside_are_not_shown(options, connect, tmp_path):
    secret = tmp_path / "secret.srt"
    secret.write_text("1\n00:00:00,000 --> 00:00:01,000\nthe secret\n")
    (options.films[0] / "plain.srt").symlink_to(secret)
    client = connect(options)
    film = client.get("/api/v1/films").json()[0]["id"]
    assert client.get(f"/api/v1/films/{film}/timeline").json()["speech"] == []
    assert "secret" not in client.get(f"/api/v1/films/{film}/subtitles.srt").text


def test_an_ask_names_no_code_no_address_and_no_paid_model_that_the_server_does_not_list(
    client, film, monkeypatch
):
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    for wrong, says in (
        ({"method": "os:system"}, "unknown method"),
        ({"models": ["http://127.0.0.1:1/v1#x"]}, "catalogue"),
        ({"models": ["vlm=https://evil.example/v1#x"]}, "catalogue"),
        ({"models": ["gpt-4o"]}, "unknown model"),
        ({"models": ["vlm=gpt-4o"]}, "unknown model"),
    ):
        ask = {"film": film, "question": "Why?", "method": "uniform", **wrong}
        refused = client.post("/api/v1/runs", json=ask)
        assert (refused.status_code, says in refused.text) == (422, True), wrong


def test_errors_do_not_say_where_films_lie(client, options, film):
    (options.films[0] / "plain.mp4").write_bytes(b"no film")
    refused = client.get(f"/api/v1/films/{film}")
    assert refused.status_code == 422
    assert str(options.films[0]) not in refused.text
    assert "plain.mp4: " in refused.text


def test_ids_cannot_leave_their_folders(client):
    for path in (
        "runs/..%2f..%2ftoken",
        "pictures/..%2f..%2ftoken",
        "runs/%2e%2e/events",
        "films/..%2f..%2f",
    ):
        assert client.get(f"/api/v1/{path}").status_code in (404, 405)
    for path in ("/assets/..%2foptions.py", "/assets/../security.py", "/assets/%2e%2e/app.py"):
        assert "import" not in client.get(path).text


def test_every_response_carries_the_policy(client, stranger):
    for response in (client.get("/"), client.get("/api/v1/films"), stranger.get("/api/v1/runs")):
        policy = response.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["referrer-policy"] == "no-referrer"


def test_cookies_of_two_servers_do_not_mix():
    first, second = AccessKeys("a" * 32, 8750), AccessKeys("a" * 32, 8751)
    assert first.cookie_name != second.cookie_name


def test_data_is_private(client, options):
    assert options.data.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("left", ["", "cut off"])
def test_a_token_that_a_full_disk_cut_off_is_replaced(options, left):
    file = token_file(options)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(left)
    file.chmod(0o600)
    keys = open_keys(options)
    assert len(file.read_text()) >= MIN_TOKEN
    assert file.stat().st_mode & 0o777 == 0o600
    assert open_keys(options).token == keys.token == file.read_text()
    assert [path.name for path in file.parent.glob(".token*")] == []


def test_no_token_is_left_behind_where_the_disk_is_full(options, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        open_keys(options)
    assert list(token_file(options).parent.glob("*token*")) == []


@pytest.mark.parametrize(
    "limit", ['{"cost":-1000}', '{"seconds":NaN}', '{"calls":0}', '{"cost":Infinity}']
)
def test_a_budget_is_positive_and_finite_whoever_sends_it(client, film, limit):
    ask = f'{{"film":"{film}","question":"Why?","method":"blind","budget":{limit}}}'
    json_body = {"content-type": "application/json"}
    for path, body in (
        ("/api/v1/runs", ask),
        ("/api/v1/library/ask", ask.replace(f'"film":"{film}",', "")),
        ("/api/v1/compare", f'{{"ask":{ask}}}'),
        ("/api/v1/warm-up", ask),
    ):
        refused = client.post(path, content=body, headers=json_body)
        assert (refused.status_code, "positive and finite" in refused.text) == (422, True), path
    # that reader takes neither NaN nor Infinity for JSON, but it takes texts
    limit = limit.replace("NaN", '"nan"').replace("Infinity", '"inf"')
    message = f'[{{"role":"user","content":"film:{film} Why?"}}]'
    body = f'{{"model":"longtake/blind","messages":{message},"longtake":{{"budget":{limit}}}}}'
    refused = client.post("/v1/chat/completions", content=body, headers=json_body)
    assert (refused.status_code, "positive and finite" in refused.text) == (400, True)


@pytest.mark.parametrize("limit", [-1.0, 0.0, float("nan"), float("inf")])
def test_the_spending_limit_is_positive_and_finite(options, limit):
    with pytest.raises(ConfigError, match=r"--max-spend .*positive and finite"):
        replace(options, max_spend=limit)
    with pytest.raises(ConfigError, match="positive and finite"):
        BudgetSettings(cost=limit)


def test_a_stream_that_the_servers_end_interrupts_just_ends(keys):
    sent = []

    async def endless(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await asyncio.Event().wait()

    async def send(message):
        sent.append(message)

    async def interrupted():
        headers = [
            (b"host", b"127.0.0.1:8750"),
            (b"authorization", f"Bearer {keys.token}".encode()),
        ]
        scope = {"type": "http", "method": "GET", "path": "/api/v1/films", "headers": headers}
        task = asyncio.ensure_future(
            Guard(endless, keys, ("127.0.0.1:8750",), "")(scope, None, send)
        )
        while not sent:
            await asyncio.sleep(0)
        task.cancel()
        await task

    # raised, it would be logged as a bug, with its traceback
    asyncio.run(interrupted())
    assert sent[-1] == {"type": "http.response.body", "body": b""}
