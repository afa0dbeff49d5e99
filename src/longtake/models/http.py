"""One endpoint over HTTP, with limits on time and size.

The API key is kept out of everything that is written: errors, events, logs.
"""

from __future__ import annotations

import json
import logging
import os
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from longtake.errors import ConfigError, ModelError
from longtake.models.chat import Unavailable
from longtake.models.destinations import is_loopback
from longtake.models.httpclient import certificates, httpx
from longtake.models.redaction import redacted, without_key
from longtake.models.watchdog import Watch, install, watching
from longtake.stopping import check_stop

MOST_BYTES = 64 * 1024 * 1024
"""Maximum size of a response."""
CONNECT_SECONDS = 10.0
"""Maximum time to connect, and to read a short status."""
INFLATED = 1024 * 1024
"""Bytes that are decompressed at once, so that a small body cannot become a huge one."""
RETRYABLE = (408, 409, 425, 429)
"""Statuses below 500 after which another try may succeed."""

# at debug level httpcore logs headers, in which a server could echo a key
logging.getLogger("httpcore").setLevel(logging.WARNING)


@dataclass(frozen=True, slots=True)
class Response:
    """What a server sent back, without the key."""

    status: int
    text: str
    model: str
    retry_after: float | None = None
    location: str = ""
    key: str = field(default="", repr=False)
    """What must not appear in anything that is read from here."""

    def json(self) -> Any:
        """The body as JSON; malformed JSON is a failure that another try may mend.

        A server may echo the key with escapes (``\\u0073k-…``), which only decoding reveals.
        """
        try:
            return redacted(json.loads(self.text), self.key)
        except RecursionError as error:
            raise Unavailable(self.model, "the server's reply is nested too deeply") from error
        except ValueError as error:
            detail = "the server's reply is not JSON, or was cut off"
            raise Unavailable(self.model, detail) from error


class Endpoint:
    """A server's base URL with its key and connection pool."""

    def __init__(
        self,
        name: str,
        base_url: str,
        *,
        key_env: str = "",
        key: str = "",
        timeout: float = 120.0,
        connections: int = 8,
    ) -> None:
        self.name = name
        self.timeout = timeout
        self.key_env = key_env
        self._key = key or (os.environ.get(key_env, "") if key_env else "")
        self.url = check_url(name, base_url, keyed=bool(self._key))
        self._connections = connections
        self._made: httpx.Client | None = None

    @property
    def host(self) -> str:
        """``host:port``, for people."""
        return self.url.netloc.decode()

    def __repr__(self) -> str:
        return f"Endpoint({self.name!r}, {self.host!r})"

    def post(self, path: str, body: Mapping[str, Any], deadline: float | None = None) -> Response:
        """Send JSON and read the response, all within the deadline."""
        limit = self.timeout if deadline is None else min(self.timeout, deadline)
        # if the deadline ends the call, the budget is to blame and not the server
        hurried = deadline is not None and deadline <= self.timeout
        if limit <= 0:
            raise Unavailable(self.name, "no time left", out_of_time=True)
        data = json.dumps(body).encode()
        return self._exchange("POST", path, data, limit, hurried=hurried)

    def get(self, path: str) -> Any:
        """JSON from a path; ``None`` if the server has nothing there."""
        response = self._exchange("GET", path, b"", CONNECT_SECONDS, hurried=False)
        # a wrong key will be wrong for the next request too
        if response.status in (401, 403):
            raise self.failure(response)
        try:
            return response.json() if response.status == 200 else None
        except Unavailable:
            return None

    def failure(self, response: Response) -> ModelError:
        """The error for a status: unavailable if another try may work, else with a remedy."""
        status = response.status
        # error bodies can be whole HTML pages
        said = " ".join(self.hidden(_message(response.text)).split())[:300]
        if status in RETRYABLE or status >= 500:
            return Unavailable(
                self.name, f"HTTP {status}: {said}", status=status, retry_after=response.retry_after
            )
        lower = said.lower()
        names_size = "length" in lower or "size" in lower or "exceed" in lower
        if status >= 400 and status not in (401, 403) and "context" in lower and names_size:
            detail = f"the prompt is too long for the model ({said})"
            return ModelError(self.name, "context", detail)
        return ModelError(self.name, "refused", self._refusal(response, said))

    def _refusal(self, response: Response, said: str) -> str:
        status = response.status
        if status in (401, 403):
            remedy = "set api_key_env in the model's entry"
            if self.key_env:
                remedy = f"check the key in ${self.key_env}"
            return f"{self.host} refused the key; {remedy} (HTTP {status}: {said})"
        if 300 <= status < 400:
            return f"{self.host} redirects to {response.location}; set base_url to that address"
        if status == 404:
            return f"{self.host} has no such model or path; check model and base_url ({said})"
        return f"HTTP {status}: {said}"

    def close(self) -> None:
        """Close the connections."""
        if self._made is not None:
            self._made.close()

    @property
    def _client(self) -> httpx.Client:
        if self._made is None:
            limits = httpx.Limits(max_connections=None, max_keepalive_connections=self._connections)
            keyed = {"Authorization": f"Bearer {self._key}"} if self._key else {}
            # a proxy from the environment must not see what is meant for this machine
            trust_env = not is_loopback(self.url.host)
            made = httpx.Client(
                headers={"Accept-Encoding": "gzip", **keyed},
                # a redirect could carry the key and pictures to a host that nobody chose
                follow_redirects=False,
                trust_env=trust_env,
                verify=certificates(self.url.scheme, trust_env=trust_env),
                limits=limits,
            )
            install(made)
            self._made = made
        return self._made

    def _exchange(
        self, method: str, path: str, data: bytes, limit: float, *, hurried: bool
    ) -> Response:
        """Send a request and read the response; errors of the HTTP library become ours."""
        with watching(limit) as watch:
            try:
                response = self._read(method, path, data, limit, watch)
            except httpx.HTTPError as error:
                self._check_watch(watch, limit, hurried)
                raise self._broken(error, limit, hurried) from error
            # without a length, a body that was cut off looks complete
            self._check_watch(watch, limit, hurried)
            return response

    def _check_watch(self, watch: Watch, limit: float, hurried: bool) -> None:
        """Raise the reason if the exchange was ended from this side."""
        if watch.late:
            raise self._late(limit, hurried)
        if watch.flooded:
            raise self._too_large()
        if watch.ended:
            check_stop()

    def _read(self, method: str, path: str, data: bytes, limit: float, watch: Watch) -> Response:
        request = self._client.build_request(
            method,
            self.url.join(path),
            content=data,
            headers={"Content-Type": "application/json"},
            timeout=httpx.Timeout(limit, connect=min(limit, CONNECT_SECONDS)),
        )
        response = self._client.send(request, stream=True)
        try:
            body = self._body(response, watch)
        finally:
            response.close()
        text = body.decode("utf-8", "replace")
        return Response(
            response.status_code,
            self.hidden(text),
            self.name,
            _retry_after(response.headers.get("retry-after")),
            self.hidden(_host(response.headers.get("location", ""))),
            self._key,
        )

    def hidden(self, text: str) -> str:
        """Text without the key, whatever its case: host names are lower-cased."""
        return without_key(text, self._key)

    def _body(self, response: httpx.Response, watch: Watch) -> bytes:
        body = bytearray()
        for chunk in self._decompressed(response):
            body += chunk
            if len(body) > MOST_BYTES:
                raise self._too_large()
            # there may be thousands of tiny chunks in what was already received
            if watch.ended:
                break
        return bytes(body)

    def _decompressed(self, response: httpx.Response) -> Iterator[bytes]:
        """The body in pieces of bounded size; httpx would decompress each chunk at one go."""
        encoding = response.headers.get("content-encoding", "identity").strip().lower()
        if encoding in ("", "identity"):
            yield from response.iter_raw()
            return
        # not even asked for; two encodings, one inside the other, multiply
        if encoding not in ("gzip", "x-gzip"):
            detail = f"the reply is compressed in an unknown way ({self.hidden(encoding)[:80]})"
            raise ModelError(self.name, "refused", detail)
        inflater = zlib.decompressobj(16 + zlib.MAX_WBITS)
        try:
            for chunk in response.iter_raw():
                while chunk:
                    yield inflater.decompress(chunk, INFLATED)
                    chunk = inflater.unconsumed_tail
        except zlib.error as error:
            raise Unavailable(self.name, "the reply's compression is damaged") from error

    def _too_large(self) -> ModelError:
        return ModelError(self.name, "refused", f"the reply is larger than {MOST_BYTES} bytes")

    def _late(self, limit: float, hurried: bool) -> Unavailable:
        detail = f"{self.host} gave no reply in {limit:.0f} s"
        return Unavailable(self.name, detail, out_of_time=hurried)

    def _broken(self, error: httpx.HTTPError, limit: float, hurried: bool) -> Unavailable:
        """Our error for one of the HTTP library; its text never holds the key."""
        if isinstance(error, httpx.ConnectTimeout):
            return Unavailable(self.name, f"{self.host} cannot be reached")
        if isinstance(error, httpx.TimeoutException):
            return self._late(limit, hurried)
        if isinstance(error, httpx.ConnectError):
            detail = f"{self.host} cannot be reached; is the server running?"
            return Unavailable(self.name, detail)
        detail = f"the connection to {self.host} broke ({type(error).__name__})"
        return Unavailable(self.name, detail)


def check_url(name: str, base_url: str, *, keyed: bool) -> httpx.URL:
    """A base URL that ends in ``/``, or an error that says what is wrong with it."""
    try:
        url = httpx.URL(base_url)
    except (httpx.InvalidURL, ValueError) as error:
        raise ConfigError(f"{name}: {base_url!r} is not a URL", key="base_url") from error
    problem = ""
    if url.scheme not in ("http", "https") or not url.host:
        problem = "base_url must begin with http:// or https://"
    elif url.userinfo:
        problem = "base_url holds a name or password; use api_key_env"
    elif keyed and url.scheme == "http" and not is_loopback(url.host):
        problem = f"a key is not sent to {url.host} without encryption; use https://"
    if problem:
        raise ConfigError(f"{name}: {problem}", key="base_url")
    return url.copy_with(path=url.path.rstrip("/") + "/", fragment=None)


def _host(location: str) -> str:
    """The host that a redirect names; empty if it names none."""
    try:
        return httpx.URL(location).host
    except (httpx.InvalidURL, ValueError):
        return ""


def _retry_after(value: str | None) -> float | None:
    """Seconds from the Retry-After header, which holds seconds or a date."""
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            when = parsedate_to_datetime(value)
        except ValueError:
            return None
        # without a time zone there is no telling how far away it is
        seconds = (when - datetime.now(UTC)).total_seconds() if when.tzinfo else 0.0
    is_nan = seconds != seconds
    return None if is_nan else max(0.0, seconds)


def _message(body: str) -> str:
    """The message inside an error body, in the shapes that servers use."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return body
    # OpenAI: {"error": {"message"}}; vLLM: {"message"}; FastAPI: {"detail"}
    error = data.get("error", data) if isinstance(data, dict) else data
    if isinstance(error, dict):
        error = error.get("message") or error.get("detail") or error
    return error if isinstance(error, str) else json.dumps(error)
